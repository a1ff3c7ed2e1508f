"""Attocode: JSON Lines of messages, compactions and checkpoints, lines that are messages, and its answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, ClassVar, Literal

import attrs
import orjson

from interlingua.types import (
    DEFAULT_SESSION,
    CacheHint,
    ContentBlock,
    ImageBlock,
    MediaSource,
    Message,
    MessageMetadata,
    Provenance,
    Role,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
    read_tool_input,
)
from interlingua_transcripts.imported import ImportedIds, count_of, time_of, to_iso, usd_of
from interlingua_transcripts.system import SessionFormat, list_files
from interlingua_transcripts.transcript import Conversation, MessageGroup, ReadPlan, Written

_KINDS = {"message", "tool_call", "tool_result", "compaction", "checkpoint", "metadata"}
_FIELDS = {"role", "content", "toolCalls", "toolResults", "toolCallId", "metadata"}
_SUMMARY = "[Previous conversation summary]\n"


class Attocode(SessionFormat):
    """Attocode's session files, and its messages a line each."""

    name = "attocode"
    title = "Attocode"
    lacks: ClassVar[Set[str]] = frozenset({
        "thinking block", "model name", "token count", "mark of a stopped answer", "error message", "cost",
        "stop reason", "session id",
    })  # fmt: skip

    def detect(self, head: Sequence[Any]) -> str | None:
        """Recognise lines `{timestamp, type, data}`; `flat` for lines that are messages with its own field names."""
        lines = [line for line in head if isinstance(line, dict)]
        if lines and all(line.get("type") in _KINDS and "data" in line and "timestamp" in line for line in lines):
            return ""
        own = {"toolCalls", "toolResults", "toolCallId"}
        flat = lines and all("role" in line and set(line) <= _FIELDS for line in lines)
        return "flat" if flat and any(own & set(line) for line in lines) else None

    def plan(self, values: Sequence[Any]) -> ReadPlan:
        """Take messages and compactions in file order; a compaction drops nothing before it."""
        plan = ReadPlan(session_id="", version="")
        for at, value in enumerate(values):
            if not isinstance(value, dict):
                continue
            flat = "role" in value
            plan.version = "flat" if flat else plan.version
            kind = "message" if flat else value.get("type")
            data = value if flat else value.get("data")
            if kind == "metadata" and isinstance(data, dict):
                plan.session_id = str(data.get("id") or data.get("sessionId") or plan.session_id)
                plan.title = data.get("name") or plan.title
            if kind in ("message", "compaction") and isinstance(data, dict):
                if kind == "compaction":
                    plan.context = []
                if plan.context is not None:
                    plan.context.append(len(plan.groups))
                plan.groups.append(MessageGroup(str(at), (at,)))
        return plan

    def to_messages(
        self, group: MessageGroup, values: Sequence[Any], plan: ReadPlan, ids: ImportedIds
    ) -> list[Message]:
        """Return the message of a line, and one for each result on it."""
        value = values[0]
        data = value if "role" in value else value["data"]
        at = time_of(value.get("timestamp"))

        def message(role: Role, blocks: Sequence[ContentBlock], **facts: Any) -> Message:
            return ids.make_message(role, blocks, at, facts)

        if "role" not in data:
            return [message(Role.SYSTEM, [TextBlock(text=f"{_SUMMARY}{data.get('summary') or ''}")])]
        made = []
        role = Role(data["role"])
        blocks = _blocks(data.get("content"))
        if role is Role.TOOL:
            if data.get("toolCallId") is not None:
                call = ids.call(str(data["toolCallId"]))
                result = ToolResultBlock(tool_use_id=call, content=tuple(blocks))
                made.append(message(Role.TOOL, [result], parent_tool_use_id=call))
            elif blocks and not data.get("toolResults"):  # it answers no call
                made.append(message(Role.USER, blocks))
        else:
            blocks += [_call(raw, ids) for raw in data.get("toolCalls") or ()]
            if blocks:
                made.append(message(role, blocks))
        beside = blocks if role is Role.TOOL and data.get("toolCallId") is None else []
        for raw in data.get("toolResults") or ():
            block = _result(raw, ids)
            if beside:  # said of all results: the first has it
                block, beside = attrs.evolve(block, content=(*beside, *block.content)), []
            made.append(message(Role.TOOL, [block], parent_tool_use_id=block.tool_use_id))
        return made

    def write(self, conversation: Conversation) -> Iterator[Written]:
        """Yield a line for each message."""
        flat = "role" in next((value for value in conversation.before if isinstance(value, dict)), {})
        for message in conversation.messages:
            for data in _bodies(message, conversation):
                line = {"timestamp": to_iso(message.created_at), "type": "message", "data": data}
                yield Written(data if flat else line, (message.id,))

    def find(self, home: Path, environ: Mapping[str, str]) -> Iterator[str]:
        """Yield the sessions of the current folder: Attocode keeps them in each project."""
        return list_files(Path.cwd() / ".agent" / "sessions", "*.jsonl")


