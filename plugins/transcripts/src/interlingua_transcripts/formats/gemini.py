"""Gemini CLI chats: one JSON document, or a log whose lines may replace and rewind; read only (WIRE.md, Read only)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from interlingua.types import (
    ContentBlock,
    ImageBlock,
    MediaSource,
    Message,
    OpaqueBlock,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
)
from interlingua_transcripts.imported import ImportedIds, count_of, time_of
from interlingua_transcripts.system import DocumentFormat, load_entry
from interlingua_transcripts.transcript import MessageGroup, Note, ReadPlan

_SHOWN_ONLY = {"info", "error", "warning", "choice"}
_BY_MODEL = {"gemini", "model"}


class GeminiCli(DocumentFormat):
    """Gemini CLI's chats, the old documents and the new logs."""

    name = "gemini"
    title = "Gemini CLI"
    items = "messages"
    writable = False

    def detect(self, head: Sequence[Any]) -> str | None:
        """Recognise the record of a conversation by its ids and times."""
        first = head[0]
        if isinstance(first, dict) and {"sessionId", "startTime"} <= set(first):
            return "json" if "messages" in first else "jsonl"
        return None

    def parse(self, data: bytes, document: Any = None) -> tuple[list[bytes], list[Any]]:
        """Return the lines of a log, or the pieces of a document."""
        try:
            return super().parse(data, document)
        except (TypeError, ValueError):
            entries = [line for line in data.split(b"\n") if line.strip()]
            return entries, [load_entry(entry) for entry in entries]

    def join(self, entries: Sequence[bytes]) -> bytes:  # type: ignore[override]
        """Return a log, or a document where the first entry is one without its messages."""
        entries = list(entries)
        if entries and b'"messages":null' in entries[0].replace(b" ", b""):
            return super().join(entries)
        return b"".join([entry + b"\n" for entry in entries])

    def kind_of(self, value: Any) -> str:
        """Return the message's type, `$set`, `$rewindTo` or `record`."""
        if not isinstance(value, dict):
            return "not an object"
        return str(value.get("type") or next((name for name in value if name.startswith("$")), "record"))

    def plan(self, values: Sequence[Any]) -> ReadPlan:
        """Replay the log: a message with a known id replaces, `$rewindTo` drops, `$set` of messages starts anew."""
        root = values[0] if isinstance(values[0], dict) else {}
        plan = ReadPlan(
            session_id=str(root.get("sessionId", "")),
            version="json" if "messages" in root else "jsonl",
            title=root.get("summary"),
        )
        order: dict[str, int] = {}
        for at, value in enumerate(values):
            if not at or not isinstance(value, dict):
                continue
            if "$rewindTo" in value:
                names = list(order)
                start = names.index(value["$rewindTo"]) if value["$rewindTo"] in order else 0
                for name in names[start:]:
                    plan.branches[order.pop(name)] = "rewound"
            elif isinstance(value.get("$set"), dict) and "messages" in value["$set"]:
                plan.branches.update(dict.fromkeys(order.values(), "replaced"))
                plan.notes.append(Note(at, "a checkpoint replaces all messages; those before it are kept beside"))
                order = {f"set{at}": at}
            elif value.get("type") and value["type"] not in _SHOWN_ONLY:
                order[str(value.get("id", at))] = at
        answered = frozenset(_answered(values))
        plan.groups = [MessageGroup(name, (at,), answered) for name, at in order.items()]
        return plan

    def to_messages(
        self, group: MessageGroup, values: Sequence[Any], plan: ReadPlan, ids: ImportedIds
    ) -> list[Message]:
        """Return a message, and one for each result of its calls."""
        value = values[0]
        listed = value["$set"]["messages"] if "$set" in value else [value]
        return [one for raw in listed if raw.get("type") not in _SHOWN_ONLY for one in _messages(raw, ids, group.facts)]

    def find(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        """Yield the chats of every project."""
        for pattern in ("*/chats/session-*.json", "*/chats/session-*.jsonl"):
            yield from (home / ".gemini" / "tmp").glob(pattern)


def _answered(values: Sequence[Any]) -> Iterator[str]:
    """Yield the ids of the calls that have their results beside them; a user's message may repeat these results."""
    for value in values:
        if not isinstance(value, dict):
            continue
        setting = value.get("$set")
        if isinstance(setting, dict) and isinstance(setting.get("messages"), list):
            yield from _answered(setting["messages"])
        calls = value.get("toolCalls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict) and call.get("result") is not None:
                yield str(call.get("id"))


def _messages(raw: Mapping[str, Any], ids: ImportedIds, answered: frozenset[str]) -> Iterator[Message]:
    at = time_of(raw.get("timestamp"))
    calls = [call for call in raw.get("toolCalls") or () if isinstance(call, dict)]
    by_model = raw.get("type") in _BY_MODEL
    content = raw.get("content")
    parts = content if isinstance(content, list) else []
    answers = [part["functionResponse"] for part in parts if is_answer(part)]
    blocks = _thoughts(raw) + read_parts([part for part in parts if not is_answer(part)] if answers else content, ids)
    if not any(isinstance(block, ToolUseBlock) for block in blocks):
        blocks += [_call(call, ids) for call in calls]
    facts: dict[str, Any] = {}
    if by_model and isinstance(raw.get("model"), str):
        facts = {"provider": "google", "api": "generate", "model": f"google:{raw['model']}"}
        if isinstance(raw.get("tokens"), dict):
            facts["usage"] = _usage(raw["tokens"])

    def message(role: Role, content: Sequence[ContentBlock], **known: Any) -> Message:
        return ids.make_message(role, content, at, known)

    for answer in answers:
        issued = str(answer.get("id") or answer.get("name"))
        if issued not in answered:
            block = read_result({"functionResponse": answer}, ids)
            yield message(Role.TOOL, [block], parent_tool_use_id=block.tool_use_id)
    if blocks:
        yield message(Role.ASSISTANT if by_model else Role.USER, blocks, **facts)
    for call in calls:
        if call.get("result") is None:
            continue
        own = ids.call(str(call["id"]))
        result = ToolResultBlock(
            tool_use_id=own,
            content=tuple(_result_parts(call["result"])),
            is_error=call.get("status") in ("error", "cancelled"),
            tool_name=call.get("name"),
            details=call.get("resultDisplay"),
        )
        yield message(Role.TOOL, [result], parent_tool_use_id=own)


def is_answer(part: Any) -> bool:
    """Tell whether a part is the result of a call."""
    return isinstance(part, dict) and isinstance(part.get("functionResponse"), dict)


def read_result(part: Mapping[str, Any], ids: ImportedIds, *, failed: bool = False) -> ToolResultBlock:
    """Return the result that a part holds; a call without an id has its name for one."""
    answer = part["functionResponse"]
    return ToolResultBlock(
        tool_use_id=ids.call(str(answer.get("id") or answer.get("name"))),
        content=tuple(_result_parts(part)),
        is_error=failed,
        tool_name=answer.get("name"),
    )


def _thoughts(raw: Mapping[str, Any]) -> list[ContentBlock]:
    found: list[ContentBlock] = []
    for thought in raw.get("thoughts") or ():
        if isinstance(thought, dict):
            words = [str(thought[name]) for name in ("subject", "description") if thought.get(name)]
            found.append(ThinkingBlock(text="\n".join(words)))
    return found


def read_parts(content: Any, ids: ImportedIds) -> list[ContentBlock]:
    """Return the blocks of a message's parts, which may be a string."""
    listed = content if isinstance(content, list) else [content] if content else []
    return [_part(part, ids) for part in listed if part]


def _part(part: Any, ids: ImportedIds) -> ContentBlock:
    if isinstance(part, str):
        return TextBlock(text=part)
    if isinstance(part.get("text"), str):
        signature = part.get("thoughtSignature")
        if part.get("thought"):
            return ThinkingBlock(text=part["text"], signature=signature)
        return TextBlock(text=part["text"], signature=signature)
    if isinstance(part.get("functionCall"), dict):
        return _call(part["functionCall"], ids, part.get("thoughtSignature"))
    data = part.get("inlineData")
    if isinstance(data, dict) and str(data.get("mimeType", "")).startswith("image/"):
        return ImageBlock(source=MediaSource(kind="base64", data=data["data"]), media_type=data["mimeType"])
    return OpaqueBlock(provider="google", kind=next(iter(part), "part"), data=part)


def _call(call: Mapping[str, Any], ids: ImportedIds, signature: str | None = None) -> ToolUseBlock:
    issued = str(call.get("id") or call["name"])
    value = call.get("args") if isinstance(call.get("args"), dict) else {}
    own = ids.call(issued)
    return ToolUseBlock(id=own, provider_id=issued, name=str(call["name"]), input=value or {}, signature=signature)


def _result_parts(result: Any) -> Iterator[ContentBlock]:
    for part in result if isinstance(result, list) else [result]:
        answer = part.get("functionResponse") if isinstance(part, dict) else None
        if isinstance(answer, dict):
            response = answer.get("response")
            output = response.get("output", response.get("error")) if isinstance(response, dict) else response
            yield TextBlock(text=output if isinstance(output, str) else orjson.dumps(response).decode())
        elif isinstance(part, str):
            yield TextBlock(text=part)
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            yield TextBlock(text=part["text"])


def _usage(raw: Mapping[str, Any]) -> Usage:
    output, thoughts = count_of(raw.get("output")), count_of(raw.get("thoughts"))
    return Usage(
        input_tokens=count_of(raw.get("input")),
        output_tokens=None if output is None else output + (thoughts or 0),
        cached_input_tokens=count_of(raw.get("cached")),
        reasoning_tokens=thoughts,
    )


gemini = GeminiCli()
