"""Write tool definitions, strict tools and the tool choice."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import attrs

from interlingua.errors import CapabilityError
from interlingua.plugins import (
    EMPTY,
    FrozenDict,
    Loss,
    demand_call,
    dumps,
    freeze_object,
    json_array,
    loads,
    option_loss,
)
from interlingua.types import RequestOptions, ToolChoice, ToolDefinition, follow_pointer, to_wire_function_tool
from interlingua_chat_completions.cache_markers import TOO_MANY, Markers, cache_control
from interlingua_chat_completions.dialect import API, Dialect
from interlingua_chat_completions.object_root import join_root, root_losses

STRICT_OPTION = "strict_tools"
"""The provider option: true for all tools, or the names of those meant."""
STRICT_ECHO = "strict"
# formats of strings that a strict schema may have
_FORMATS = frozenset(("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"))
_STRICT_KEYWORDS = frozenset((
    "type", "properties", "required", "items", "enum", "const", "anyOf", "$ref", "$defs", "definitions", "title",
    "description", "additionalProperties", "format", "pattern", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "multipleOf", "minItems", "maxItems", "default", "$schema", "$id",
))  # fmt: skip
_LOOKAROUND = re.compile(r"\(\?<?[=!]")
_UNIONS = ("anyOf", "allOf", "oneOf")
_SCHEMAS = ("items", "additionalProperties")
_NAMED_SCHEMAS = ("properties", "$defs", "definitions")
_NULL = {"type": "null"}
_OUTSIDE_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
_NAME_LENGTH = 64


class ToolList(NamedTuple):
    """The tools on the wire, what they lost, the lifetimes of their cache markers, what answers need."""

    wire: bytes
    losses: tuple[Loss, ...]
    markers: tuple[str | None, ...] = ()
    echo: Mapping[str, Any] = EMPTY


def strict_option(options: RequestOptions, dialect: Dialect) -> Any:
    """Return the tools that the caller wants strict, if the service enforces schemas of tools."""
    return options.provider_options.get(STRICT_OPTION) if dialect.strict_option else None


def to_wire_tools(tools: Sequence[ToolDefinition], dialect: Dialect, wanted: Any = None) -> ToolList:
    """Write the tool list; a tool's cache hint has a form on few of these services.

    Raises:
        CapabilityError: more tools than the service takes, or `wanted` (see `strict_option`) is not a choice of tools.
    """
    if dialect.max_tools is not None and len(tools) > dialect.max_tools:
        text = f"{len(tools)} tools; this service takes {dialect.max_tools} in one request: offer fewer"
        raise CapabilityError(text, path="tools")
    markers = Markers() if dialect.cache_breakpoints and dialect.cache_style == "cache_control" else None
    strict = to_wire_strict_tools(tools, wanted) if wanted else _NOT_STRICT
    losses: list[Loss] = [*strict.losses, *root_losses(tools, API)]
    wire = []
    for at, tool in enumerate(tools):
        made = _tool(tool, dialect, strict)
        if tool.cache is not None:
            reason = "tools take no cache marker on this wire" if markers is None else markers.spend(tool.cache.ttl)
            if reason:
                losses.append(Loss(path=f"tools[{at}]", block_type="tool", verdict="rewritten", reason=reason))
            if markers is not None and reason != TOO_MANY:
                made["cache_control"] = cache_control(markers.spent[-1])
        wire.append(dumps(made))
    return ToolList(json_array(wire), tuple(losses), tuple(markers.spent) if markers is not None else (), strict.echo)


def complete_schema(schema: Mapping[str, Any], *, root: bool = True) -> Mapping[str, Any]:
    """Return a schema with the keywords that services demand and JSON Schema does not (WIRE.md, Structured outputs).

    An object has `properties`, an array `items`, and a root that must be an object has that `type`. The additions
    allow everything, so the schema means the same.
    """
    return _completed(dumps(schema), root) or schema


@lru_cache(maxsize=1024)  # successive requests have the same tools; checking them again costs 20 times as much
def _completed(written: bytes, root: bool) -> FrozenDict | None:
    schema = loads(written)
    whole = _complete(schema)
    if root and not whole.keys() & {"type", "$ref", *_UNIONS}:
        whole = {"type": "object", "properties": {}, **whole}
    return None if whole is schema else freeze_object(whole)


def _complete(schema: Any) -> Any:
    """Return the schema, or a copy if something in it is missing."""
    if not isinstance(schema, Mapping):
        return schema
    changes: dict[str, Any] = {}
    for name, value in schema.items():
        if name in _NAMED_SCHEMAS and isinstance(value, Mapping):
            made: Any = {key: _complete(child) for key, child in value.items()}
            changed = any(made[key] is not child for key, child in value.items())
        elif name in _UNIONS and isinstance(value, list):
            made = [_complete(child) for child in value]
            changed = any(one is not child for one, child in zip(made, value, strict=True))
        elif name == "items" and isinstance(value, list):  # of older drafts: a schema for each place
            made, changed = {"anyOf": [_complete(child) for child in value]} if value else {}, True
        elif name in _SCHEMAS:
            made = _complete(value)
            changed = made is not value
        else:
            continue
        if changed:
            changes[name] = made
    kinds = schema.get("type")
    kinds = kinds if isinstance(kinds, list) else (kinds,)
    if "object" in kinds and "properties" not in schema:
        changes["properties"] = {}
    if "array" in kinds and schema.get("items", True) is True:
        changes["items"] = {}
    return {**schema, **changes} if changes else schema


def parameters_of(tool: ToolDefinition) -> Mapping[str, Any]:
    """Return the tool's schema with an object at its root and the keywords that services demand."""
    joined = join_root(tool.input_schema)
    return complete_schema(tool.input_schema if joined is None else joined.schema)


