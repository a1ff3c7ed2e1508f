"""Zed's threads: a database whose rows are JSON documents compressed by Zstandard; read only (WIRE.md, Zed)."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from typing import Any, ClassVar

import orjson

from interlingua.types import (
    ContentBlock,
    ImageBlock,
    MediaSource,
    Message,
    OpaqueBlock,
    RedactedThinkingBlock,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
    read_tool_input,
)
from interlingua_transcripts.imported import ImportedIds, count_of, time_of
from interlingua_transcripts.system import SessionFormat
from interlingua_transcripts.transcript import HeldSession, MessageGroup, Note, ReadPlan, TranscriptError

_LARGEST = 1 << 30  # bytes that one thread may unpack to
_RESUMED = "Continue where you left off"  # what the program sends for this
_KEPT = 80_000  # bytes of the user's messages that it sends before a summary, the newest
_SUMMARY = "The previous conversation was compacted. Use this summary as context:\n\n"  # as above
_LINK = (
    "name",
    "abs_path",
    "file_path",
    "path",
    "url",
    "base_ref",
    "id",
)  # what a mention is called by, the best first
_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM}


class Zed(SessionFormat):
    """The database of Zed's agent panel; an entry is a row, its document under `data`."""

    name = "zed"
    title = "Zed"
    writable = False
    several = True
    beside: ClassVar[Sequence[str]] = (
        "summary", "folder_paths", "data.title", "data.summary", "data.detailed_summary",
        "data.initial_project_snapshot",
        "data.subagent_context", "data.draft_prompt", "data.imported", "data.thinking_enabled",
        "data.messages.Agent.content.ToolUse.raw_input", "data.messages.Agent.content.ToolUse.is_input_complete",
    )  # fmt: skip

    def detect(self, head: Sequence[Any]) -> str | None:
        """Recognise rows by their columns; the first document has the version."""
        rows = [line for line in head if line is not None]
        if not rows or not all(
            isinstance(row, dict) and {"id", "summary", "updated_at", "data"} <= set(row) for row in rows
        ):
            return None
        return str(next((row["data"]["version"] for row in rows if _is_thread(row) and "version" in row["data"]), ""))

    def kind_of(self, value: Any) -> str:
        """Return `thread`."""
        return "thread" if _is_thread(value) else "unreadable thread"

    def plan(self, values: Sequence[Any]) -> ReadPlan:
        """Take the threads one after the other; each is a session."""
        found = [at for at, value in enumerate(values) if _is_thread(value)]
        plan = ReadPlan(session_id="", groups=[MessageGroup(str(values[at]["id"]), (at,)) for at in found])
        plan.sessions = [_facts(values[at]) for at in found]
        plan.version = self.detect([values[at] for at in found]) or ""
        plan.notes += [
            Note(at, f"thread {value.get('id')} cannot be read: {value.get('unread')}")
            for at, value in enumerate(values)
            if isinstance(value, dict) and "unread" in value
        ]
        if found and (seen := plan.sessions[-1].context) is not None:
            plan.context = [(len(found) - 1, number) for number in seen]
        elif len(found) > 1:
            plan.context = [len(found) - 1]
        if len(found) > 1:
            plan.notes.append(Note(None, f"{len(found)} threads are in this file"))
        return plan

    def to_messages(
        self, group: MessageGroup, values: Sequence[Any], plan: ReadPlan, ids: ImportedIds
    ) -> list[Message]:
        """Return the messages of a thread."""
        row = values[0]
        thread = _Thread(row["data"], time_of(row.get("created_at"), time_of(row.get("updated_at"))), ids)
        return [message for raw in row["data"]["messages"] for message in thread.messages(raw)]

    def gather(self, path: Path) -> bytes | None:
        """Return the rows of a database as lines, without unpacking them twice; None for another file."""
        if path.name != "threads.db":
            return None
        try:
            with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
                cursor = database.execute("SELECT * FROM threads ORDER BY rowid")
                names = [column[0] for column in cursor.description]
                return b"".join([_line(dict(zip(names, row, strict=True)), path) for row in cursor])
        except sqlite3.Error as error:
            raise TranscriptError(f"not a database of Zed's threads: {error}", path=path) from error

    def find(self, home: Path, environ: Mapping[str, str]) -> Iterator[str]:
        """Yield the database, in the folder of each platform."""
        data = Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share")
        for folder in (
            data / "zed",
            home / "Library" / "Application Support" / "Zed",
            home / "AppData" / "Local" / "Zed",
        ):
            if (path := folder / "threads" / "threads.db").is_file():
                yield str(path)


# -- the database -----------------------------------------------------------------------------------------------------
def _line(row: dict[str, Any], path: Path) -> bytes:
    data, kind = row.pop("data", None), row.pop("data_type", None)
    try:
        text = data if isinstance(data, bytes) else str(data).encode()
        return orjson.dumps({**row, "data": orjson.loads(_unpacked(text, path) if kind == "zstd" else text)}) + b"\n"
    except (ValueError, EOFError) as error:
        return orjson.dumps({**row, "data": None, "unread": str(error)}) + b"\n"