def _blocks(content: Any) -> list[ContentBlock]:
    if isinstance(content, str):
        return [TextBlock(text=content)] if content else []
    return [_block(part) for part in content or () if isinstance(part, dict)]


def _block(part: Mapping[str, Any]) -> ContentBlock:
    hint = CacheHint() if part.get("cache_control") else None
    source = part.get("source")
    if part.get("type") == "image" and isinstance(source, dict):
        kind = "url" if source.get("type") == "url" else "base64"
        given = MediaSource(kind="url" if kind == "url" else "base64", data=source["data"])
        return ImageBlock(source=given, media_type=source.get("media_type") or "", cache=hint)
    return TextBlock(text=part["text"], cache=hint)


def _call(raw: Mapping[str, Any], ids: ImportedIds) -> ToolUseBlock:
    issued = str(raw["id"])
    given = raw.get("arguments")
    value, error = (
        read_tool_input(given) if isinstance(given, str) else (given if isinstance(given, dict) else {}, None)
    )
    return ToolUseBlock(
        id=ids.call(issued),
        provider_id=issued,
        name=str(raw["name"]),
        input=value,
        raw_input=given if isinstance(given, str) else None,
        parse_error=raw.get("parseError") or error,
    )


def _result(raw: Mapping[str, Any], ids: ImportedIds) -> ToolResultBlock:
    found, error = raw.get("result"), raw.get("error")
    texts = [] if found is None and error is not None else [found if isinstance(found, str) else _json(found)]
    texts += [] if error is None else [str(error)]
    return ToolResultBlock(
        tool_use_id=ids.call(str(raw["callId"])),
        content=tuple([TextBlock(text=text) for text in texts]),
        is_error=error is not None,
        details=None if isinstance(found, str) else found,
    )


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()


def _bodies(message: Message, conversation: Conversation) -> Iterator[dict[str, Any]]:
    if message.role is Role.TOOL:
        for block in message.content:
            if isinstance(block, ToolResultBlock):
                own = conversation.issued_id(block.tool_use_id)
                texts = [part.text for part in block.content if isinstance(part, TextBlock)]
                others = _content([part for part in block.content if not isinstance(part, TextBlock)])
                if block.is_error:
                    *found, error = texts or [""]
                    value: Any = "\n".join(found) if found else None
                    if block.details is not None and found == [_json(block.details)]:
                        value = block.details
                    failed = {"callId": own, "result": value, "error": error}
                    yield {"role": "tool", "content": others, "toolResults": [failed]}
                elif block.details is not None and texts == [_json(block.details)] and not others:
                    yield {"role": "tool", "content": "", "toolResults": [{"callId": own, "result": block.details}]}
                else:
                    yield {"role": "tool", "content": _content(block.content), "toolCallId": own}
        return
    body: dict[str, Any] = {"role": message.role.value, "content": _content(message.content)}
    calls = [_written_call(block) for block in message.content if isinstance(block, ToolUseBlock)]
    yield {**body, "toolCalls": calls} if calls else body


def _content(blocks: Sequence[ContentBlock]) -> Any:
    parts = [part for block in blocks if (part := _part(block)) is not None]
    if all(set(part) == {"type", "text"} for part in parts):
        return "\n".join([part["text"] for part in parts])
    return parts


def _part(block: ContentBlock) -> dict[str, Any] | None:
    part: dict[str, Any]
    if isinstance(block, TextBlock):
        part = {"type": "text", "text": block.text}
    elif isinstance(block, ImageBlock) and block.source.kind in ("base64", "url"):
        source = {"type": block.source.kind, "media_type": block.media_type, "data": block.source.data}
        part = {"type": "image", "source": source}
    else:
        return None
    return {**part, "cache_control": {"type": "ephemeral"}} if block.cache is not None else part


def _written_call(block: ToolUseBlock) -> dict[str, Any]:
    given = block.input if block.raw_input is None else block.raw_input
    made: dict[str, Any] = {"id": block.provider_id or block.id, "name": block.name, "arguments": given}
    return {**made, "parseError": block.parse_error} if block.parse_error is not None else made


