"""Kimi CLI's `context.jsonl`: the messages that its model sees, with marks between them; read only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from interlingua.types import Message
from interlingua_transcripts.formats.chat_shaped import read_chat_message
from interlingua_transcripts.imported import ImportedIds
from interlingua_transcripts.system import SessionFormat, list_files
from interlingua_transcripts.transcript import MessageGroup, ReadPlan

_PROMPT = "_system_prompt"
_MARKS = {_PROMPT, "_usage", "_checkpoint"}
_ROLES = {"system", "user", "assistant", "tool"}


class KimiCli(SessionFormat):
    """Kimi CLI's session files."""

    name = "kimi"
    title = "Kimi CLI"
    writable = False

    def detect(self, head: Sequence[Any]) -> str | None:
        """Recognise the marks, whose role begins with an underscore."""
        roles = [line.get("role") for line in head if isinstance(line, dict)]
        return "" if _MARKS & set(filter(None, roles)) and set(roles) <= _MARKS | _ROLES else None

    def kind_of(self, value: Any) -> str:
        """Return the role."""
        return str(value.get("role", "")) if isinstance(value, dict) else type(value).__name__

    def plan(self, values: Sequence[Any]) -> ReadPlan:
        """Take the prompt and the messages in order; `_usage` and `_checkpoint` are beside them."""
        return ReadPlan(
            session_id="",
            groups=[
                MessageGroup(str(at), (at,))
                for at, value in enumerate(values)
                if isinstance(value, dict) and value.get("role") in {_PROMPT, *_ROLES}
            ],
        )

    def to_messages(
        self, group: MessageGroup, values: Sequence[Any], plan: ReadPlan, ids: ImportedIds
    ) -> list[Message]:
        """Return the message."""
        raw = values[0]
        return read_chat_message({**raw, "role": "system"} if raw["role"] == _PROMPT else raw, ids)

    def find(self, home: Path, environ: Mapping[str, str]) -> Iterator[str]:
        """Yield the sessions of every folder."""
        sessions = Path(environ.get("KIMI_SHARE_DIR") or home / ".kimi") / "sessions"
        yield from list_files(sessions, "*/*/context.jsonl")
        yield from list_files(sessions, "*/*.jsonl")  # of older versions


kimi = KimiCli()