def _unpacked(data: bytes, path: Path) -> bytes:
    """Return what Zstandard compressed.

    Raises:
        TranscriptError: nothing that reads it is installed.
        ValueError: it is damaged, or longer than a thread may be.
    """
    try:
        zstd: Any = import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    except ImportError as error:
        needed = "Python 3.14, or pip install 'interlingua-transcripts[zed]'"
        raise TranscriptError(f"its threads are compressed by Zstandard, which needs {needed}", path=path) from error
    reader = zstd.ZstdDecompressor()
    try:
        text: bytes = reader.decompress(data, _LARGEST)
    except zstd.ZstdError as error:
        raise ValueError(str(error)) from error
    if not reader.eof:
        raise ValueError("it is cut" if len(text) < _LARGEST else f"it unpacks to more than {_LARGEST:,} bytes")
    return text


def _is_thread(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("data"), dict)
        and isinstance(value["data"].get("messages"), list)
    )


def _facts(row: Mapping[str, Any]) -> HeldSession:
    folders = row.get("folder_paths")
    folder = folders.split("\n")[0] if isinstance(folders, str) else None
    try:
        context = _context(row["data"]["messages"])
    except (AttributeError, KeyError, TypeError):  # the thread's messages cannot be read, which their reader reports
        context = None
    return HeldSession(str(row["id"]), str(row.get("summary") or "") or None, folder or None, context)


def _context(messages: Sequence[Any]) -> Sequence[int] | None:
    """Return the indexes of the messages that the model sees after the last compaction; None without one."""
    read = [_variant(raw) for raw in messages]
    last = max((at for at, (kind, _) in enumerate(read) if kind == "Compaction"), default=None)
    if last is None:
        return None
    starts = [0, *accumulate(_count(kind, value) for kind, value in read)]
    kept: list[int] = []
    left = _KEPT if "Summary" in read[last][1] else 0
    for at in reversed(range(last)):
        kind, value = read[at]
        if left > 0 and kind == "User" and value["content"]:
            left -= sum(map(_size, value["content"]))
            kept.append(starts[at])
    return [*reversed(kept), *range(starts[last], starts[-1])]


def _count(kind: str, value: Any) -> int:
    """Return how many messages one of the thread's makes."""
    if kind in ("User", "Agent"):
        results = value.get("tool_results") if kind == "Agent" else None
        return bool(value["content"]) + (len(results) if isinstance(results, dict) else 0)
    return 1


def _size(part: Any) -> int:
    """Return the bytes of a part of a prompt."""
    shown = _shown(part)
    if isinstance(shown, ImageBlock):
        return len(shown.source.data)
    return len(shown.text.encode()) if isinstance(shown, TextBlock) else 0