attocode = Attocode()


# -- an answer as Attocode has it --------------------------------------------------------------------------------------

_UNKNOWN = "unknown:"
ChatStop = Literal["end_turn", "tool_use", "max_tokens", "stop_sequence"]

_STOPS: dict[StopReason, ChatStop] = {
    StopReason.END_TURN: "end_turn",
    StopReason.TOOL_USE: "tool_use",
    StopReason.MAX_TOKENS: "max_tokens",
    StopReason.STOP_SEQUENCE: "stop_sequence",
}
_REASONS = {word: reason for reason, word in _STOPS.items()}


@attrs.frozen
class ChatResponse:
    """A message as Attocode's flat response object; every field is computed when it is read.

    Attributes:
        message: the answer.
    """

    message: Message

    @property
    def content(self) -> str:
        """All text."""
        return self.message.text

    @property
    def tool_calls(self) -> list[dict[str, Any]] | None:
        """`{id, name, arguments, parseError?}` per call, or None."""
        calls = [
            {"id": call.provider_id or call.id, "name": call.name, "arguments": call.input}
            | ({"parseError": call.parse_error} if call.parse_error else {})
            for call in self.message.tool_calls
        ]
        return calls or None

    @property
    def usage(self) -> dict[str, Any] | None:
        """`{inputTokens, outputTokens, cacheReadTokens?, cacheWriteTokens?, cost?}`, or None."""
        usage = self.message.metadata.usage
        if usage is None:
            return None
        optional = {
            "cacheReadTokens": usage.cached_input_tokens,
            "cacheWriteTokens": usage.cache_creation_input_tokens,
            "cost": None if usage.cost_usd is None else float(usage.cost_usd),
        }
        required = {"inputTokens": usage.input_tokens or 0, "outputTokens": usage.output_tokens or 0}
        return required | {name: value for name, value in optional.items() if value is not None}

    @property
    def model(self) -> str | None:
        """The model's name as the answer has it, else the canonical model id."""
        model = self.message.metadata.model
        return model if model is None else model.removeprefix(_UNKNOWN)

    @property
    def stop_reason(self) -> ChatStop | None:
        """One of four words, or None if no word fits."""
        reason = self.message.metadata.stop_reason
        return _STOPS.get(reason) if reason else None

    @property
    def thinking(self) -> str | None:
        """All shown reasoning, or None."""
        return "\n\n".join(block.text for block in self.message.thinking_blocks if block.text) or None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object, without the members that have no value."""
        optional = {
            "toolCalls": self.tool_calls,
            "usage": self.usage,
            "model": self.model,
            "stopReason": self.stop_reason,
            "thinking": self.thinking,
        }
        return {"content": self.content, **{name: value for name, value in optional.items() if value is not None}}


def read_chat_response(value: Mapping[str, Any], session_id: str = DEFAULT_SESSION) -> Message:
    """Read Attocode's response object as a message.

    Args:
        value: the JSON object.
        session_id: session id of the message.
    """
    ids = ImportedIds("attocode", session_id)
    usage, model, word = value.get("usage"), value.get("model"), value.get("stopReason")
    thinking = [ThinkingBlock(text=value["thinking"])] if value.get("thinking") else []
    calls = [_call(raw, ids) for raw in value.get("toolCalls") or ()]
    facts: dict[str, Any] = {}
    if isinstance(model, str) and model:
        known = model if ":" in model else f"{_UNKNOWN}{model}"
        facts |= {"model": known, "provider": known.partition(":")[0]}
    if word is not None:
        facts |= {"stop_reason": _REASONS.get(word, StopReason.OTHER), "stop_reason_raw": word}
    if usage is not None:
        cost = usd_of(usage.get("cost"))
        facts["usage"] = Usage(
            input_tokens=count_of(usage.get("inputTokens")),
            output_tokens=count_of(usage.get("outputTokens")),
            cached_input_tokens=count_of(usage.get("cacheReadTokens")),
            cache_creation_input_tokens=count_of(usage.get("cacheWriteTokens")),
            cost_usd=cost,
            pricing_version=None if cost is None else "source",
        )
    return Message(
        role=Role.ASSISTANT,
        session_id=session_id,
        content=[*thinking, *_blocks(value.get("content")), *calls],
        metadata=MessageMetadata(provenance=Provenance.IMPORTED, **facts),
    )
