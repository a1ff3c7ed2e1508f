"""A tool: what a model is told of it, and the callable that does it.

Never decides whether it may run and never catches what it raises. The toolbox and the batch come in; applications
through the room's front door.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, get_args, get_type_hints

import attrs

from interlingua.types.tools import SideEffects, ToolDefinition
from interlingua_sessions.tools.context import ToolContext


@attrs.frozen(kw_only=True)
class Tool:
    """A tool and how to run it; calling it calls the function.

    Attributes:
        definition: what the model is told, and its side effects.
        function: takes the input's properties as keyword arguments; may be `async`.
        read: turns a valid input into arguments.
        context: name of the parameter that takes a ToolContext, or None.
        timeout: seconds one call may take; None leaves it to the loop.
        side_by_side: whether it may run beside other calls of an answer; None: when it only looks.
        result_limit: characters of a result that the model is sent; None leaves it to the loop.
    """

    definition: ToolDefinition
    function: Callable[..., Any]
    read: Callable[[Mapping[str, Any]], dict[str, Any]] = dict
    context: str | None = None
    timeout: float | None = None
    side_by_side: bool | None = None
    result_limit: int | None = None

    def __call__(self, *args: Any, **arguments: Any) -> Any:
        """Call the function."""
        return self.function(*args, **arguments)

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.definition.name

    @property
    def is_async(self) -> bool:
        """True when the function is `async` and runs in an event loop, not in a thread."""
        call = getattr(self.function, "__call__", None)  # noqa: B004  an object with an async __call__ is one too
        return inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(call)

    @property
    def is_exclusive(self) -> bool:
        """True when no other call of the same answer may run beside it."""
        looks = self.definition.side_effects in (SideEffects.NONE, SideEffects.READ)
        return not (looks if self.side_by_side is None else self.side_by_side)


def tool_of(
    definition: ToolDefinition,
    function: Callable[..., Any],
    *,
    timeout: float | None = None,
    side_by_side: bool | None = None,
    result_limit: int | None = None,
) -> Tool:
    """Make a tool of a definition and its callable, which takes the input's properties as keyword arguments."""
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
    except (NameError, TypeError):  # a callable that says nothing of its types takes no context
        return None
    return next((name for name, hint in hints.items() if hint is ToolContext or ToolContext in get_args(hint)), None)
