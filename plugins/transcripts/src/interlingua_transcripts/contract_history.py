"""The conversation that the laws write for a format: a prompt, thinking, parallel calls, their results, a picture."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from interlingua.types import (
    ContentBlock,
    ImageBlock,
    MediaSource,
    Message,
    MessageMetadata,
    Role,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
)

_BEGAN = datetime(2026, 2, 1, 10, 0, tzinfo=UTC)
_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
_ORIGIN: dict[str, Any] = {"provider": "anthropic", "api": "messages", "model": "anthropic:claude-x"}


def _usage(given: int, made: int) -> Usage:
    return Usage(input_tokens=given, output_tokens=made)


def _message(number: int, role: Role, *blocks: ContentBlock, **facts: Any) -> Message:
    at = _BEGAN + timedelta(seconds=number)
    own = f"01KGBX{number:020d}"
    return Message(id=own, role=role, content=blocks, created_at=at, metadata=MessageMetadata(**facts))


def _call(number: int, name: str, **arguments: Any) -> ToolUseBlock:
    return ToolUseBlock(id=f"tu_01KGBY{number:020d}", provider_id=f"toolu_{number:02d}", name=name, input=arguments)


def _result(number: int, *texts: str, **facts: Any) -> Message:
    call = f"tu_01KGBY{number:020d}"
    block = ToolResultBlock(tool_use_id=call, content=[TextBlock(text=text) for text in texts], **facts)
    return _message(10 + number, Role.TOOL, block, parent_tool_use_id=call)


LONG = "".join([f"\nline {number} of a long file" for number in range(3, 2_000)])
"""Longer than what programs cut for the screen."""
HISTORY: Sequence[Message] = (
    _message(0, Role.SYSTEM, TextBlock(text="Answer in few words.")),
    _message(1, Role.USER, TextBlock(text="Show a.txt, and the folder beside it.")),
    _message(
        2, Role.ASSISTANT, ThinkingBlock(text="Two calls will do.", signature="c2lnbmVkLWJ5LWEtbW9kZWw="),
        TextBlock(text="Reading both."), _call(1, "read", path="a.txt", lines=[1, 40], how={"strict": True, "at": 0.5}),
        _call(2, "list", path="sub"), _call(3, "touch", path="ä 漢.txt"),
        usage=_usage(317, 71), stop_reason=StopReason.TOOL_USE, stop_reason_raw="tool_use", **_ORIGIN,
    ),
    _result(1, f"    Line one\n\tLine two{LONG}\n", "3 lines are left out.", tool_name="read"),
    _result(2, "no such folder", tool_name="list", is_error=True),
    _result(3, "", tool_name="touch"),
    _message(15, Role.ASSISTANT, TextBlock(text="    It has two lines: ä, 漢, 😀.  "), usage=_usage(411, 29),
             stop_reason=StopReason.END_TURN, stop_reason_raw="end_turn", **_ORIGIN),
    _message(16, Role.USER, TextBlock(text="Here is another."), TextBlock(text="What is in this picture?"),
             ImageBlock(source=MediaSource(kind="base64", data=_PIXEL), media_type="image/png")),
    _message(17, Role.ASSISTANT, TextBlock(text="One pixel."), usage=_usage(523, 31), stop_reason=StopReason.END_TURN,
             stop_reason_raw="end_turn", **_ORIGIN),
)  # fmt: skip
"""One message of each role, with everything that most formats have a place for."""
