"""A tool: what a model is told of it, and the callable that does it; made by `@tool` or from a definition.

Never decides whether it may run and never catches what it raises. The toolbox and the batch come in; applications
through the room's front door.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, get_args, get_type_hints

import attrs

from interlingua import CallerError, SideEffects, ToolDefinition, ToolKind
from interlingua_sessions.tools.values import ToolContext

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


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


def tool(
    *,
    side_effects: SideEffects | str,
    name: str | None = None,
    description: str | None = None,
    kind: ToolKind | None = None,
    requires_workspace: bool = False,
    timeout: float | None = None,
    side_by_side: bool | None = None,
    result_limit: int | None = None,
) -> Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a typed function: a decorator.

    The schema comes from the parameters' types (what msgspec can read: plain types, enums, literals, attrs classes,
    dataclasses, typed dictionaries, `Annotated` bounds), descriptions from the docstring's sections or from strings in
    `Annotated`. A parameter annotated `ToolContext` is filled in by the loop.

    Args:
        side_effects: what running it may change; there is no default, so that nobody forgets (seed 003 §4.5).
        name: instead of the function's name in snake_case.
        description: instead of the docstring's text.
        kind: hint for user interfaces.
        requires_workspace: True when it needs a workspace to run in.
        timeout: seconds one call may take; None leaves it to the loop.
        side_by_side: whether it may run beside other calls of an answer; None: when it only looks.
        result_limit: characters of a result that the model is sent; None leaves it to the loop.

    Raises:
        CallerError: the function cannot be a tool, or the name or side effects are not canonical.
        SchemaNotSupported: its types need more than the subset of seed 003 §5.4 can say.
    """
    effects = _side_effects(side_effects)

    def make(function: Callable[..., Any]) -> Tool:
        from interlingua_sessions.tools.signature import read_signature  # noqa: PLC0415  loads msgspec

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
            read=found.arguments,
            context=found.context,
            timeout=timeout,
            side_by_side=side_by_side,
            result_limit=result_limit,
        )

    return make


def _side_effects(value: SideEffects | str) -> SideEffects:
    try:
        return SideEffects(value)
    except ValueError as error:
        raise CallerError(f"side_effects {value!r} is none of {', '.join(SideEffects)}") from error


def _context_parameter(function: Callable[..., Any]) -> str | None:
    try:
        hints = get_type_hints(function)
    except (NameError, TypeError):  # a callable that says nothing of its types takes no context
        return None
    return next((name for name, hint in hints.items() if hint is ToolContext or ToolContext in get_args(hint)), None)
