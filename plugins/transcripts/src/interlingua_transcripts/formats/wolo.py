"""Wolo: a session is a folder of messages, read here as one JSON document; a call and its result are one part."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Literal

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
from interlingua_transcripts.loading import dump_document, load_unchanged
from interlingua_transcripts.system import DocumentFormat, list_files
from interlingua_transcripts.transcript import (
    Conversation,
    MessageGroup,
    ReadPlan,
    SessionPlace,
    TranscriptError,
    Written,
)
from interlingua_transcripts.values import Form

# Parts in these states have an answer: what the call gave, or why it failed.
ANSWERED = ("completed", "failed", "error", "partial", "interrupted")
_FAILED = ("failed", "error", "interrupted")
_FILE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,120}")
_STOPS = {"stop": StopReason.END_TURN, "length": StopReason.MAX_TOKENS, "tool_calls": StopReason.TOOL_USE}
_WORDS = {reason: word for word, reason in _STOPS.items()}


def _said(status: Any, part: Mapping[str, Any]) -> Sequence[Any] | None:
    """Return what a result says that makes a call's part complete or failed; nothing for a call without one."""
    return [part.get("output") or "", status in _FAILED] if status in ANSWERED else []


class Wolo(DocumentFormat):
    """Wolo's sessions as `{"session", "messages", "todos"}`; a list of messages is read as well."""

    name = "wolo"
    title = "Wolo"
    lacks: ClassVar[Set[str]] = frozenset(
        {
            "signature of thinking",
            "model name",
            "token count",
            "image",
            "mark of a stopped answer",
            "error message",
            "cost",
        }
    )
    items = "messages"
    results_in_calls = True
    forms: ClassVar[Mapping[str, Form]] = {
        "finished": Form("the message's status", lambda value, _: [] if value else None),
        "status": Form("a call with a result, or without one", _said),
    }

    def detect(self, head: Sequence[Any]) -> str | None:
        """Recognise messages that hold parts."""
        document = head[0]
        messages = document.get("messages") if isinstance(document, dict) else document
        if not isinstance(messages, list) or not messages or (isinstance(document, dict) and "info" in document):
            return None
        return "" if all(map(_is_message, messages)) else None

    def pieces(self, document: Any) -> list[Any]:
        """Return the values of the entries; of a plain list of messages, the first is None."""
        return [None, *document] if isinstance(document, list) else super().pieces(document)

    def kind_of(self, value: Any) -> str:
        """Return `message/` with the role, or `session`."""
        return f"message/{value['role']}" if isinstance(value, dict) and "role" in value else "session"

    def plan(self, values: Sequence[Any]) -> ReadPlan:
        """Order the messages by their time, as Wolo does."""
        root = values[0] if isinstance(values[0], dict) else {}
        session = root.get("session") if isinstance(root.get("session"), dict) else {}
        session = session or {}
        places = [at for at, value in enumerate(values) if at and isinstance(value, dict)]
        times: dict[int, float] = {}
        for at in places:  # a message without a time has the time of the message before it
            times[at] = _number(values[at].get("timestamp"), times.get(at - 1, _number(session.get("created_at"))))
        places.sort(key=times.__getitem__)
        return ReadPlan(
            session_id=str(session.get("id") or ""),
            groups=[MessageGroup(str(values[at].get("id", at)), (at,), times[at]) for at in places],
            title=session.get("title"),
            cwd=session.get("workdir"),
        )

    def to_messages(
        self, group: MessageGroup, values: Sequence[Any], plan: ReadPlan, ids: ImportedIds
    ) -> list[Message]:
        """Return a message, and one for each part whose call was answered."""
        raw = values[0]
        at = time_of(group.facts)
        parts = [part for part in raw["parts"] if isinstance(part, dict)]
        blocks: list[ContentBlock] = []
        if raw.get("reasoning_content"):
            blocks.append(ThinkingBlock(text=raw["reasoning_content"]))
        tool_parts = [part for part in parts if part.get("type") == "tool"]
        calls = ids.calls(str(part.get("id", f"{group.key}.{number}")) for number, part in enumerate(tool_parts))
        tools = iter(calls)
        blocks += [_call(part, next(tools)) if part.get("type") == "tool" else _block(part) for part in parts]

        made = []
        if blocks:
            made.append(ids.make_message(Role(raw["role"]), blocks, at, _facts(raw)))
        for part, call in zip(tool_parts, calls, strict=True):
            if part.get("status") in ANSWERED:
                result = ToolResultBlock(
                    tool_use_id=call,
                    content=(TextBlock(text=str(part.get("output") or "")),),
                    is_error=part["status"] in _FAILED,
                    tool_name=part.get("tool"),
                )
                ended = time_of(part["end_time"]) if _number(part.get("end_time")) else at
                made.append(ids.make_message(Role.TOOL, [result], ended, {"parent_tool_use_id": call}))
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
        results: dict[str, list[tuple[Message, ToolResultBlock]]] = {}
        for message in conversation.messages:
            for block in message.tool_results:
                results.setdefault(block.tool_use_id, []).append((message, block))
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
        return dump_document({**held, "todos": _loaded(todos)} if todos.is_file() else held)

    def scatter(self, data: bytes, name: str) -> Mapping[str, bytes] | None:
        """Return session.json, todos.json and a file for each message, named by its id."""
        document = load_unchanged(data)
        if not isinstance(document, dict):
            raise TranscriptError("a list of messages has no session: it cannot be written as a folder")
        session, todos = document.get("session") or {}, document.get("todos")
        files = {"session.json": dump_document({**session, "id": session.get("id") or name})}
        if todos is not None:
            files["todos.json"] = dump_document({"todos": todos} if isinstance(todos, list) else todos)
        for message in document["messages"]:
            own = message.get("id")
            path = f"messages/{own}.json"
            if not isinstance(own, str) or _FILE_NAME.fullmatch(own) is None or path in files:
                raise TranscriptError(f"the id of a message, {own!r}, cannot name its file")
            files[path] = dump_document(message)
        return files

    def place(
        self, session_id: str, cwd: str, created_at: datetime, *, home: Path, environ: Mapping[str, str]
    ) -> SessionPlace | None:
        """Return the main file of the session's folder."""
        folder = home / ".wolo" / "sessions" / session_id
        return SessionPlace(folder / "session.json", ("wolo", "session", "resume", session_id))

    def find(self, home: Path, environ: Mapping[str, str]) -> Iterator[str]:
        """Yield the folders of sessions, each named by its session.json."""
        return list_files(home / ".wolo" / "sessions", "*/session.json")


