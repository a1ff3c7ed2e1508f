"""Tool definitions, the schema subset they are written in, and their wire wrappers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Literal

import attrs

from interlingua._json import EMPTY, FieldError, FrozenDict, freeze, freeze_object
from interlingua._values import CONVERT_ALWAYS, validated
from interlingua.errors import CallerError, UnsupportedSchemaError


@validated
@attrs.frozen(kw_only=True)
class CacheHint:
    """Asks the provider to cache the prompt up to here.

    Attributes:
        type: the only kind.
        ttl: how long to keep it; None means the provider's default.
    """

    type: Literal["ephemeral"] = "ephemeral"
    ttl: Literal["5m", "1h"] | None = None


class SideEffects(StrEnum):
    """Side effects of running a tool; every tool declares them (format.md, Tools)."""

    NONE = "none"
    """Pure read or computation."""
    READ = "read"
    """Reads the filesystem or the network."""
    WRITE = "write"
    """Writes the filesystem."""
    EXECUTE = "execute"
    """Runs a shell or arbitrary code."""
    NETWORK = "network"
    """Changes something over the network."""


class ToolKind(StrEnum):
    """An optional hint for user interfaces, such as which icon to show.

    These are the tool kinds of the Agent Client Protocol (https://agentclientprotocol.com) without `switch_mode`, which
    is about the editor, not about a tool.
    """

    READ = "read"
    EDIT = "edit"
    DELETE = "delete"
    MOVE = "move"
    SEARCH = "search"
    EXECUTE = "execute"
    THINK = "think"
    FETCH = "fetch"
    OTHER = "other"


TYPES = ("string", "number", "integer", "boolean", "null", "object", "array")
"""The values of `type` that a tool schema may have (format.md, Tools)."""

SCHEMA_MAX_DEPTH = 64
"""Levels of nesting accepted: far more than any provider takes, and short of Python's recursion limit."""


def check_schema(schema: Mapping[str, Any]) -> None:
    """Reject a tool's input schema that is outside the subset of format.md, Tools.

    Args:
        schema: the JSON Schema of an object.

    Raises:
        UnsupportedSchemaError: its `path` is the JSON pointer of the first offending keyword, in document order.
    """
    stack: list[tuple[str, Any, int]] = [("", schema, 0)]
    while stack:
        path, node, depth = stack.pop()
        if not isinstance(node, Mapping):
            raise UnsupportedSchemaError(f"a schema must be a JSON object, not {type(node).__name__}", path=path)
        if depth > SCHEMA_MAX_DEPTH:
            text = f"the schema nests deeper than {SCHEMA_MAX_DEPTH} levels; flatten it"
            raise UnsupportedSchemaError(text, path=path)
        for keyword, value in node.items():
            check_keyword(keyword, value, path)
        below = [(json_pointer(path, "properties", name), child) for name, child in node.get("properties", {}).items()]
        if "items" in node:
            below.append((json_pointer(path, "items"), node["items"]))
        stack += [(at, child, depth + 1) for at, child in reversed(below)]
    if schema.get("type") != "object":
        text = 'a tool takes an object: its schema needs "type": "object" at the root'
        raise UnsupportedSchemaError(text, path="/type" if "type" in schema else "")


def check_keyword(keyword: Any, value: Any, path: str) -> None:
    """Check one keyword of the schema at `path`: its name and the form of its value.

    Raises:
        UnsupportedSchemaError: the keyword is outside the subset, or its value is malformed.
    """
    place = json_pointer(path, keyword)
    if keyword not in _CHECKS:
        allowed = ", ".join(_CHECKS)
        raise UnsupportedSchemaError(
            f"tool schemas may not use {keyword!r}; allowed are {allowed}. Remove it, or pass the schema through"
            " normalise_schema(), which inlines or describes it (pip install interlingua-agents)",
            path=place,
        )
    is_allowed, wanted = _CHECKS[keyword]
    if not is_allowed(value):
        raise UnsupportedSchemaError(f"{keyword} must be {wanted}", path=place)


def json_pointer(path: str, *tokens: Any) -> str:
    """Extend a JSON pointer by tokens, escaped (RFC 6901)."""
    return path + "".join("/" + str(token).replace("~", "~0").replace("/", "~1") for token in tokens)


def follow_pointer(document: Any, pointer: str) -> Any:
    """Return the value at a JSON pointer (RFC 6901), such as a `$ref` without its `#`; None if it leads nowhere."""
    start, *tokens = pointer.split("/")
    found = None if start else document
    for token in tokens:
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(found, (list, tuple)):
            found = found[int(key)] if key.isdecimal() and int(key) < len(found) else None
        else:
            found = found.get(key) if isinstance(found, Mapping) else None
    return found


def _is_json(value: Any) -> bool:
    try:
        freeze(value)
    except FieldError:
        return False
    return True


def _has_names(value: Any) -> bool:
    return all(isinstance(name, str) for name in value)


# keyword -> a check of its value, and a description of valid values
_CHECKS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "type": (
        lambda value: isinstance(value, str) and value in TYPES,
        f"a single one of {', '.join(TYPES)}; normalise_schema() folds a nullable union",
    ),
    "enum": (
        lambda value: isinstance(value, list) and value != [] and _is_json(value),
        "a non-empty array of JSON values",
    ),
    "required": (
        lambda value: isinstance(value, list) and _has_names(value) and len(set(value)) == len(value),
        "an array of distinct property names",
    ),
    "properties": (
        lambda value: isinstance(value, Mapping) and _has_names(value),
        "an object that maps property names to schemas",
    ),
    "items": (lambda value: isinstance(value, Mapping), "one schema"),
    "description": (lambda value: isinstance(value, str), "a string"),
    "format": (lambda value: isinstance(value, str), "a string"),
    "additionalProperties": (lambda value: isinstance(value, bool), "true or false; a schema is not allowed here"),
}

