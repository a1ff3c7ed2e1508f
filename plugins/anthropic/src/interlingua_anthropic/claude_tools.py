"""Rules of Claude's tools on every host: roots of schemas, names of properties, results of failed calls."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

import attrs

from interlingua.errors import CapabilityError
from interlingua.plugins import FrozenDict, Loss, RequestContext, demand_call, dumps, freeze_object, loads, message_loss
from interlingua.types import (
    BlockEnd,
    DocumentBlock,
    ErrorEvent,
    Message,
    RequestOptions,
    StreamEvent,
    TextBlock,
    ToolChoice,
    ToolDefinition,
    ToolResultBlock,
    ToolUseBlock,
    ToolUseEnd,
    ToolUseInputDelta,
    ToolUseStart,
    follow_pointer,
)

ECHO = "properties"
_LENGTH = 64
_NOT_BESIDE = "citations are refused beside an answer's schema; they were switched off"
_ALL_OR_NONE = "citations are on all documents or on none here; they were switched on"
_DEPTH = 4  # of forms within forms; a schema may lead back to itself
_fits = re.compile(r"[a-zA-Z0-9_.-]{1,64}").fullmatch
_outside = re.compile(r"[^a-zA-Z0-9_.-]+").sub
_UNIONS = ("anyOf", "oneOf", "allOf")
_MAPS = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
_LISTS = (*_UNIONS, "prefixItems")
_ONES = ("items", "additionalProperties", "not", "if", "then", "else", "contains")


class FittedTools(NamedTuple):
    """Tools in the form that the service takes.

    Attributes:
        tools: the definitions.
        names: of each tool with changed names: property on the wire -> property.
        losses: ledger rows of the changes.
    """

    tools: Sequence[ToolDefinition]
    names: Mapping[str, Mapping[str, str]]
    losses: tuple[Loss, ...]


class _Fitted(NamedTuple):
    schema: FrozenDict
    names: Mapping[str, str]
    changes: tuple[tuple[str, str], ...]  # place in the schema, reason


def fit_tools(tools: Sequence[ToolDefinition]) -> FittedTools:
    """Return the tools with schemas that the service accepts (WIRE.md, Tools).

    Raises:
        CapabilityError: the root of a schema is not an object.
    """
    made: list[ToolDefinition] = []
    names: dict[str, Mapping[str, str]] = {}
    losses: list[Loss] = []
    for at, tool in enumerate(tools):
        kind = tool.input_schema.get("type", "object")
        if kind != "object" and not (isinstance(kind, (list, tuple)) and "object" in kind):
            text = f"the schema of the tool {tool.name!r} has the type {kind!r} at its root; arguments are an object"
            raise CapabilityError(text, path=f"tools[{at}].input_schema.type")
        fitted = _fit(dumps(tool.input_schema))
        if fitted is None:
            made.append(tool)
            continue
        made.append(attrs.evolve(tool, input_schema=fitted.schema))
        if fitted.names:
            names[tool.name] = fitted.names
        for place, reason in fitted.changes:
            losses.append(
                Loss(path=f"tools[{at}].input_schema{place}", block_type="tool", verdict="rewritten", reason=reason)
            )
    return FittedTools(made, names, tuple(losses))


@lru_cache(maxsize=1024)  # successive requests have the same tools
def _fit(written: bytes) -> _Fitted | None:
    """Return the schema as the service takes it; None if it takes the schema unchanged."""
    schema = loads(written)
    changes: list[tuple[str, str]] = []
    root = _join_forms(schema, schema, changes)
    if root.get("type") != "object":
        changes.append((".type", "a schema has the type object at its root here"))
        root = {**root, "type": "object"}
    taken = set(_property_names(root))
    renamed: dict[str, str] = {}
    for name in sorted(taken):
        if not _fits(name):
            renamed[name] = _wire_name(name, taken | set(renamed.values()))
            changes.append(
                (f".properties.{name}", f"a name has other letters or is too long; {renamed[name]!r} is sent")
            )
    if not changes:
        return None
    fitted = _rename_properties(root, renamed) if renamed else root
    return _Fitted(freeze_object(fitted), {wire: name for name, wire in renamed.items()}, tuple(changes))


def _join_forms(
    schema: Mapping[str, Any], root: Mapping[str, Any], changes: list[tuple[str, str]], depth: int = 0
) -> dict[str, Any]:
    """Return a root without anyOf, oneOf, allOf and $ref: it has the properties of all forms.

    A property is required if the whole schema requires it.
    """
    joined = {name: value for name, value in schema.items() if name not in (*_UNIONS, "$ref")}
    properties: dict[str, Any] = dict(_properties(joined))
    required = _required(joined)
    words: list[str] = []
    for keyword in (*_UNIONS, "$ref"):
        if keyword not in schema:
            continue
        given = schema[keyword] if isinstance(schema[keyword], list) else [{"$ref": schema[keyword]}]
        found = [_resolve(one, root) for one in given if depth < _DEPTH]
        forms = [_join_forms(form, root, [], depth + 1) for form in found if isinstance(form, Mapping)]
        for form in forms:
            for name, child in _properties(form).items():
                known = properties.get(name, child)
                properties[name] = child if known == child else {"anyOf": [known, child]}
        demands = [{*_required(form)} for form in forms]
        if demands:
            shared = set.union(*demands) if keyword in ("allOf", "$ref") else set.intersection(*demands)
            required += sorted(shared.difference(required))
        if keyword in ("anyOf", "oneOf"):
            words.append(f"{keyword}: {dumps(given).decode()}")
        changes.append((f".{keyword}", f"{keyword} at a schema's root is refused here; its forms were joined"))
    if properties:
        joined["properties"] = properties
    if required:
        joined["required"] = required
    if words:
        joined["description"] = "; ".join(filter(None, [joined.get("description"), *words]))
    return joined


def _properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the properties of a schema; {} for malformed ones of a caller, which the service refuses itself."""
    found = schema.get("properties")
    return found if isinstance(found, Mapping) else {}