def _tool(tool: ToolDefinition, dialect: Dialect, strict_tools: StrictTools) -> dict[str, Any]:
    wrapped = to_wire_function_tool(tool)
    if extra := tool.extra_of(API):  # from a request on this wire, as it was written
        outer = {name: value for name, value in extra.items() if name != "function"}
        return {**wrapped, "function": {**wrapped["function"], **extra["function"]}, **outer}
    if tool.name in strict_tools.schemas:
        wrapped["function"] = {**wrapped["function"], "parameters": strict_tools.schemas[tool.name], "strict": True}
        return wrapped
    wrapped["function"]["parameters"] = parameters_of(tool)
    changed: list[Loss] = []
    fitting = fit_keywords(tool.input_schema, changed) if dialect.strict_tools else tool.input_schema
    if dialect.strict_tools and not changed and (strict := strict_schema(fitting)) is not None:
        wrapped["function"] = {**wrapped["function"], "parameters": strict, "strict": True}
    return wrapped


def omits_tools(options: RequestOptions, dialect: Dialect) -> bool:
    """Return whether the tools have to be left out because the service takes no "call no tool"."""
    return options.tool_choice == "none" and "none" not in dialect.tool_choices


def to_wire_tool_choice(options: RequestOptions, dialect: Dialect, losses: list[Loss]) -> bytes | None:
    """Write `tool_choice`; None when there is no choice.

    If a service accepts no tool name, the tool is offered alone and "some tool" is forced; a loss reports it.
    """
    choice = options.tool_choice
    if choice is None:
        return None
    kind = "named" if isinstance(choice, ToolChoice) else choice
    if kind not in dialect.tool_choices:
        if kind == "auto":
            return None
        if isinstance(choice, ToolChoice) and "required" in dialect.tool_choices:  # `tools_to_offer` left no other
            reason = f"this service takes no tool's name; {choice.name!r} is the only tool sent, and a call is forced"
            losses.append(option_loss("tool_choice", "rewritten", reason))
            return dumps(dialect.required_choice)
        return None  # `tools_to_offer` wrote the demand
    if isinstance(choice, ToolChoice):
        return dumps({"type": "function", "function": {"name": choice.name}})
    return dumps(dialect.required_choice if choice == "required" else choice)