TOOL_NAME_PATTERN = r"^[a-z][a-z0-9_]*$"
TOOL_NAME_MAX_LENGTH = 64
_NAME = re.compile(TOOL_NAME_PATTERN)


def _checked_schema(schema: Mapping[str, Any]) -> FrozenDict:
    check_schema(schema)  # before freezing: its walk does not recurse, so a hostile depth ends in a typed error
    frozen: FrozenDict = freeze(schema)
    return frozen


def _canonical_name(name: str) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > TOOL_NAME_MAX_LENGTH:
        shown = repr(name) if isinstance(name, str) else type(name).__name__
        raise CallerError(
            f"tool name {shown} is not canonical: lower snake_case, starting with a letter, at most"
            f" {TOOL_NAME_MAX_LENGTH} characters; canonical_names() makes them (pip install interlingua-agents)"
        )
    return name


@validated
@attrs.frozen(kw_only=True)
class ToolDefinition:
    """A tool that a model may call (format.md, Tools); checked when it is made.

    Attributes:
        name: lower snake_case, at most 64 characters, unique within a request.
        description: description for the model; may be empty.
        input_schema: JSON Schema of the input, in the subset of format.md, Tools; kept as a deeply frozen copy.
        side_effects: the kind of changes that running it may make; a string is converted.
        requires_workspace: True when it needs a workspace to run in.
        cache: prompt-cache hint: cache the prompt up to and with this tool, or None.
        kind: hint for user interfaces, or None.
        deferred: the model gets it when the search of the service has found it; without a search, at once.

    Raises:
        CallerError: the name or side_effects are not canonical.
        UnsupportedSchemaError: the schema is outside the subset; `path` points at the keyword.
    """

    name: str = attrs.field(converter=_canonical_name, metadata=CONVERT_ALWAYS)
    description: str
    input_schema: FrozenDict = attrs.field(converter=_checked_schema, metadata=CONVERT_ALWAYS)
    side_effects: SideEffects = attrs.field(converter=SideEffects)
    requires_workspace: bool = True
    cache: CacheHint | None = None
    kind: ToolKind | None = None
    deferred: bool = False

    def extra_of(self, api: str) -> FrozenDict:
        """Return further members of the definition for requests in `api`; see `WireTool`."""
        return EMPTY


@validated
@attrs.frozen(kw_only=True)
class WireTool(ToolDefinition):
    """A tool as a request in a service's API defines it; name and schema are kept unchecked.

    Attributes:
        name: any name; it is replaced only if the target's pattern does not allow it.
        input_schema: any JSON Schema.
        side_effects: unknown, therefore the most severe.
        extra: further members of the definition, written back by the API that they came from.
        api: that API.
    """

    name: str
    input_schema: FrozenDict = attrs.field(converter=freeze_object)
    side_effects: SideEffects = attrs.field(default=SideEffects.EXECUTE, converter=SideEffects)
    extra: FrozenDict = attrs.field(default=EMPTY, converter=freeze_object)
    api: str = ""

    def extra_of(self, api: str) -> FrozenDict:
        """Return the further members if `api` is the API that they came from."""
        return self.extra if self.api == api else EMPTY


def to_wire_function_tool(definition: ToolDefinition) -> dict[str, Any]:
    """Return `{type: "function", function: {name, description, parameters}}`; an empty description is left out."""
    description = {"description": definition.description} if definition.description else {}
    function = {"name": definition.name, **description, "parameters": definition.input_schema}
    return {"type": "function", "function": function}


def from_wire_tool(tool: Mapping[str, Any], *, side_effects: SideEffects) -> ToolDefinition:
    """Read a tool in any of the three forms that services take; only name, description and schema are read.

    Args:
        tool: one entry of a request's list of tools.
        side_effects: the kind of changes that running the tool may make, which no API carries.

    Raises:
        CallerError: it has another form, or its name is not canonical.
        UnsupportedSchemaError: its schema is outside the subset; `path` points into the schema.
    """
    inner, key = tool, "input_schema"
    if tool.get("type") == "function":
        inner, key = tool.get("function", tool), "parameters"
    if not isinstance(inner, Mapping) or "name" not in inner or (key == "input_schema" and key not in inner):
        raise CallerError(
            "not a tool definition: expected {name, description, input_schema}, {type: 'function', function: {name,"
            " description, parameters}} or {type: 'function', name, description, parameters}, got the keys"
            f" {', '.join(map(str, tool))}"
        )
    name, description, schema = inner["name"], inner.get("description") or "", inner.get(key)
    if not isinstance(description, str):
        raise CallerError(f"the description of tool {name!r} must be a string, not {type(description).__name__}")
    schema = {"type": "object", "properties": {}} if schema is None else schema
    return ToolDefinition(name=name, description=description, input_schema=schema, side_effects=side_effects)