def _required(schema: Mapping[str, Any]) -> list[str]:
    found = schema.get("required")
    return [name for name in found if isinstance(name, str)] if isinstance(found, (list, tuple)) else []


def _resolve(schema: Any, root: Mapping[str, Any]) -> Any:
    """Follow a reference into the schema itself; one that leads nowhere, or back to the root, is an empty schema."""
    seen: set[str] = set()
    while isinstance(schema, Mapping) and isinstance(reference := schema.get("$ref"), str):
        if reference in seen or not reference.startswith("#/"):
            return {}
        seen.add(reference)
        schema = follow_pointer(root, reference[1:])
    return schema


def leads_back(schema: Mapping[str, Any]) -> bool:
    """Return whether a reference of the schema leads back to itself, which is refused in the schema of an answer."""
    clear: set[str] = set()

    def visit(node: Any, within: tuple[str, ...]) -> bool:
        if isinstance(node, Mapping):
            reference = node.get("$ref")
            if isinstance(reference, str) and reference not in clear:
                if reference in within or reference == "#":
                    return True
                if visit(_resolve({"$ref": reference}, schema), (*within, reference)):
                    return True
                clear.add(reference)
            return any(visit(child, within) for name, child in node.items() if name not in ("$defs", "definitions"))
        return isinstance(node, (list, tuple)) and any(visit(child, within) for child in node)

    return visit(schema, ())


def _children(node: Any) -> Iterator[Any]:
    if not isinstance(node, Mapping):
        return
    for keyword in _MAPS:
        if isinstance(node.get(keyword), Mapping):
            yield from node[keyword].values()
    for keyword in _LISTS:
        if isinstance(node.get(keyword), list):
            yield from node[keyword]
    for keyword in _ONES:
        if isinstance(node.get(keyword), Mapping):
            yield node[keyword]


