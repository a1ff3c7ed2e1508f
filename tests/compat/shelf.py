"""Stored data of every earlier schema, in `shelf/`: `python -m tests.compat.shelf` adds the files of today's schemas.

A file on the shelf never changes: `shelf/SHA256SUMS` has the digest of each. Before a schema is raised,
run the program and commit what it adds; then `test_shelf.py` reads both.
"""

from __future__ import annotations

import hashlib
import sqlite3
import sys
import tempfile
from base64 import b64decode
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

from interlingua.codec import dumps_message
from interlingua.types import (
    SCHEMA_VERSION,
    Message,
    MessageMetadata,
    MessageStatus,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
    image_block,
)
from interlingua_sessions import EntryKind, open_store
from interlingua_sessions.store.schema import migrations
from interlingua_transcripts import read_transcript, transcript_of, with_entries, write_transcript
from tests.support.tree import ROOT

FOLDER = Path(__file__).with_name("shelf")
SUMS = FOLDER / "SHA256SUMS"
CASSETTE = ROOT / "cassettes" / "anthropic" / "recorded_stream_tool_call.yaml"
AGENTS = ("claude-code", "codex", "pi")
"""The agents whose session files are kept, and the conversations that hold all their entries."""
SESSION = "01JZ0000000000000000000000"
STORE_SCHEMA = migrations("sqlite")[-1].version
_PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="  # one pixel


def conversation() -> list[Message]:
    """Return a conversation with what is hard to store: signed thinking, a picture, a call, a failure, cost."""
    answered = MessageMetadata(
        model="acme:large",
        provider="acme",
        usage=Usage(input_tokens=12, output_tokens=34, cost_usd=Decimal("0.000546"), pricing_version="acme 2026-11-01"),
    )
    call = ToolUseBlock(id="tu_1", name="look_up", input={"moon": "Ganymede", "digits": 3})
    parts = [
        (Role.SYSTEM, [TextBlock(text="Answer briefly.")], MessageMetadata()),
        (
            Role.USER,
            [TextBlock(text="How wide is it? ¿Y qué? 🌒"), image_block(b64decode(_PNG))],
            MessageMetadata(),
        ),
        (Role.ASSISTANT, [ThinkingBlock(text="A moon.", signature="c2lnbmVk"), call], answered),
        (Role.TOOL, [ToolResultBlock(tool_use_id="tu_1", content="not found", is_error=True)], MessageMetadata()),
        (Role.ASSISTANT, [TextBlock(text="5,268 km.")], answered),
        (
            Role.ASSISTANT,
            [TextBlock(text="And its surf")],
            MessageMetadata(model="acme:large", provider="acme", status=MessageStatus.CANCELLED),
        ),
    ]
    start = datetime(2026, 11, 1, 10, 0, 0, 123456, tzinfo=UTC)
    return [
        Message(
            id=f"01JZ00000000000000000000{number:02}", session_id=SESSION, role=role, content=tuple(content),
            metadata=metadata, created_at=start + timedelta(seconds=number),
        )
        for number, (role, content, metadata) in enumerate(parts, 1)
    ]  # fmt: skip


def files() -> dict[str, bytes]:
    """Return what today's code writes: names of files with their contents."""
    found = {
        f"conversation-{SCHEMA_VERSION}.jsonl": "".join(dumps_message(one) + "\n" for one in conversation()).encode()
    }
    with tempfile.TemporaryDirectory() as folder:
        place = f"{folder}/store.db"
        with open_store(place) as store:
            store.create_session(SESSION, workspace_path="moons", active_model="acme:large")
            store.extend(conversation())
            store.append_entry(SESSION, EntryKind.COMPACTION_SUMMARY, "They spoke of moons.", data={"kept": 2})
            exported = [f"{line}\n" for line in store.export_lines(SESSION)]
            found[f"session-{SCHEMA_VERSION}.jsonl"] = "".join(exported).encode()
        with sqlite3.connect(place) as database:
            found[f"store-{STORE_SCHEMA}.sql"] = "".join(f"{line}\n" for line in database.iterdump()).encode()
        database.close()
    for system in AGENTS:
        transcript = transcript_of(conversation(), system, "00000000-0000-4000-8000-000000000001")
        found[f"{system}-{SCHEMA_VERSION}.jsonl"] = written = write_transcript(transcript)
        kept = with_entries(read_transcript(written, system))
        found[f"{system}-entries-{SCHEMA_VERSION}.jsonl"] = "".join(dumps_message(one) + "\n" for one in kept).encode()
    found["cassette-1.yaml"] = CASSETTE.read_bytes()
    return found


def sums() -> dict[str, str]:
    """Return the digest of each file that is on the shelf for ever."""
    return {name: digest for digest, name in map(str.split, SUMS.read_text(encoding="utf-8").splitlines())}


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, content in files().items():
        if not (FOLDER / name).exists():
            (FOLDER / name).write_bytes(content)
            sys.stdout.write(f"{name}\n")
    listed = sorted(path for path in FOLDER.iterdir() if path != SUMS)
    SUMS.write_text("".join(f"{digest(path)}  {path.name}\n" for path in listed), encoding="utf-8")


if __name__ == "__main__":
    main()
