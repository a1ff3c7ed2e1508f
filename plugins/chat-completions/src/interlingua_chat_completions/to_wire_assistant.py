"""An assistant turn back to the wire: text, reasoning where the service wants it, calls as it made them.

Never invents reasoning, and sends a call's arguments as the very string that came (REGRESSIONS case 14).
The message writer comes in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.json import EMPTY, dumps
from interlingua.plugins.wire import BlockLoss
from interlingua.types.blocks import (
    AudioBlock,
    ContentBlock,
    OpaqueBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
)
from interlingua.types.messages import Message
from interlingua_chat_completions.chunks import is_own_chunk, to_wire_chunks
from interlingua_chat_completions.dialect import Dialect

_UNSIGNED = "reasoning has no signature on this wire; its text is kept"


def to_wire_assistant(
    message: Message, provider: str, dialect: Dialect, rows: list[BlockLoss], *, thinking: bool
) -> dict[str, Any] | None:
    """Write an assistant message, or None when nothing of it can be said on this wire."""
    usual = _usual(message, dialect)
    if usual is not None:
        return usual
    origin = message.metadata.origin
    own = origin is not None and origin.provider == provider
    replay = _replay(message) if own else EMPTY
    body: dict[str, Any] = {"role": "assistant"}
    content = body["content"] = _content(message, replay, dialect, rows)
    body.update(_reasoning(message, replay, dialect, rows, thinking=thinking))
    audio = replay.get("audio")
    if audio and any(isinstance(block, AudioBlock) for block in message.content):
        body["audio"] = {"id": audio}
    body.update(_calls(message, replay, rows, own=own))
    if content is None:
        if len(body) == 2:
            return None
        body["content"] = dialect.empty_content if "tool_calls" in body else ""
    return body


def _usual(message: Message, dialect: Dialect) -> dict[str, Any] | None:
    """Write text and calls that come from elsewhere the short way; None: it is not that, or this service wants more."""
    if message.metadata.provider_raw is not None or dialect.content_chunks or dialect.reasoning_missing is not None:
        return None
    texts: list[str] = []
    calls: list[dict[str, Any]] = []
    for block in message.content:
        if type(block) is TextBlock and not block.citations and block.cache is None:
            texts.append(block.text)
        elif type(block) is ToolUseBlock and block.raw_input is None and block.parse_error is None:
            function = {"name": block.name, "arguments": dumps(block.input).decode()}
            calls.append({"id": block.id, "type": "function", "function": function})
        else:
            return None
    if not texts:
        return None
    body: dict[str, Any] = {"role": "assistant", "content": texts[0] if len(texts) == 1 else "\n".join(texts)}
    if calls:
        body["tool_calls"] = calls
    return body


def _replay(message: Message) -> Mapping[str, Any]:
    raw = message.metadata.provider_raw
    replay = raw.get("replay") if raw is not None else None
    return replay if isinstance(replay, dict) else EMPTY


def _content(message: Message, replay: Mapping[str, Any], dialect: Dialect, rows: list[BlockLoss]) -> Any:
    texts = []
    for at, block in enumerate(message.content):
        if isinstance(block, TextBlock):
            texts.append(block.text)
            if block.citations:
                rows.append(BlockLoss(at, block.type, "rewritten", "citations have no place in a request on this wire"))
            if block.cache is not None:
                rows.append(BlockLoss(at, block.type, "rewritten", "assistant text takes no cache marker on this wire"))
        elif not _said_elsewhere(block, replay, dialect):
            rows.append(BlockLoss(at, block.type, "dropped", "an assistant turn cannot carry it on this wire"))
    if replay.get("refusal") and texts and dialect.refusal_parts:
        said = [{"type": "text", "text": text} for text in texts[:-1]]
        return [*said, {"type": "refusal", "refusal": texts[-1]}]  # a refusal stands last (slots.py)
    if dialect.content_chunks:
        return to_wire_chunks(message, "\n".join(texts), closed=replay.get("thinking_closed"))
    return "\n".join(texts) if texts else None


def _said_elsewhere(block: ContentBlock, replay: Mapping[str, Any], dialect: Dialect) -> bool:
    if isinstance(block, AudioBlock):
        return bool(replay.get("audio"))
    if isinstance(block, OpaqueBlock) and dialect.content_chunks:
        return is_own_chunk(block)
    if isinstance(block, OpaqueBlock):
        return dialect.reasoning_details and block.data in (replay.get("reasoning_details") or ())
    return isinstance(block, ThinkingBlock | RedactedThinkingBlock | ToolUseBlock)


def _reasoning(
    message: Message, replay: Mapping[str, Any], dialect: Dialect, rows: list[BlockLoss], *, thinking: bool
) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    thoughts = [block.text for block in message.content if isinstance(block, ThinkingBlock)]
    redacted = [at for at, block in enumerate(message.content) if isinstance(block, RedactedThinkingBlock)]
    details = replay.get("reasoning_details") if dialect.reasoning_details else None
    if details and (thoughts or redacted or any(isinstance(block, OpaqueBlock) for block in message.content)):
        return {"reasoning_details": details}
    reason = "encoded reasoning has no place on this wire"
    rows += [BlockLoss(at, "redacted_thinking", "dropped", reason) for at in redacted]
    if dialect.reasoning_echo is None:
        return fields
    if thoughts:
        fields[dialect.reasoning_echo] = "".join(thoughts)
        rows += [BlockLoss(at, "thinking", "rewritten", _UNSIGNED) for at in _signed(message)]
    elif dialect.reasoning_missing is not None and thinking and message.tool_calls():
        fields[dialect.reasoning_echo] = dialect.reasoning_missing
    return fields


def _signed(message: Message) -> list[int]:
    return [at for at, block in enumerate(message.content) if isinstance(block, ThinkingBlock) and block.signature]


def _calls(message: Message, replay: Mapping[str, Any], rows: list[BlockLoss], *, own: bool) -> dict[str, Any]:
    custom = replay.get("custom_calls") or ()
    entries: list[dict[str, Any]] = []
    for at, block in enumerate(message.content):
        if not isinstance(block, ToolUseBlock):
            continue
        if block.id in custom and isinstance(block.input.get("input"), str):
            inner = {"name": block.name, "input": block.input["input"]}
            entries.append({"id": block.id, "type": "custom", "custom": inner})
            continue
        function = {"name": block.name, "arguments": _arguments(block, at, rows, own=own)}
        entries.append({"id": block.id, "type": "function", "function": function})
    return {"tool_calls": entries} if entries else {}


def _arguments(block: ToolUseBlock, at: int, rows: list[BlockLoss], *, own: bool) -> str:
    raw = block.raw_input
    if raw is not None and not raw.strip():
        return "{}"
    if own and raw is not None:
        return raw
    if block.parse_error is not None:
        rows.append(BlockLoss(at, block.type, "rewritten", "its arguments are no JSON; sent inside a JSON object"))
        return dumps({"invalid_arguments": raw or ""}).decode()
    if raw is not None and raw.lstrip().startswith("{"):
        return raw
    return dumps(block.input).decode()
