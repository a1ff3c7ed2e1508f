"""Own small conversations, which every writable system is given to write."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from interlingua.types import (
    ContentBlock,
    CostParts,
    ErrorInfo,
    ImageBlock,
    MediaSource,
    Message,
    MessageMetadata,
    MessageStatus,
    Role,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
)
from interlingua_transcripts import SessionFormat, installed_formats, transcript_of, write_transcript

BEGAN = datetime(2026, 2, 1, 10, 0, tzinfo=UTC)
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
ORIGIN = {"provider": "anthropic", "api": "messages", "model": "anthropic:claude-x"}
USAGE = Usage(
    input_tokens=30,
    output_tokens=7,
    cached_input_tokens=10,
    cache_creation_input_tokens=5,
    cost_usd=Decimal("0.5"),
    cost=CostParts(
        input=Decimal("0.25"), output=Decimal("0.125"), cached_read=Decimal("0.0625"), cache_write=Decimal("0.0625")
    ),
    pricing_version="source",
)


def _said(number: int, role: Role, *blocks: ContentBlock, **facts: Any) -> Message:
    metadata = MessageMetadata(**facts)
    at = BEGAN + timedelta(seconds=number)
    own = f"01KGBX{number:020d}"
    return Message(id=own, session_id="s", role=role, content=blocks, created_at=at, metadata=metadata)


def _call(number: int, name: str, **arguments: Any) -> ToolUseBlock:
    own = f"tu_01KGBY{number:020d}"
    return ToolUseBlock(id=own, provider_id=f"toolu_{number:02d}", name=name, input=arguments)


def _result(number: int, text: str, **facts: Any) -> Message:
    call = f"tu_01KGBY{number:020d}"
    block = ToolResultBlock(tool_use_id=call, content=(TextBlock(text=text),), **facts)
    return _said(10 + number, Role.TOOL, block, parent_tool_use_id=call)


def _text(text: str) -> TextBlock:
    return TextBlock(text=text)


HISTORY: Sequence[Message] = (
    _said(0, Role.SYSTEM, _text("Be brief.")),
    _said(1, Role.USER, _text("What is in a.txt?")),
    _said(
        2, Role.ASSISTANT, ThinkingBlock(text="I read it.", signature="c2lnbmVk"), _text("Reading."),
        _call(1, "read", path="a.txt"), _call(2, "list", path="."),
        usage=USAGE, stop_reason=StopReason.TOOL_USE, stop_reason_raw="tool_use", **ORIGIN,
    ),
    _result(1, "Line 1\nLine 2", tool_name="read"),
    _result(2, "no such folder", tool_name="list", is_error=True),
    _said(15, Role.ASSISTANT, _text("Two lines: ä, 漢, 😀."), usage=USAGE, stop_reason=StopReason.END_TURN,
          stop_reason_raw="end_turn", **ORIGIN),
    _said(16, Role.USER, _text("And this picture?"),
          ImageBlock(source=MediaSource(kind="base64", data=PIXEL), media_type="image/png")),
    _said(17, Role.ASSISTANT, _text("One pix"), status=MessageStatus.CANCELLED, **ORIGIN),
    _said(18, Role.USER, _text("Go on.")),
    _said(19, Role.ASSISTANT, _text("It is"), status=MessageStatus.ERROR,
          error=ErrorInfo(type="ProviderError", message="overloaded"), **ORIGIN),
)  # fmt: skip


def writable_systems() -> Sequence[SessionFormat]:
    """Return the installed systems whose files can be written."""
    return [system for system in installed_formats().values() if system.writable]


def own_file(system: SessionFormat) -> bytes:
    """Return the history as a file of a system."""
    return write_transcript(transcript_of(HISTORY, system.name, "11111111-2222-4333-8444-555555555555"), system)