@lru_cache(maxsize=64)
def without_forcing(dialect: Dialect) -> Dialect:
    """Return the dialect of a model that is thinking and cannot be forced to call meanwhile; the same object again."""
    return attrs.evolve(dialect, tool_choices=dialect.tool_choices - {"named", "required"}, forces_thinking=True)


def tools_to_offer(
    tools: Sequence[ToolDefinition], options: RequestOptions, dialect: Dialect, losses: list[Loss]
) -> Sequence[ToolDefinition]:
    """Return all tools, or the forced tool alone if the service takes no name.

    If it forces no call either, the descriptions demand one, and a loss reports it.

    Raises:
        CapabilityError: the request has tools of the service too, which might be called instead.
    """
    choice = options.tool_choice
    if choice in (None, "auto", "none") or not tools:
        return tools
    named = isinstance(choice, ToolChoice)
    if ("named" if named else "required") in dialect.tool_choices:
        return tools
    if "tools" in options.provider_options:
        kind = "named" if named else choice
        raise CapabilityError(f"this service does not take tool_choice {kind!r}", path="options.tool_choice")
    if named and "required" in dialect.tool_choices:
        return [tool for tool in tools if isinstance(choice, ToolChoice) and tool.name == choice.name]
    return demand_call(tools, options, losses, "this service cannot force a call of this model")


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a copy with `additionalProperties: false` on every object, or None if strict would change the meaning.

    An object with optional or open properties is not strict, and the root must be an object.
    """
    if schema.get("type") != "object" or any(key in schema for key in _UNIONS):
        return None
    try:
        closed = _close_schema(schema)
    except _OpenObjectError:
        return None
    return closed if isinstance(closed, dict) else None


class _OpenObjectError(Exception):
    pass


def _close_schema(value: Any) -> Any:
    if isinstance(value, list):
        return [_close_schema(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    copy = {key: item if key in ("enum", "const", "default", "examples") else _member(key, item)
            for key, item in value.items()}  # fmt: skip
    kinds = value.get("type")
    if not value.keys() & {"type", "anyOf", "$ref"} or (
        kinds == "array" and not isinstance(value.get("items"), Mapping)
    ):
        raise _OpenObjectError
    if kinds == "object" or (isinstance(kinds, list) and "object" in kinds):
        properties = value.get("properties") or {}
        if value.get("additionalProperties", False) is not False or set(value.get("required") or ()) != set(properties):
            raise _OpenObjectError
        copy["additionalProperties"] = False
    return copy


def _member(key: str, value: Any) -> Any:
    if key in ("properties", "$defs", "definitions") and isinstance(value, Mapping):
        return {name: _close_schema(item) for name, item in value.items()}
    return _close_schema(value)


def fit_keywords(
    schema: Mapping[str, Any], losses: list[Loss], path: str = "options.response_schema"
) -> dict[str, Any]:
    """Return a schema in the keywords of strict mode (openai/WIRE.md, Structured outputs), with a row for each change.

    Other keywords move into the description, `oneOf` becomes `anyOf`, an `allOf` of one schema is merged into its
    parent, and keywords beside a reference are merged into a copy of its target, as in the official SDK.
    """
    made: dict[str, Any] = _Keywords(schema, losses).fit(schema, path)
    return made


class _Keywords:
    def __init__(self, root: Mapping[str, Any], losses: list[Loss]) -> None:
        self._root, self._losses = root, losses
        self._within: list[str] = []

    def fit(self, node: Any, path: str) -> Any:
        if not isinstance(node, Mapping):
            return node
        reference = node.get("$ref")
        if isinstance(reference, str) and len(node) > 1:
            return self._fit_beside_reference(node, reference, path)
        if "oneOf" in node and "anyOf" not in node:
            node = {("anyOf" if key == "oneOf" else key): value for key, value in node.items()}
            self._lose(f"{path}.oneOf", "strict mode has no oneOf; it became anyOf")
        parts: Sequence[Any] = node.get("allOf") or ()
        if len(parts) == 1 and isinstance(parts[0], Mapping):
            rest = {key: value for key, value in node.items() if key != "allOf"}
            self._lose(f"{path}.allOf", "strict mode has no allOf; its one part went up")
            return self.fit({**parts[0], **rest}, path)
        made: dict[str, Any] = {}
        words = []
        if "properties" in node and not node.keys() & {"type", *_UNIONS}:
            made["type"] = "object"
            self._lose(f"{path}.type", "a strict schema must have a type")
        for key, value in node.items():
            place = f"{path}.{key}"
            if key in _NAMED_SCHEMAS and isinstance(value, Mapping):
                made[key] = {name: self.fit(child, f"{place}.{name}") for name, child in value.items()}
            elif key in _SCHEMAS:
                made[key] = self.fit(value, place)
            elif key in _UNIONS and isinstance(value, list | tuple):
                made[key] = [self.fit(child, f"{place}[{at}]") for at, child in enumerate(value)]
            elif _is_strict_keyword(key, value, node):
                made[key] = value
            else:
                words.append(f"{key}: {dumps(value).decode()}")
                self._lose(place, f"{key} is refused in strict mode; it moved into the description")
        if words:
            made["description"] = "; ".join(filter(None, [made.get("description"), *words]))
        return made

    def _fit_beside_reference(self, node: Mapping[str, Any], reference: str, path: str) -> Any:
        target = follow_pointer(self._root, reference.removeprefix("#"))
        if reference in self._within or target is self._root or not isinstance(target, Mapping):
            self._lose(path, "strict mode has nothing beside a reference; it was left out")
            return {"$ref": reference}
        self._lose(path, "strict mode allows no keywords beside a reference; both were merged into one schema")
        self._within.append(reference)
        made = self.fit({**target, **{key: value for key, value in node.items() if key != "$ref"}}, path)
        self._within.remove(reference)
        return made

    def _lose(self, path: str, reason: str) -> None:
        self._losses.append(_loss(path, "rewritten", reason, kind="option"))


def _is_strict_keyword(key: str, value: Any, node: Mapping[str, Any]) -> bool:
    if key == "format":
        return value in _FORMATS or node.get("type") in ("integer", "number")
    if key == "pattern":
        return not _LOOKAROUND.search(str(value))
    return key in _STRICT_KEYWORDS


def to_wire_answer_schema(
    options: RequestOptions, losses: list[Loss], *, object_root: bool, any_keyword: bool = False
) -> dict[str, Any]:
    """Return `name`, `schema` and `strict` for the answer's schema; strict only if that means the same.

    Args:
        options: holds the schema and its name.
        losses: gets a row if the name does not fit the wire's pattern, or if strict mode is left out.
        object_root: the service refuses a root that is not an object, and forces an answer in strict mode only.
        any_keyword: the service takes every keyword in strict mode, or passes over it.

    Raises:
        CapabilityError: the root is not an object and has to be.
    """
    schema: Mapping[str, Any] = options.response_schema or {}
    changed: list[Loss] = []
    strict = strict_schema(schema if any_keyword else fit_keywords(schema, changed))
    if strict is not None:
        losses += changed
    sent = complete_schema(schema, root=object_root) if strict is None else strict
    if object_root and sent.get("type") != "object":
        raise CapabilityError(
            "the root of an answer's schema must be an object here: put yours into a property of an object",
            path="options.response_schema",
        )
    name = _OUTSIDE_NAMES.sub("_", options.response_name)[:_NAME_LENGTH] or "response"
    if name != options.response_name:
        reason = f"a name is 1 to {_NAME_LENGTH} letters, digits, _ and -; {name!r} is sent"
        losses.append(option_loss("response_name", "rewritten", reason))
    if object_root and strict is None:
        reason = "it has optional properties or open objects, which strict mode refuses; the model is asked, not forced"
        losses.append(option_loss("response_schema", "rewritten", reason))
    return {"name": name, "schema": sent, "strict": strict is not None}


class StrictTools(NamedTuple):
    """Which tools are strict: the schemas they are sent with, what that changed, and what their answers need."""

    schemas: Mapping[str, dict[str, Any]]
    losses: tuple[Loss, ...]
    echo: Mapping[str, Any]


_NOT_STRICT = StrictTools({}, (), {})


class _CannotBeStrictError(Exception):
    def __init__(self, path: str, reason: str) -> None:
        super().__init__(reason)
        self.path = path
        self.reason = reason


def to_wire_strict_tools(tools: Sequence[ToolDefinition], wanted: Any) -> StrictTools:
    """Write the schemas of the strict tools (openai/WIRE.md, Structured outputs).

    Every object is closed and requires all its properties; an optional property may be null instead, and
    `from_wire_strict_input` removes these nulls again.

    Args:
        tools: all tools of the request.
        wanted: the value of the option.

    Raises:
        CapabilityError: the option is neither true nor false nor a list of names.
    """
    if not wanted:
        return _NOT_STRICT
    names = _names(tools, wanted)
    schemas: dict[str, dict[str, Any]] = {}
    losses = [
        _loss(f"options.provider_options.{STRICT_OPTION}", "dropped", f"no tool is named {name!r}", kind="option")
        for name in sorted(names - {tool.name for tool in tools})
    ]
    for at, tool in enumerate(tools):
        if tool.name not in names:
            continue
        place = f"tools[{at}].input_schema"
        found: list[Loss] = []
        try:
            schemas[tool.name] = _strict(tool.input_schema, place, found)
        except _CannotBeStrictError as refusal:
            found = [_loss(refusal.path, "rewritten", f"the tool is not sent as strict: {refusal.reason}")]
        losses += found
    echo = {STRICT_ECHO: {tool.name: tool.input_schema for tool in tools if tool.name in schemas}} if schemas else {}
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


def _names(tools: Iterable[ToolDefinition], wanted: Any) -> set[str]:
    if wanted is True:
        return {tool.name for tool in tools}
    if isinstance(wanted, list | tuple) and all(isinstance(name, str) for name in wanted):
        return set(wanted)
    raise CapabilityError(
        f"{STRICT_OPTION} must be true, false or a list of tool names; got {wanted!r}",
        path=f"options.provider_options.{STRICT_OPTION}",
    )


def _strict(node: Mapping[str, Any], place: str, losses: list[Loss]) -> dict[str, Any]:
    if "type" not in node:
        raise _CannotBeStrictError(place, "every strict schema must have a type")
    made = dict(node)
    if node["type"] == "object":
        made.update(_close_object(node, place, losses))
    elif node["type"] == "array":
        if "items" not in node:
            raise _CannotBeStrictError(place, "a strict array must have items")
        made["items"] = _strict(node["items"], f"{place}.items", losses)
    if made.get("format") is not None and made["format"] not in _FORMATS:
        losses.append(_loss(f"{place}.format", "dropped", f"the format {made.pop('format')!r} is refused when strict"))
    return made


def _close_object(node: Mapping[str, Any], place: str, losses: list[Loss]) -> dict[str, Any]:
    properties = node.get("properties") or {}
    if node.get("additionalProperties") or not node.keys() & {"properties", "additionalProperties"}:
        raise _CannotBeStrictError(place, "it takes properties that are not named")
    if "additionalProperties" not in node:
        losses.append(
            _loss(f"{place}.additionalProperties", "rewritten", "no properties but the named ones when strict")
        )
    required = node.get("required") or ()
    if set(required) != set(properties):
        reason = "strict mode requires all properties; null replaces one that is left out"
        losses.append(_loss(f"{place}.required", "rewritten", reason))
    made = {}
    for name, child in properties.items():
        inner = f"{place}.properties.{name}"
        made[name] = _strict(child, inner, losses)
        if name not in required and not _takes_null(child):
            made[name] = _nullable(made[name], inner, losses)
    return {"properties": made, "required": list(properties), "additionalProperties": False}


def _nullable(node: dict[str, Any], place: str, losses: list[Loss]) -> dict[str, Any]:
    reason = "optional; strict mode uses null instead of leaving it out"
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


def _loss(path: str, verdict: Literal["dropped", "rewritten"], reason: str, *, kind: str = "tool") -> Loss:
    return Loss(path=path, block_type=kind, verdict=verdict, reason=reason)
