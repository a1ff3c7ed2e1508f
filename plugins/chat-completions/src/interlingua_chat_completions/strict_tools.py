"""Tools that the caller wants strict: their schemas in the strict subset, their arguments in the tool's own terms.

Never changes a schema it was given, and never makes a tool strict that the subset cannot say: the ledger tells why.
Request writers and readers of answers of services that enforce schemas come in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from interlingua.errors import CapabilityError
from interlingua.plugins.wire import Loss, Verdict
from interlingua.types.tools import ToolDefinition

OPTION = "strict_tools"
"""The provider option: true for all tools, or the names of those meant."""
ECHO = "strict"
FORMATS = frozenset(("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"))
"""Formats of a text that may stand in a strict schema (guide "Structured model outputs", supported properties)."""
_NULL = {"type": "null"}


class StrictTools(NamedTuple):
    """Which tools are strict: the schemas they are sent with, what that changed, and what their answers need."""

    schemas: Mapping[str, dict[str, Any]]
    losses: tuple[Loss, ...]
    echo: Mapping[str, Any]


NONE = StrictTools({}, (), {})


class _CannotBeStrictError(Exception):
    def __init__(self, path: str, reason: str) -> None:
        super().__init__(reason)
        self.path = path
        self.reason = reason


def to_wire_strict_tools(tools: Sequence[ToolDefinition], asked: Any) -> StrictTools:
    """Write the schemas of the tools that are to be strict (sheet openai_chat §3).

    Every object is closed and requires all its properties; one that the tool can do without may be null instead, and
    `from_wire_strict_input` leaves such nulls out again.

    Args:
        tools: all tools of the request.
        asked: the value of the option.

    Raises:
        CapabilityError: the option is neither true nor false nor a list of names.
    """
    if not asked:
        return NONE
    wanted = _wanted(tools, asked)
    schemas: dict[str, dict[str, Any]] = {}
    losses = [
        _loss(f"options.provider_options.{OPTION}", "dropped", f"no tool is named {name!r}", kind="option")
        for name in sorted(wanted - {tool.name for tool in tools})
    ]
    for at, tool in enumerate(tools):
        if tool.name not in wanted:
            continue
        place = f"tools[{at}].input_schema"
        found: list[Loss] = []
        try:
            schemas[tool.name] = _strict(tool.input_schema, place, found)
        except _CannotBeStrictError as refusal:
            found = [_loss(refusal.path, "rewritten", f"the tool is not sent as strict: {refusal.reason}")]
        losses += found
    echo = {ECHO: {tool.name: tool.input_schema for tool in tools if tool.name in schemas}} if schemas else {}
    return StrictTools(schemas, tuple(losses), echo)


def from_wire_strict_input(value: Any, schema: Mapping[str, Any]) -> Any:
    """Leave out the nulls that stand for properties the model did without.

    Args:
        value: the arguments as they came.
        schema: the tool's own schema, as it was declared.
    """
    if isinstance(value, list):
        return [from_wire_strict_input(item, schema.get("items") or {}) for item in value]
    if not isinstance(value, Mapping):
        return value
    properties, required = schema.get("properties") or {}, schema.get("required") or ()
    return {
        name: from_wire_strict_input(item, properties.get(name) or {})
        for name, item in value.items()
        if item is not None or name in required or name not in properties or _takes_null(properties[name])
    }


def _wanted(tools: Iterable[ToolDefinition], asked: Any) -> set[str]:
    if asked is True:
        return {tool.name for tool in tools}
    if isinstance(asked, list | tuple) and all(isinstance(name, str) for name in asked):
        return set(asked)
    raise CapabilityError(
        f"{OPTION} is true, or a list of tool names, not {asked!r}", path=f"options.provider_options.{OPTION}"
    )


def _strict(node: Mapping[str, Any], place: str, losses: list[Loss]) -> dict[str, Any]:
    if "type" not in node:
        raise _CannotBeStrictError(place, "every strict schema names its type")
    made = dict(node)
    if node["type"] == "object":
        made.update(_closed(node, place, losses))
    elif node["type"] == "array":
        if "items" not in node:
            raise _CannotBeStrictError(place, "a strict array says what is in it")
        made["items"] = _strict(node["items"], f"{place}.items", losses)
    if made.get("format") is not None and made["format"] not in FORMATS:
        losses.append(_loss(f"{place}.format", "dropped", f"the format {made.pop('format')!r} is refused when strict"))
    return made


def _closed(node: Mapping[str, Any], place: str, losses: list[Loss]) -> dict[str, Any]:
    properties = node.get("properties") or {}
    if node.get("additionalProperties") or not node.keys() & {"properties", "additionalProperties"}:
        raise _CannotBeStrictError(place, "it takes properties that are not named")
    if "additionalProperties" not in node:
        losses.append(
            _loss(f"{place}.additionalProperties", "rewritten", "no properties but the named ones when strict")
        )
    required = node.get("required") or ()
    if set(required) != set(properties):
        reason = "strict mode requires all properties; null stands for one that is left out"
        losses.append(_loss(f"{place}.required", "rewritten", reason))
    made = {}
    for name, child in properties.items():
        inner = f"{place}.properties.{name}"
        made[name] = _strict(child, inner, losses)
        if name not in required and not _takes_null(child):
            made[name] = _nullable(made[name], inner, losses)
    return {"properties": made, "required": list(properties), "additionalProperties": False}


def _nullable(node: dict[str, Any], place: str, losses: list[Loss]) -> dict[str, Any]:
    reason = "it may be left out, for which null stands when strict"
    if node["type"] in ("object", "array"):
        losses.append(_loss(place, "rewritten", reason))
        return {"anyOf": [node, _NULL]}
    losses.append(_loss(f"{place}.type", "rewritten", reason))
    made = {**node, "type": [node["type"], "null"]}
    if "enum" in node:
        losses.append(_loss(f"{place}.enum", "rewritten", reason))
        made["enum"] = [*node["enum"], None]
    return made


def _takes_null(node: Mapping[str, Any]) -> bool:
    return node.get("type") == "null" or ("type" not in node and None in (node.get("enum") or (None,)))


def _loss(path: str, verdict: Verdict, reason: str, *, kind: str = "tool") -> Loss:
    return Loss(path=path, block_type=kind, verdict=verdict, reason=reason)