def _loaded(path: Path) -> Any:
    try:
        return load_unchanged(path.read_bytes())
    except ValueError as error:
        raise TranscriptError(f"not JSON: {error}", path=str(path)) from error


def _number(value: Any, otherwise: float = 0.0) -> float:
    return float(value) if isinstance(value, int | float) else otherwise


def _is_message(value: Any) -> bool:
    """Tell whether a value is a message: its parts say by a type what they are."""
    if not isinstance(value, dict) or "role" not in value or not isinstance(value.get("parts"), list):
        return False
    return all(isinstance(part, dict) and "type" in part for part in value["parts"])


# -- reading ----------------------------------------------------------------------------------------------------------
def _call(part: Mapping[str, Any], own: str) -> ToolUseBlock:
    given = part.get("input")
    value = given if isinstance(given, dict) else {}
    issued = str(part["id"]) if "id" in part else None  # Wolo makes one when it reads the part
    return ToolUseBlock(id=own, provider_id=issued, name=str(part["tool"]), input=value)


def _block(part: Mapping[str, Any]) -> ContentBlock:
    if part.get("type") == "text":
        return TextBlock(text=part.get("text") or "")
    return OpaqueBlock(provider="wolo", kind=str(part.get("type")), data=part)


def _facts(raw: Mapping[str, Any]) -> dict[str, Any]:
    if raw.get("role") != "assistant":
        return {}
    word = raw.get("finish_reason")
    facts: dict[str, Any] = {}
    if raw.get("reasoning_content"):  # only GLM's thinking mode makes it, and takes it back
        facts |= {"provider": "zai", "api": "chat", "model": "zai:glm"}
    if raw.get("finished") is False:
        facts["status"] = MessageStatus.PARTIAL
    elif isinstance(word, str) and word:
        facts |= {"stop_reason": _STOPS.get(word, StopReason.OTHER), "stop_reason_raw": word}
    return facts


# -- writing ----------------------------------------------------------------------------------------------------------
def _written(message: Message, results: Mapping[str, Sequence[tuple[Message, ToolResultBlock]]], at: float) -> Written:
    parts: list[dict[str, Any]] = []
    said = [message.id]
    for number, block in enumerate(message.content):
        if isinstance(block, TextBlock):
            parts.append({"id": short_id(f"{message.id}\0{number}"), "type": "text", "text": block.text})
        elif isinstance(block, ToolUseBlock):
            answers = results.get(block.id, ())
            parts.append(_tool_part(message, block, answers))
            said += [answer.id for answer, _ in answers]
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


def _tool_part(
    message: Message, block: ToolUseBlock, answers: Sequence[tuple[Message, ToolResultBlock]]
) -> dict[str, Any]:
    """Return the part of a call and its results; two results of one call, which Wolo never has, share its output."""
    texts = [one.text for _, result in answers for one in result.content if isinstance(one, TextBlock)]
    return {
        "id": block.provider_id or block.id,
        "type": "tool",
        "tool": block.name,
        "input": block.input,
        "output": "\n".join(texts),
        "status": part_status(answers[-1][1] if answers else None),
        "start_time": message.created_at.timestamp() if answers else 0.0,
        "end_time": answers[-1][0].created_at.timestamp() if answers else 0.0,
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
