"""Changes of tools and effort within a conversation, and functions as this API defines them (WIRE.md, Changes)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from interlingua.plugins import Loss
from interlingua.types import ChangeBlock, ContentBlock, Message, Role, ToolDefinition, replace, tools_at
from interlingua_chat_completions.tools import parameters_of

_REDEFINED = "a new definition of one of the request's own tools replaces it there; what was cached is read again"


def to_wire_function(tool: ToolDefinition, strict: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the definition of a function, with the schema of its strict form if it has one."""
    function: dict[str, Any] = {"type": "function", "name": tool.name}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = parameters_of(tool) if strict is None else strict
    function["strict"] = strict is not None
    return function


def to_wire_change(change: ChangeBlock) -> list[dict[str, Any]]:
    """Return the items of a change; tools that are removed are left out of the allowed ones (`allowed_tools`)."""
    items: list[dict[str, Any]] = []
    if change.tools_added:
        added = [to_wire_function(tool, None) for tool in change.tools_added]
        items.append({"type": "additional_tools", "role": "developer", "tools": added})
    if change.effort is not None:
        items.append({"type": "configuration_update", "reasoning": {"effort": change.effort}})
    return items


def merge_updates(messages: Sequence[Message]) -> Sequence[Message]:
    """Return messages without each effort that the next item replaces: the service refuses two such items in a row."""
    if sum(change.effort is not None for change in _changes(messages)) < 2:
        return messages
    merged, replaced = [*messages], False  # True where the next item is an update
    for at, message in reversed([*enumerate(messages)]):
        kept: list[ContentBlock] = []
        for block in reversed(message.content):
            if not isinstance(block, ChangeBlock):
                kept.insert(0, block)
                replaced = False
                continue
            kept.insert(0, replace(block, effort=None) if replaced else block)
            replaced = not block.tools_added and (replaced or block.effort is not None)
        if kept != [*message.content]:
            merged[at] = replace(message, content=kept)
    return merged


def redefine_tools(
    messages: Sequence[Message], tools: Sequence[ToolDefinition], losses: list[Loss]
) -> tuple[Sequence[Message], Sequence[ToolDefinition]]:
    """Return messages and tools with new definitions of the request's own tools in its list: no item replaces those."""
    names = {tool.name for tool in tools}
    changed = {tool.name: tool for change in _changes(messages) for tool in change.tools_added if tool.name in names}
    if not changed:
        return messages, tools
    for at, tool in enumerate(tools):
        if tool.name in changed:
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


def _changes(messages: Sequence[Message]) -> list[ChangeBlock]:
    system = [message for message in messages if message.role is Role.SYSTEM]
    return [block for message in system for block in message.content if isinstance(block, ChangeBlock)]


def allowed_tools(messages: Sequence[Message], tools: Sequence[ToolDefinition]) -> list[str] | None:
    """Return the names of the tools that may be called now, if an earlier tool may not."""
    changes = _changes(messages)
    if not any(change.tools_removed for change in changes):
        return None
    now = [tool.name for tool in tools_at(tools, messages)]
    ever = {tool.name for tool in tools} | {tool.name for change in changes for tool in change.tools_added}
    return None if ever == {*now} else now