def _property_names(node: Any) -> Iterator[str]:
    if isinstance(node, Mapping) and isinstance(node.get("properties"), Mapping):
        yield from node["properties"]
    for child in _children(node):
        yield from _property_names(child)


def _wire_name(name: str, taken: set[str]) -> str:
    """Return a readable name that the service takes and that no other property of the tool has."""
    stem = _outside("_", name).strip("_")
    if stem and len(stem) <= _LENGTH and stem not in taken:
        return stem
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{stem[: _LENGTH - 9] or 'property'}_{digest}"


def _rename_properties(node: Any, names: Mapping[str, str]) -> Any:
    """Return a schema with other names of properties, at every depth."""
    if not isinstance(node, Mapping):
        return node
    made = dict(node)
    for keyword in _MAPS:
        if isinstance(node.get(keyword), Mapping):
            keys = names if keyword in ("properties", "dependentSchemas") else {}
            made[keyword] = {
                keys.get(name, name): _rename_properties(child, names) for name, child in node[keyword].items()
            }
    for keyword in _LISTS:
        if isinstance(node.get(keyword), list):
            made[keyword] = [_rename_properties(child, names) for child in node[keyword]]
    for keyword in _ONES:
        if isinstance(node.get(keyword), Mapping):
            made[keyword] = _rename_properties(node[keyword], names)
    if isinstance(node.get("required"), list):
        made["required"] = [names.get(name, name) if isinstance(name, str) else name for name in node["required"]]
    return made


def fit_error(content: Sequence[Any], *, is_error: bool) -> tuple[Sequence[Any], bool, str | None]:
    """Return the parts of a result, its error flag, and the reason if one of them changed.

    The service takes the flag on a result with text and nothing else.
    """
    if not is_error or (content and all(isinstance(part, TextBlock) for part in content)):
        return content, is_error, None
    if not content:
        return (TextBlock(text="(The tool failed and said nothing.)"),), True, "an error result without text is refused"
    reason = "an error result holds text alone here; it goes without the flag, and its text says that the tool failed"
    return (TextBlock(text="The tool failed. It returned:"), *content), False, reason


def fit_choice(
    tools: Sequence[ToolDefinition], options: RequestOptions, losses: list[Loss], *, service_tools: bool
) -> tuple[Sequence[ToolDefinition], RequestOptions]:
    """Return tools and options for a model that refuses a forced call: the descriptions demand it, with a row.

    Raises:
        CapabilityError: the request has tools of the service too, which might be called instead.
    """
    if not tools or (options.tool_choice != "required" and not isinstance(options.tool_choice, ToolChoice)):
        return tools, options
    if service_tools:
        text = f"{options.model} refuses a forced tool choice; ask with tool_choice='auto' and only the tool you want"
        raise CapabilityError(text, path="options.tool_choice")
    tools = demand_call(tools, options, losses, f"{options.model} refuses a forced call")
    return tools, attrs.evolve(options, tool_choice=None)


def fit_citations(messages: Sequence[Message], losses: list[Loss], *, answer_schema: bool) -> Sequence[Message]:
    """Return the messages with citations on all documents or on none.

    The service refuses them on some documents only, and beside an answer's schema.
    """
    cited: set[bool] = set()
    for message in messages:  # plain loops: every request of a conversation comes by here
        for block in message.content:
            kind = type(block)
            if kind is DocumentBlock or kind is ToolResultBlock:
                cited.update(document.cite for document in _documents(block))
    if True not in cited or (cited == {True} and not answer_schema):
        return messages
    reason = _NOT_BESIDE if answer_schema else _ALL_OR_NONE
    made = []
    for at, message in enumerate(messages):
        if any(document.cite is answer_schema for block in message.content for document in _documents(block)):
            losses.append(message_loss(at, reason, message.id, block_type="document"))
            content = [_with_cite(block, cite=not answer_schema) for block in message.content]
            made.append(attrs.evolve(message, content=content))
        else:
            made.append(message)
    return made


