"""Wolo: a session is a folder of messages, read here as one JSON document; a call and its result are one part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import orjson

from interlingua.types import (
    ContentBlock,
    ErrorEvent,
    Message,
    MessageComplete,
    MessageStatus,
    OpaqueBlock,
    Role,
    StopReason,
    StreamEvent,
    TextBlock,
    TextDelta,
    ThinkingBlock,
    ThinkingDelta,
    ToolResultBlock,
    ToolUseBlock,
    ToolUseEnd,
    ToolUseInputDelta,
    ToolUseStart,
    read_tool_input,
)
from interlingua_transcripts.imported import ImportedIds, short_id, time_of
from interlingua_transcripts.system import DocumentFormat
from interlingua_transcripts.transcript import Conversation, MessageGroup, ReadPlan, TranscriptError, Written
from interlingua_transcripts.values import Form

# Parts in these states have an answer: what the call gave, or why it failed.
ANSWERED = ("completed", "failed", "error", "partial", "interrupted")
_FAILED = ("failed", "error", "interrupted")
_STOPS = {"stop": StopReason.END_TURN, "length": StopReason.MAX_TOKENS, "tool_calls": StopReason.TOOL_USE}
_WORDS = {reason: word for word, reason in _STOPS.items()}


def _said(status: Any, part: Mapping[str, Any]) -> Sequence[Any] | None:
    """Return what a result says that makes a call's part complete or failed; nothing for a call without one."""
    return [part.get("output") or "", status in _FAILED] if status in ANSWERED else []


