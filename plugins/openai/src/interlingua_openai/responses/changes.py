"""Changes of tools, effort and format, and functions as this API defines them (WIRE.md, Changes)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from interlingua.errors import CallerError
from interlingua.plugins import EMPTY, BlockLoss, Loss
from interlingua.types import (
    ChangeBlock,
    Message,
    RequestOptions,
    ToolDefinition,
    WireTool,
    changes_in,
    replace,
    tools_at,
)
from interlingua_chat_completions.tools import parameters_of, to_wire_answer_schema
from interlingua_openai.catalogue import RESPONSES
from interlingua_openai.responses.client_calls import call_type_of, is_declared

_SETTINGS = ("effort", "response_schema")  # that a `configuration_update` changes
_REDEFINED = "a new definition of one of the request's own tools replaces it there; what was cached is read again"


def to_wire_function(tool: ToolDefinition, strict: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the definition of a function, with the schema of its strict form if it has one."""
    function: dict[str, Any] = {"type": "function", "name": tool.name}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = parameters_of(tool) if strict is None else strict
    function["strict"] = strict is not None
    return function


def as_it_came(tool: ToolDefinition) -> dict[str, Any]:
    """Return a tool's definition in a caller's request; {} if it has none."""
    if not isinstance(tool, WireTool) or tool.api != RESPONSES:
        return {}
    if call_type_of(tool.extra) is not None:  # a tool of the service has no name, description or schema
        return dict(tool.extra)
    extra: Mapping[str, Any] = tool.extra if "type" in tool.extra else {"type": "function", **tool.extra}
    held: dict[str, Any] = {"name": tool.name, "description": tool.description or None, **extra}
    if extra["type"] == "function":
        held = {"parameters": tool.input_schema, **held}
    return {name: value for name, value in held.items() if value is not None}


