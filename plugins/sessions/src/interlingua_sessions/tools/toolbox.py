"""The registry of tools: each name once, looked up when a model calls it.

Never runs a tool by itself: given to a session as its tools, an `AgentLoop` of the usual settings runs it. The loop
comes in; applications through the room's front door.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from interlingua import CallerError
from interlingua.types.messages import Message
from interlingua.types.tools import ToolDefinition
from interlingua_sessions.tools.function import Tool, tool_of

if TYPE_CHECKING:
    from interlingua_sessions.session.api import AsyncSteps, Steps


class Toolbox:
    """Tools by name, in the order they were added: the order a model is told of them, so that its prefix is stable.

    Args:
        tools: to begin with.

    Raises:
        CallerError: two share a name, or something is no tool.
    """

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            self.add(tool)

    def add(self, tool: Tool) -> Tool:
        """Add a tool and return it.

        Raises:
            CallerError: its name is taken, or it is no tool.
        """
        if not isinstance(tool, Tool):
            raise CallerError(f"{tool!r} is no tool: decorate it with @tool(side_effects=…), or register() it")
        if tool.name in self._tools:
            raise CallerError(f"there is a tool {tool.name!r} already; names are unique (seed 003 §4.5)")
        self._tools[tool.name] = tool
        return tool

    def register(self, definition: ToolDefinition, function: Callable[..., Any], **limits: Any) -> Tool:
        """Add a tool by its definition and callable; `limits` as for `tool_of`."""
        return self.add(tool_of(definition, function, **limits))

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """What a model is told."""
        return tuple([tool.definition for tool in self._tools.values()])

    def run(self, steps: Steps) -> Message:
        """As `AgentLoop(self).run`: what changes something is refused, since there is nobody to ask."""
        from interlingua_sessions.tools.loop import AgentLoop  # noqa: PLC0415  the loop is made of toolboxes

        return AgentLoop(self).run(steps)

    async def run_async(self, steps: AsyncSteps) -> Message:
        """As `run`."""
        from interlingua_sessions.tools.loop import AgentLoop  # noqa: PLC0415  as in `run`

        return await AgentLoop(self).run_async(steps)

    def get(self, name: str) -> Tool | None:
        """Return the tool of a name, or None."""
        return self._tools.get(name)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools
