"""OpenClaw: pi's entries and additional ones, and the flat lines of its documentation (WIRE.md, pi)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

from interlingua_transcripts.formats.pi import API_WORDS, ROLES, Pi, is_openclaw, read_version
from interlingua_transcripts.imported import short_id, to_iso, to_milliseconds
from interlingua_transcripts.system import list_files
from interlingua_transcripts.transcript import Conversation, SessionPlace, Written


class OpenClaw(Pi):
    """OpenClaw's files: pi's entries and additional ones."""

    name = "openclaw"
    title = "OpenClaw"

    def detect(self, head: Sequence[Any]) -> str | None:
        """Return the header's version."""
        version = read_version(head)
        return version if version is not None and is_openclaw(head) else None

    def write(self, conversation: Conversation) -> Iterator[Written]:
        """Yield pi's entries, and behind the header the model's snapshot that tells the two programs' files apart."""
        entries = super().write(conversation)
        if not conversation.before:
            header = next(entries)
            yield header
            origins = (one.metadata.origin for one in conversation.messages)
            provider, api, model = next(filter(None, origins), ("unknown", "unknown", "unknown"))
            data = {"provider": provider, "modelApi": API_WORDS.get(api, api), "modelId": model}
            stamp = {"timestamp": to_milliseconds(conversation.created_at), **data}
            entry = {"type": "custom", "id": short_id(f"{conversation.session_id}\0model"), "parentId": None}
            at = {"timestamp": to_iso(conversation.created_at)}
            yield Written({**entry, **at, "customType": "model-snapshot", "data": stamp})
        yield from entries

    def place(
        self, session_id: str, cwd: str, created_at: datetime, *, home: Path, environ: Mapping[str, str]
    ) -> SessionPlace | None:
        """Return None: the gateway of OpenClaw keeps a list of its sessions."""
        return None

    def find(self, home: Path, environ: Mapping[str, str]) -> Iterator[str]:
        """Yield the sessions of every agent; archives and sidecars are not sessions."""
        for folder in (".openclaw", ".moltbot", ".clawdbot"):
            yield from list_files(home / folder / "agents", "*/sessions/*.jsonl", "*.checkpoint.*", "*.trajectory*")


class OpenClawLines(Pi):
    """The flat form of OpenClaw's documentation: each line is a message."""

    name = "openclaw-lines"
    title = "OpenClaw's lines of messages"
    links = None
    flat = True
    lacks: ClassVar[Set[str]] = frozenset({"session id"})

    def detect(self, head: Sequence[Any]) -> str | None:
        """Return `flat` for lines that are messages themselves."""
        first = next((value for value in head if isinstance(value, dict) and value.get("role") in ROLES), None)
        if first is None or any(isinstance(value, dict) and "type" in value for value in head):
            return None
        return "flat" if any(_is_flat(value) for value in head) else None

    def place(
        self, session_id: str, cwd: str, created_at: datetime, *, home: Path, environ: Mapping[str, str]
    ) -> SessionPlace | None:
        """Return None: no program continues this form."""
        return None

    def find(self, home: Path, environ: Mapping[str, str]) -> Iterator[str]:
        """Yield nothing: OpenClaw's own folder holds files of the other form."""
        return iter(())


def _is_flat(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    return value.get("role") == "toolResult" or "api" in value or isinstance(value.get("timestamp"), int)


openclaw = OpenClaw()
openclaw_lines = OpenClawLines()