def to_wire_definitions(
    tools: Iterable[ToolDefinition], write: Callable[[ToolDefinition], dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the definitions of tools; `write` makes those that did not come from a caller's request."""
    written: list[dict[str, Any]] = []
    space: Any = None
    for tool in tools:
        came = as_it_came(tool)
        if came and not is_declared(came):
            continue
        written_space, space = space, came.pop("namespace", None)
        if space is None:
            written.append(came or write(tool))
        elif space == written_space:
            written[-1]["tools"].append(came)
        else:
            written.append({"type": "namespace", **space, "tools": [came]})
    return written


def to_wire_change(
    change: ChangeBlock, at: int, losses: list[BlockLoss], kept: Mapping[str, Any] = EMPTY, own: Sequence[Any] = ()
) -> list[dict[str, Any]]:
    """Return the items of a change; tools that are removed are left out of the allowed ones (`allowed_tools`).

    Args:
        change: the change.
        at: its index in its message, for `losses`.
        losses: gets a row for what the format of answers does not carry.
        kept: the item of a caller's request, which is sent unchanged if the change is still the same.
        own: the service's own tools in that item, which are not in the change.
    """
    added = to_wire_definitions(change.tools_added, lambda tool: to_wire_function(tool, None))
    given = [_without_nulls(tool) for tool in kept.get("tools") or () if tool not in own]
    if kept and (added == given if given else from_wire_update(kept) == change):
        return [dict(kept)]
    items: list[dict[str, Any]] = []
    if added:
        items.append({"type": "additional_tools", "role": "developer", "tools": added})
    update: dict[str, Any] = {}
    if change.effort is not None:
        update["reasoning"] = {"effort": change.effort}
    if change.response_schema is not None:
        update["text"] = {"format": _format(change.response_schema, at, losses)}
    return [*items, {"type": "configuration_update", **update}] if update else items


def _without_nulls(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return a caller's definition as `as_it_came` returns it."""
    held = {name: value for name, value in tool.items() if value is not None}
    return {**held, "tools": [*map(_without_nulls, tool["tools"])]} if tool["type"] == "namespace" else held


def _format(schema: Mapping[str, Any], at: int, losses: list[BlockLoss]) -> dict[str, Any]:
    if not schema:
        return {"type": "text"}
    rows: list[Loss] = []
    made = to_wire_answer_schema(RequestOptions(model="", response_schema=schema), rows, object_root=True)
    losses += [BlockLoss(at, "change", row.verdict, row.reason) for row in rows]
    return {"type": "json_schema", **made}


def from_wire_update(item: Mapping[str, Any]) -> ChangeBlock | None:
    """Return the change that an item is; None for other items, and for changes of what only this API has."""
    members = item.keys() - {"type", "id"}
    if item.get("type") != "configuration_update" or not members or members - {"reasoning", "text"}:
        return None
    reasoning, text = item.get("reasoning", {"effort": None}), item.get("text")
    schema = _schema_of(text)
    if (text is not None) is not (schema is not None) or not isinstance(reasoning, Mapping) or len(reasoning) != 1:
        return None
    with suppress(CallerError, KeyError):
        return ChangeBlock(effort=reasoning["effort"], response_schema=schema)
    return None


def _schema_of(text: Any) -> Mapping[str, Any] | None:
    """Return the schema of answers in a `text` with nothing but a format, empty for any text; None for other ones."""
    form = text.get("format") if isinstance(text, Mapping) and text.keys() == {"format"} else None
    if not isinstance(form, Mapping):
        return None
    schema = form.get("schema") if form.get("type") == "json_schema" else None
    return EMPTY if form.get("type") == "text" else schema if isinstance(schema, Mapping) and schema else None


def merge_updates(messages: Sequence[Message]) -> Sequence[Message]:
    """Return messages with each update that another item of its kind follows moved into that one.

    The service refuses two such items in a row.
    """
    if sum(map(_is_update, changes_in(messages))) < 2:
        return messages
    merged = [[*message.content] for message in messages]
    last: tuple[int, int] | None = None  # place of an update behind which no item of another kind has come
    for at, message in enumerate(messages):
        for place, block in enumerate(message.content):
            if not isinstance(block, ChangeBlock) or block.tools_added:
                last = None
            if not isinstance(block, ChangeBlock) or not _is_update(block):
                continue
            if last is not None:
                early: Any = merged[last[0]][last[1]]
                merged[last[0]][last[1]] = replace(early, effort=None, response_schema=None)
                kept = {name: value for name in _SETTINGS if (value := getattr(block, name)) is not None}
                settings = {name: getattr(early, name) for name in _SETTINGS}
                merged[at][place] = replace(block, **{**settings, **kept})
            last = at, place
    return [
        message if made == [*message.content] else replace(message, content=made)
        for message, made in zip(messages, merged, strict=True)
    ]


def _is_update(change: ChangeBlock) -> bool:
    return any(getattr(change, name) is not None for name in _SETTINGS)


def redefine_tools(
    messages: Sequence[Message], tools: Sequence[ToolDefinition], losses: list[Loss]
) -> tuple[Sequence[Message], Sequence[ToolDefinition]]:
    """Return messages and tools with new definitions of the request's own tools in its list: no item replaces those."""
    names = {tool.name for tool in tools}
    changed = {tool.name: tool for change in changes_in(messages) for tool in change.tools_added if tool.name in names}
    if not changed:
        return messages, tools
    for at, tool in enumerate(tools):
        if tool != changed.get(tool.name, tool):
            losses.append(Loss(path=f"tools[{at}]", block_type="tool", verdict="rewritten", reason=_REDEFINED))
    kept = [_without_added(message, names) for message in messages]
    return kept, [changed.get(tool.name, tool) for tool in tools]


def _without_added(message: Message, names: Collection[str]) -> Message:
    blocks = [
        replace(block, tools_added=[tool for tool in block.tools_added if tool.name not in names])
        if isinstance(block, ChangeBlock)
        else block
        for block in message.content
    ]
    return replace(message, content=blocks) if blocks != [*message.content] else message


def allowed_tools(messages: Sequence[Message], tools: Sequence[ToolDefinition]) -> list[str] | None:
    """Return the names of the tools that may be called now, if an earlier tool may not."""
    changes = changes_in(messages)
    if not any(change.tools_removed for change in changes):
        return None
    now = [tool.name for tool in tools_at(tools, messages)]
    ever = {tool.name for tool in tools} | {tool.name for change in changes for tool in change.tools_added}
    return None if ever == {*now} else now
