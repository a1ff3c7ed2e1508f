"""Making tools of functions and definitions, and the toolbox that holds them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, get_args, get_type_hints, overload

from interlingua import CallerError
from interlingua.types import SideEffects, ToolDefinition, ToolKind
from interlingua_agents.tools import Tool, ToolContext, external_function

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(
    *,
    side_effects: SideEffects | str = ...,
    name: str | None = ...,
    description: str | None = ...,
    kind: ToolKind | None = ...,
    requires_workspace: bool = ...,
    timeout: float | None = ...,
    side_by_side: bool | None = ...,
    result_limit: int | None = ...,
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    side_effects: SideEffects | str = SideEffects.EXECUTE,
    name: str | None = None,
    description: str | None = None,
    kind: ToolKind | None = None,
    requires_workspace: bool = False,
    timeout: float | None = None,
    side_by_side: bool | None = None,
    result_limit: int | None = None,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a typed function: a decorator, `@tool` or `@tool(side_effects="read")`.

    The schema is derived from the parameters' types (plain types, enums, literals, dataclasses, attrs classes, typed
    dictionaries, pydantic models, `Annotated` bounds), descriptions from the docstring's sections or from strings in
    `Annotated`. The agent loop fills in a parameter annotated `ToolContext`.

    Args:
        function: the decorated function, when the decorator is used without arguments.
        side_effects: what a call may change. The default, `execute`, may change anything, so the tool runs alone, with
            consent.
        name: the tool's name; default: the function's name in snake_case.
        description: default: the docstring without its sections.
        kind: hint for user interfaces.
        requires_workspace: True to reject calls in conversations without a workspace.
        timeout: seconds that one call may take; None: the loop's limit.
        side_by_side: whether the tool may run beside other calls of an answer; None: only if it only reads.
        result_limit: characters of a result that the model is sent; None: the loop's limit.

    Raises:
        CallerError: the function cannot be a tool, or the name or side effects are not canonical.
        UnsupportedSchemaError: the types need more than a tool schema may express (format.md, Tools).
    """
    try:
        effects = SideEffects(side_effects)
    except ValueError as error:
        raise CallerError(f"side_effects must be one of {', '.join(SideEffects)}; got {side_effects!r}") from error

    def make(function: Callable[..., Any]) -> Tool:
        from interlingua_agents.signature import read_arguments, read_signature  # noqa: PLC0415  it loads msgspec

        found = read_signature(function)
        definition = ToolDefinition(
            name=name or _HUMP.sub("_", function.__name__).strip("_").lower(),
            description=found.description if description is None else description,
            input_schema=found.schema,
            side_effects=effects,
            requires_workspace=requires_workspace,
            kind=kind,
        )
        return Tool(
            definition=definition,
            function=function,
            read=partial(read_arguments, found.struct),
            context=found.context,
            timeout=timeout,
            side_by_side=side_by_side,
            result_limit=result_limit,
            is_method=found.is_method,
        )

    if function is None:
        return make
    if not callable(function):
        raise CallerError(f"pass settings of @tool by name, as in @tool(side_effects={function!r})")
    return make(function)


def tool_of(
    definition: ToolDefinition,
    function: Callable[..., Any],
    *,
    timeout: float | None = None,
    side_by_side: bool | None = None,
    result_limit: int | None = None,
) -> Tool:
    """Make a tool of a definition and a callable, which takes the input's properties as keyword arguments."""
    return Tool(
        definition=definition,
        function=function,
        context=_context_parameter(function),
        timeout=timeout,
        side_by_side=side_by_side,
        result_limit=result_limit,
    )


def _context_parameter(function: Callable[..., Any]) -> str | None:
    try:
        hints = get_type_hints(function)
    except (NameError, TypeError):  # a callable without readable types takes no context
        return None
    return next((name for name, hint in hints.items() if hint is ToolContext or ToolContext in get_args(hint)), None)


class Toolbox:
    """Tools by name, offered to the model in the order in which they were added.

    Args:
        tools: the first tools. A `ToolDefinition` is offered without a function: the application answers its calls.

    Raises:
        CallerError: two tools share a name, or an item is not a tool.
    """

    def __init__(self, tools: Iterable[Tool | ToolDefinition] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        if isinstance(tools, Tool | ToolDefinition):
            raise CallerError(f"tools must be a list: pass [{tools.name}]")
        for tool in tools:
            self.add(tool)

    def add(self, tool: Tool | ToolDefinition) -> Tool:
        """Add a tool and return it.

        Raises:
            CallerError: the name is taken, or the argument is not a tool.
        """
        if isinstance(tool, ToolDefinition):
            tool = Tool(definition=tool, function=external_function)
        if not isinstance(tool, Tool):
            raise CallerError(
                f"{getattr(tool, '__name__', repr(tool))} is not a tool: decorate it with @tool, or register() it"
            )
        if tool.is_method:
            where = tool.function.__qualname__.rpartition(".")[0]
            raise CallerError(f"{tool.name} is a method of {where}: pass the tool of an object, {where}(…).{tool.name}")
        if tool.name in self._tools:
            raise CallerError(f"two tools have the name {tool.name!r}: rename one of them")
        self._tools[tool.name] = tool
        return tool

    def register(self, definition: ToolDefinition, function: Callable[..., Any], **limits: Any) -> Tool:
        """Add a tool made of a definition and a callable; `limits` as for `tool_of`."""
        return self.add(tool_of(definition, function, **limits))

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """The definitions that the model is offered."""
        return tuple([tool.definition for tool in self._tools.values()])

    def get(self, name: str) -> Tool | None:
        """Return the tool with this name, or None."""
        return self._tools.get(name)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools
