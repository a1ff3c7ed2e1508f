"""`@tool`: a typed function made a tool.

Never reads a signature itself (`signature` does, and only when a tool is made) and never runs the function.
Applications come in, through the room's front door.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from interlingua import CallerError
from interlingua.types.tools import SideEffects, ToolDefinition, ToolKind
from interlingua_sessions.tools.function import Tool

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


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
        UnsupportedSchemaError: its types need more than the subset of seed 003 §5.4 can say.
    """
    try:
        effects = SideEffects(side_effects)
    except ValueError as error:
        raise CallerError(f"side_effects {side_effects!r} is none of {', '.join(SideEffects)}") from error

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