# -- a thread ---------------------------------------------------------------------------------------------------------
class _Thread:
    """Reads the messages of one thread; messages have no times and no models."""

    def __init__(self, data: Mapping[str, Any], at: datetime, ids: ImportedIds) -> None:
        self._at = at
        self._ids = ids
        model = data.get("model")
        self._facts: dict[str, Any] = {}
        if isinstance(model, dict) and isinstance(model.get("provider"), str) and isinstance(model.get("model"), str):
            self._facts = {"provider": model["provider"], "model": f"{model['provider']}:{model['model']}"}
        counts = data.get("request_token_usage")
        counts = counts if isinstance(counts, dict) else {}
        self._usage: dict[int, Usage] = {}  # of the last answer to a prompt
        prompt = ""
        last = -1
        for number, raw in enumerate(data["messages"]):
            kind, value = _variant(raw)
            if kind == "User":
                prompt, last = str(value.get("id")), -1
            elif kind == "Agent" and isinstance(counts.get(prompt), dict):
                self._usage.pop(last, None)
                self._usage[number] = _usage(counts[prompt])
                last = number
        self._number = -1

    def messages(self, raw: Any) -> Iterator[Message]:
        """Yield what one message of the thread holds; an answer's results follow it."""
        self._number += 1
        kind, value = _variant(raw)
        if kind == "User":
            yield from self._said(Role.USER, [_shown(one) for one in value["content"]])
        elif kind == "Agent":
            yield from self._said(Role.ASSISTANT, [self._block(one) for one in value["content"]])
            results = value.get("tool_results")
            for result in results.values() if isinstance(results, dict) else ():
                yield self._result(result)
        elif kind == "Resume":
            yield from self._said(Role.USER, [TextBlock(text=_RESUMED)])
        elif kind == "Compaction":
            if "Summary" in value:
                yield from self._said(Role.USER, [TextBlock(text=f"{_SUMMARY}{value['Summary']}")])
            else:
                yield from self._said(Role.USER, [OpaqueBlock(provider="zed", kind="Compaction", data=value)])
        else:
            yield from self._earlier(raw)

    def _said(self, role: Role, blocks: list[ContentBlock]) -> Iterator[Message]:
        if not blocks:
            return
        facts = dict(self._facts) if role is Role.ASSISTANT else {}
        if role is Role.ASSISTANT and self._number in self._usage:
            facts["usage"] = self._usage[self._number]
        yield self._ids.make_message(role, blocks, self._at, facts)

    def _block(self, raw: Any) -> ContentBlock:
        kind, value = _variant(raw)
        if kind == "Text":
            return TextBlock(text=value)
        if kind == "Thinking":
            return ThinkingBlock(text=value["text"], signature=value.get("signature") or None)
        if kind == "RedactedThinking":
            return RedactedThinkingBlock(data=value)
        return self._call(value) if kind == "ToolUse" else OpaqueBlock(provider="zed", kind=kind, data=raw)

    def _call(self, raw: Mapping[str, Any]) -> ToolUseBlock:
        given = raw.get("input")
        if isinstance(given, dict) and set(given) == {"type", "value"} and given["type"] in ("json", "text"):
            given = given["value"]
        text = given if isinstance(given, str) else None
        return ToolUseBlock(
            id=self._ids.call(str(raw["id"])),
            provider_id=str(raw["id"]),
            name=str(raw["name"]),
            input=given if isinstance(given, dict) else {},
            raw_input=text,
            parse_error=None if text is None else read_tool_input(text)[1],
            signature=raw.get("thought_signature"),
        )

    def _result(self, raw: Mapping[str, Any]) -> Message:
        content = raw.get("content")
        parts = content if isinstance(content, list) else [content]
        block = ToolResultBlock(
            tool_use_id=self._ids.call(str(raw["tool_use_id"])),
            content=tuple([_shown(part) for part in parts]),
            is_error=raw.get("is_error") is True,
            tool_name=raw.get("tool_name"),
        )
        return self._ids.make_message(Role.TOOL, [block], self._at, {"parent_tool_use_id": block.tool_use_id})

    def _earlier(self, raw: Mapping[str, Any]) -> Iterator[Message]:
        """Yield a message of the versions before 0.3: a role, segments or one text, calls and results beside them."""
        role = _ROLES[raw["role"]]
        results = raw.get("tool_results") or ()
        if role is Role.USER:
            yield from map(self._result, results)
        blocks: list[ContentBlock] = [TextBlock(text=raw["context"])] if raw.get("context") else []
        for part in raw["segments"] if "segments" in raw else [{"type": "text", "text": raw["text"]}]:
            if part["type"] == "text":
                blocks += [TextBlock(text=part["text"])] if part["text"] else []
            elif part["type"] == "thinking":
                blocks.append(ThinkingBlock(text=part["text"], signature=part.get("signature") or None))
            else:
                blocks.append(RedactedThinkingBlock(data=part["data"]))
        yield from self._said(role, blocks + [self._call(one) for one in raw.get("tool_uses") or ()])
        if role is not Role.USER:
            yield from map(self._result, results)


def _variant(raw: Any) -> tuple[str, Any]:
    """Return the name and the value of one of several forms, as the program's serializer writes them."""
    if isinstance(raw, str):
        return raw, {}
    return next(iter(raw.items())) if isinstance(raw, dict) and len(raw) == 1 else ("", raw)


def _shown(raw: Any) -> ContentBlock:
    """Return a part of a prompt or of a result; a mention with the name of what it is, as the model gets it."""
    if isinstance(raw, str):
        return TextBlock(text=raw)
    kind, value = _variant(raw)
    if kind.lower() == "text":
        return TextBlock(text=value)
    if raw.get("type") == "text":
        return TextBlock(text=raw["text"])
    if kind == "Mention":
        _, about = _variant(value["uri"])
        link = next((str(about[name]) for name in _LINK if about.get(name)), "") if isinstance(about, dict) else ""
        return TextBlock(text="\n".join([text for text in (f"@{link}", value.get("content")) if text]))
    image = value if kind.lower() == "image" else raw
    if isinstance(image, dict) and isinstance(image.get("source"), str):
        return ImageBlock(source=MediaSource(kind="base64", data=image["source"]), media_type="image/png")
    return OpaqueBlock(provider="zed", kind=kind or "content", data=raw)


def _usage(raw: Mapping[str, Any]) -> Usage:
    plain, written, read, made = (
        count_of(raw.get(f"{name}_tokens", 0))
        for name in ("input", "cache_creation_input", "cache_read_input", "output")
    )
    return Usage(
        input_tokens=None if plain is None else plain + (read or 0) + (written or 0),
        output_tokens=made,
        cached_input_tokens=read,
        cache_creation_input_tokens=written,
    )


zed = Zed()
