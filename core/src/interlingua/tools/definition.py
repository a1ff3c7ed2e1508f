"""`ToolDefinition`: what a model is told about a tool, and what the runtime must know before running it.

Never runs a tool, and never spells it for a wire (wrappers.py does).
The tools room comes in; every other room and plugin takes it from the room's front door.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import attrs

from interlingua.cache import CacheHint
from interlingua.errors import CallerError
from interlingua.jsontext import FrozenDict, freeze
from interlingua.tools.kinds import SideEffects, ToolKind
from interlingua.tools.schema import check_schema

TOOL_NAME_PATTERN = r"^[a-z][a-z0-9_]*$"
TOOL_NAME_MAX_LENGTH = 64
_NAME = re.compile(TOOL_NAME_PATTERN)


def _checked_schema(schema: Mapping[str, Any]) -> FrozenDict:
    check_schema(schema)  # before freezing: its walk does not recurse, so a hostile depth ends in a typed error
    frozen: FrozenDict = freeze(schema)
    return frozen


def _check_name(_definition: object, _field: object, name: Any) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > TOOL_NAME_MAX_LENGTH:
        raise CallerError(
            f"tool name {name!r} is not canonical: lower snake_case, starting with a letter, at most"
            f" {TOOL_NAME_MAX_LENGTH} characters; canonical_names() makes such names"
        )


def _side_effects(value: str) -> SideEffects:
    try:
        return SideEffects(value)
    except ValueError:
        raise CallerError(f"side_effects must be one of {', '.join(SideEffects)}, not {value!r}") from None


@attrs.frozen(kw_only=True)
class ToolDefinition:
    """A tool as the canonical format knows it (seed 003 §4, §5.4); making one is registering it, so it is checked.

    Attributes:
        name: lower snake_case, at most 64 characters, unique within a request.
        description: what the model reads; may be empty.
        input_schema: JSON Schema of the input, in the subset of seed 003 §5.4; kept as a deeply frozen copy.
        side_effects: what running it may change; the word alone will do.
        requires_workspace: True when it needs a workspace to run in.
        cache: keep the prompt up to and with this tool (DESIGN 3).
        kind: hint for user interfaces (seed 001).

    Raises:
        CallerError: the name or side_effects are not canonical.
        SchemaNotSupported: the schema is outside the subset; `path` points at the keyword.
    """

    name: str = attrs.field(validator=_check_name)
    description: str
    input_schema: FrozenDict = attrs.field(converter=_checked_schema)
    side_effects: SideEffects = attrs.field(converter=_side_effects)
    requires_workspace: bool = True
    cache: CacheHint | None = None
    kind: ToolKind | None = None