def _documents(block: Any) -> Iterator[DocumentBlock]:
    """Yield the documents of a block: itself, or those in a result."""
    for part in block.content if type(block) is ToolResultBlock else (block,):
        if type(part) is DocumentBlock:
            yield part


def _with_cite(block: Any, *, cite: bool) -> Any:
    if type(block) is DocumentBlock:
        return attrs.evolve(block, cite=cite)
    if type(block) is ToolResultBlock and any(type(part) is DocumentBlock for part in block.content):
        return attrs.evolve(block, content=[_with_cite(part, cite=cite) for part in block.content])
    return block


# ---- arguments


def rename_calls(messages: Sequence[Message], names: Mapping[str, Mapping[str, str]]) -> Sequence[Message]:
    """Return the messages with the arguments of earlier calls under the names that the tools have on the wire."""
    if not names:
        return messages
    back = {tool: {name: wire for wire, name in renamed.items()} for tool, renamed in names.items()}
    return [_with_calls(message, back) for message in messages]


def restore_message(message: Message, context: RequestContext) -> Message:
    """Return an answer with the arguments of its calls under the tools' own names."""
    return _with_calls(message, _names_in(context)) if ECHO in context.echo else message


def restore_events(events: AsyncIterator[StreamEvent], context: RequestContext) -> AsyncIterator[StreamEvent]:
    """Return the events of an answer with arguments under the tools' own names."""
    return _restored(events, context) if ECHO in context.echo else events


async def _restored(events: AsyncIterator[StreamEvent], context: RequestContext) -> AsyncIterator[StreamEvent]:
    """Yield the events with the names restored.

    The arguments of a call with renamed properties are one piece, at its end.
    """
    names = _names_in(context)
    held: dict[int, tuple[Mapping[str, str], list[str]]] = {}
    async for event in events:
        if isinstance(event, ToolUseStart) and event.name in names:
            held[event.index] = (names[event.name], [])
        elif isinstance(event, ToolUseInputDelta) and event.index in held:
            held[event.index][1].append(event.partial_json)
            continue
        elif isinstance(event, ToolUseEnd) and event.index in held:
            yield _joined(event.index, *held.pop(event.index))
        elif isinstance(event, ErrorEvent):
            for index in [*held]:  # cut off
                yield _joined(index, *held.pop(index))
        elif isinstance(event, BlockEnd) and isinstance(event.block, ToolUseBlock) and event.block.name in names:
            yield attrs.evolve(event, block=_with_names(event.block, names[event.block.name]))
            continue
        yield event
    for index in [*held]:
        yield _joined(index, *held.pop(index))


def _joined(index: int, names: Mapping[str, str], pieces: Sequence[str]) -> ToolUseInputDelta:
    text = "".join(pieces)
    with suppress(ValueError):  # no JSON: it stays unchanged
        text = dumps(_with_keys(loads(text), names)).decode() if text else text
    return ToolUseInputDelta(index=index, partial_json=text)


def _names_in(context: RequestContext) -> Mapping[str, Mapping[str, str]]:
    echoed = context.echo.get(ECHO) or {}
    return {context.tool_names.get(tool, tool): renamed for tool, renamed in echoed.items()}


def _with_calls(message: Message, names: Mapping[str, Mapping[str, str]]) -> Message:
    if not any(type(block) is ToolUseBlock and block.name in names for block in message.content):
        return message
    content = [
        _with_names(block, names[block.name]) if type(block) is ToolUseBlock and block.name in names else block
        for block in message.content
    ]
    return attrs.evolve(message, content=content)


def _with_names(call: ToolUseBlock, names: Mapping[str, str]) -> ToolUseBlock:
    if call.parse_error is not None:
        return call
    value = _with_keys(call.input, names)
    return attrs.evolve(call, input=value, raw_input=None if call.raw_input is None else dumps(value).decode())


def _with_keys(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        return {names.get(name, name): _with_keys(child, names) for name, child in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_keys(child, names) for child in value]
    return value