class Wolo(DocumentFormat):
    """Wolo's sessions as `{"session", "messages", "todos"}`; a list of messages is read as well."""

    name = "wolo"
    title = "Wolo"
    items = "messages"
    forms: ClassVar[Mapping[str, Form]] = {
        "finished": Form("the message's status", lambda value, _: [] if value else None),
        "status": Form("a call with a result, or without one", _said),
    }

    def detect(self, head: Sequence[Any]) -> str | None:
        """Recognise messages that hold parts."""
        document = head[0]
        messages = document.get("messages") if isinstance(document, dict) else None
        if not isinstance(messages, list) or not messages or "info" in document:
            return None
        own = [one for one in messages if isinstance(one, dict) and "role" in one and "parts" in one]
        return "" if len(own) == len(messages) else None

    def kind_of(self, value: Any) -> str:
        """Return `message/` with the role, or `session`."""
        return f"message/{value['role']}" if isinstance(value, dict) and "role" in value else "session"

    def plan(self, values: Sequence[Any]) -> ReadPlan:
        """Order the messages by their time, as Wolo does."""
        root = values[0] if isinstance(values[0], dict) else {}
        session = root.get("session") if isinstance(root.get("session"), dict) else {}
        session = session or {}
        places = [at for at, value in enumerate(values) if at and isinstance(value, dict)]
        places.sort(key=lambda at: _number(values[at].get("timestamp")))
        return ReadPlan(
            session_id=str(session.get("id") or ""),
            groups=[MessageGroup(str(values[at].get("id", at)), (at,)) for at in places],
            title=session.get("title"),
            cwd=session.get("workdir"),
        )

    def to_messages(
        self, group: MessageGroup, values: Sequence[Any], plan: ReadPlan, ids: ImportedIds
    ) -> list[Message]:
        """Return a message, and one for each part whose call was answered."""
        raw = values[0]
        at = time_of(raw.get("timestamp"))
        parts = [part for part in raw["parts"] if isinstance(part, dict)]
        blocks: list[ContentBlock] = []
        if raw.get("reasoning_content"):
            blocks.append(ThinkingBlock(text=raw["reasoning_content"]))
        blocks += [_block(part, ids) for part in parts]

        def message(role: Role, content: Sequence[ContentBlock], **facts: Any) -> Message:
            return ids.make_message(role, content, at, facts)

        made = []
        if blocks:
            made.append(message(Role(raw["role"]), blocks, **_facts(raw)))
        for part in parts:
            if part.get("type") == "tool" and part.get("status") in ANSWERED:
                call = ids.call(str(part["id"]))
                result = ToolResultBlock(
                    tool_use_id=call,
                    content=(TextBlock(text=str(part.get("output") or "")),),
                    is_error=part["status"] in _FAILED,
                    tool_name=part.get("tool"),
                )
                made.append(message(Role.TOOL, [result], parent_tool_use_id=call))
        return made

    def write(self, conversation: Conversation) -> Iterator[Written]:
        """Yield the session, then its messages; results go into the parts of their calls."""
        if not conversation.before:
            session = {
                "id": conversation.session_id,
                "title": conversation.title or "",
                "created_at": conversation.created_at.timestamp(),
                "workdir": conversation.cwd,
            }
            yield Written({"session": session, "messages": [], "todos": []})
        results = {
            block.tool_use_id: (message.id, block)
            for message in conversation.messages
            for block in message.content
            if isinstance(block, ToolResultBlock)
        }
        last = 0.0
        for message in conversation.messages:
            if message.role is Role.TOOL:
                continue
            last = max(message.created_at.timestamp(), last + 0.000001 if last else 0.0)
            yield _written(message, results, last)

    def gather(self, path: Path) -> bytes | None:
        """Combine the files of a session's folder; the path is the folder or its session.json."""
        folder = path.parent if path.name == "session.json" else path
        if not (folder / "session.json").is_file() or not (folder / "messages").is_dir():
            return None
        todos = folder / "todos.json"
        messages = [_loaded(each) for each in sorted((folder / "messages").glob("*.json"))]
        held = {"session": _loaded(folder / "session.json"), "messages": messages}
        return orjson.dumps({**held, "todos": _loaded(todos)} if todos.is_file() else held)

    def find(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        """Yield the folders of sessions, each named by its session.json."""
        return (home / ".wolo" / "sessions").glob("*/session.json")


def _loaded(path: Path) -> Any:
    try:
        return orjson.loads(path.read_bytes())
    except ValueError as error:
        raise TranscriptError(f"not JSON: {error}", path=str(path)) from error


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


# -- reading ----------------------------------------------------------------------------------------------------------
def _block(part: Mapping[str, Any], ids: ImportedIds) -> ContentBlock:
    if part.get("type") == "text":
        return TextBlock(text=part.get("text") or "")
    if part.get("type") == "tool":
        issued = str(part["id"])
        given = part.get("input")
        value = given if isinstance(given, dict) else {}
        return ToolUseBlock(id=ids.call(issued), provider_id=issued, name=str(part["tool"]), input=value)
    return OpaqueBlock(provider="wolo", kind=str(part.get("type")), data=part)


def _facts(raw: Mapping[str, Any]) -> dict[str, Any]:
    if raw.get("role") != "assistant":
        return {}
    word = raw.get("finish_reason")
    facts: dict[str, Any] = {}
    if raw.get("finished") is False:
        facts["status"] = MessageStatus.PARTIAL
    elif isinstance(word, str) and word:
        facts |= {"stop_reason": _STOPS.get(word, StopReason.OTHER), "stop_reason_raw": word}
    return facts


# -- writing ----------------------------------------------------------------------------------------------------------
def _written(message: Message, results: Mapping[str, tuple[str, ToolResultBlock]], at: float) -> Written:
    parts: list[dict[str, Any]] = []
    said = [message.id]
    for number, block in enumerate(message.content):
        if isinstance(block, TextBlock):
            parts.append({"id": short_id(f"{message.id}\0{number}"), "type": "text", "text": block.text})
        elif isinstance(block, ToolUseBlock):
            result = results.get(block.id)
            parts.append(_tool_part(block, None if result is None else result[1]))
            said += [result[0]] if result is not None else []
        elif isinstance(block, OpaqueBlock) and block.provider == "wolo":
            parts.append(dict(block.data))
    metadata = message.metadata
    reason = metadata.stop_reason
    made: dict[str, Any] = {
        "id": short_id(message.id, letters=12),
        "role": message.role.value,
        "parts": parts,
        "timestamp": at,
        "finished": metadata.status is not MessageStatus.PARTIAL,
        "finish_reason": "" if reason is None else _WORDS.get(reason, "stop"),
        "reasoning_content": "".join([block.text for block in message.content if isinstance(block, ThinkingBlock)]),
        "metadata": {},
    }
    return Written(made, tuple(said))


def _tool_part(block: ToolUseBlock, result: ToolResultBlock | None) -> dict[str, Any]:
    output = "" if result is None else "\n".join([one.text for one in result.content if isinstance(one, TextBlock)])
    status = "pending" if result is None else "error" if result.is_error else "completed"
    return {
        "id": block.provider_id or block.id,
        "type": "tool",
        "tool": block.name,
        "input": block.input,
        "output": output,
        "status": status,
        "start_time": 0.0,
        "end_time": 0.0,
    }


wolo = Wolo()


# -- what Wolo says of a running call and of a stream ------------------------------------------------------------------
PartStatus = Literal["pending", "running", "completed", "failed"]


def part_status(result: ToolResultBlock | None, *, started: bool = False) -> PartStatus:
    """Return the status of a call's part.

    Args:
        result: the call's result, None if it has no result yet.
        started: the tool runs.
    """
    if result is None:
        return "running" if started else "pending"
    return "failed" if result.is_error else "completed"


def to_stream_events(events: Iterable[StreamEvent]) -> Iterator[dict[str, Any]]:
    """Yield a stream's events as Wolo's: text-delta, reasoning-delta, tool-call, finish and error (WIRE.md, Wolo)."""
    calls: dict[int, tuple[ToolUseStart, list[str]]] = {}
    for event in events:
        if isinstance(event, TextDelta):
            yield {"type": "text-delta", "text": event.text}
        elif isinstance(event, ThinkingDelta):
            yield {"type": "reasoning-delta", "text": event.text}
        elif isinstance(event, ToolUseStart):
            calls[event.index] = (event, [])
        elif isinstance(event, ToolUseInputDelta):
            calls[event.index][1].append(event.partial_json)
        elif isinstance(event, ToolUseEnd):
            start, pieces = calls.pop(event.index)
            value = read_tool_input("".join(pieces))[0] if event.block is None else event.block.input
            yield {"type": "tool-call", "tool": start.name, "input": value, "id": start.provider_id or start.id}
        elif isinstance(event, MessageComplete):
            yield {"type": "finish", "reason": _WORDS.get(event.stop_reason, "stop")}
        elif isinstance(event, ErrorEvent):
            yield {"type": "error", "error": str(event.error), "error_type": type(event.error).__name__}
