"""aider's `.aider.chat.history.md`: Markdown, in which the beginning of a line says whose it is; read only."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any

import orjson

from interlingua.plugins import dumps
from interlingua.types import Message, Role, TextBlock
from interlingua_transcripts.imported import EPOCH, ImportedIds, time_of
from interlingua_transcripts.system import DocumentFormat
from interlingua_transcripts.transcript import MessageGroup, Note, ReadPlan

_STARTED = "# aider chat started at "
_ASKED = "#### "
_SHOWN = "> "
_TAIL = re.compile(r"\s*\Z")


class Aider(DocumentFormat):
    """The history of a folder, with all its chats; an entry is a run of lines of one speaker."""

    name = "aider"
    title = "aider"
    suffix = ".md"
    items = ""
    text = True
    writable = False
    several = True

    def detect(self, head: Sequence[Any]) -> str | None:
        """Recognise the heading that begins each chat."""
        return "" if str(head[0]).lstrip().startswith(_STARTED) else None

    def parse(self, data: bytes, document: Any = None) -> tuple[list[bytes], list[Any]]:
        """Return the runs as JSON: kind, text, and the white space around it."""
        runs = groupby(data.decode().split("\n"), key=_kind)
        values: list[Any] = []
        for kind, lines in runs:
            values.append(_run(kind, list(lines)))
        return list(map(dumps, values)), values

    def join(self, entries: Iterable[bytes]) -> bytes:
        """Return the Markdown of which `parse` made these entries."""
        return "\n".join([line for entry in entries for line in _lines(orjson.loads(entry))]).encode()

    def kind_of(self, value: Any) -> str:
        """Return `user`, `assistant`, `shown` or `start`."""
        return str(value.get("kind", "")) if isinstance(value, dict) else type(value).__name__

    def plan(self, values: Sequence[Any]) -> ReadPlan:
        """Take the chats one after the other; what the program showed is beside them."""
        chats: list[tuple[str, list[int]]] = []
        for at, value in enumerate(values):
            if not isinstance(value, dict):
                continue
            if value["kind"] == "start":
                chats.append((value["text"], []))
            elif value["kind"] in ("user", "assistant") and value["text"]:
                if not chats:
                    chats.append(("", []))
                chats[-1][1].append(at)
        found = [(start, places) for start, places in chats if places]
        groups = [MessageGroup(str(places[0]), tuple(places), start) for start, places in found]
        plan = ReadPlan(session_id="", groups=groups)
        if len(found) > 1:
            plan.notes.append(Note(None, f"{len(found)} chats are in this file, each a separate conversation"))
            plan.context = [len(found) - 1]
        return plan

    def to_messages(
        self, group: MessageGroup, values: Sequence[Any], plan: ReadPlan, ids: ImportedIds
    ) -> list[Message]:
        """Return a chat's messages; all have the time at which it began."""
        at = _time(group.facts)
        return [ids.make_message(Role(value["kind"]), [TextBlock(text=value["text"])], at) for value in values]


def _kind(line: str) -> str:
    if line.startswith(_ASKED):
        return "user"
    if line.startswith(_SHOWN):
        return "shown"
    return "start" if line.startswith(_STARTED) else "assistant"


def _run(kind: str, lines: list[str]) -> dict[str, Any]:
    """Return an entry: a prompt's lines without their mark, an answer without the white space around it."""
    if kind == "user":
        tails = [_TAIL.search(line.removeprefix(_ASKED)) for line in lines]
        ends = [found[0] if found else "" for found in tails]
        texts = [line.removeprefix(_ASKED).rstrip() for line in lines]
        return {"kind": kind, "text": "\n".join(texts), "ends": ends}
    text = "\n".join(lines)
    if kind != "assistant":
        return {"kind": kind, "text": text}
    inner = text.strip()
    before = text[: text.index(inner)] if inner else text
    return {"kind": kind, "text": inner, "before": before, "after": text[len(before) + len(inner) :]}


def _lines(value: Any) -> Iterator[str]:
    """Yield the lines of an entry."""
    if value["kind"] == "user":
        for text, end in zip(value["text"].split("\n"), value["ends"], strict=True):
            yield f"{_ASKED}{text}{end}"
    elif value["kind"] == "assistant":
        yield f"{value['before']}{value['text']}{value['after']}"
    else:
        yield value["text"]


def _time(start: str) -> datetime:
    return time_of(start.removeprefix(_STARTED).strip(), EPOCH)


aider = Aider()
