"""`AssistantMessageEvent` of seed 000 §5.1: how one answer comes into being, for user interfaces.

Never decides which event comes next (`view` does), and makes a partial message only for whoever reads one.
The events room comes in; others take these through its front door.
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

import attrs

from interlingua import InterlinguaError
from interlingua.types.blocks import TextBlock, ThinkingBlock, ToolUseBlock
from interlingua.types.messages import Message
from interlingua_sessions.events.moment import BlockMoment, Moment

SeedStopReason: TypeAlias = Literal["stop", "length", "toolUse", "error", "aborted"]
"""Why an answer ended, in seed 000's words (§3.2)."""


@attrs.frozen(kw_only=True)
class Start(Moment):
    """The answer begins."""

    type: ClassVar[Literal["start"]] = "start"


@attrs.frozen(kw_only=True)
class TextStart(BlockMoment):
    """A text block begins."""

    type: ClassVar[Literal["text_start"]] = "text_start"


@attrs.frozen(kw_only=True)
class TextDelta(BlockMoment):
    """More text."""

    type: ClassVar[Literal["text_delta"]] = "text_delta"
    delta: str


@attrs.frozen(kw_only=True)
class TextEnd(BlockMoment):
    """A text block is whole."""

    type: ClassVar[Literal["text_end"]] = "text_end"

    @property
    def content(self) -> str:
        """The whole text of the block."""
        block = self.partial.content[self.content_index]
        return block.text if isinstance(block, TextBlock) else ""


@attrs.frozen(kw_only=True)
class ThinkingStart(BlockMoment):
    """A thinking block begins."""

    type: ClassVar[Literal["thinking_start"]] = "thinking_start"


@attrs.frozen(kw_only=True)
class ThinkingDelta(BlockMoment):
    """More thinking."""

    type: ClassVar[Literal["thinking_delta"]] = "thinking_delta"
    delta: str


@attrs.frozen(kw_only=True)
class ThinkingEnd(BlockMoment):
    """A thinking block is whole."""

    type: ClassVar[Literal["thinking_end"]] = "thinking_end"

    @property
    def content(self) -> str:
        """The whole text of the block."""
        block = self.partial.content[self.content_index]
        return block.text if isinstance(block, ThinkingBlock) else ""


@attrs.frozen(kw_only=True)
class ToolCallStart(BlockMoment):
    """A call begins."""

    type: ClassVar[Literal["toolcall_start"]] = "toolcall_start"


@attrs.frozen(kw_only=True)
class ToolCallDelta(BlockMoment):
    """More of the call's argument text."""

    type: ClassVar[Literal["toolcall_delta"]] = "toolcall_delta"
    delta: str


@attrs.frozen(kw_only=True)
class ToolCallEnd(BlockMoment):
    """A call is whole."""

    type: ClassVar[Literal["toolcall_end"]] = "toolcall_end"

    @property
    def tool_call(self) -> ToolUseBlock:
        """The whole call."""
        block = self.partial.content[self.content_index]
        assert isinstance(block, ToolUseBlock)  # noqa: S101  the view numbered it as one
        return block


@attrs.frozen(kw_only=True)
class Done:
    """The answer is whole: `message` is it, in the canonical order of its blocks."""

    type: ClassVar[Literal["done"]] = "done"
    reason: SeedStopReason
    message: Message


@attrs.frozen(kw_only=True)
class Error:
    """The answer failed or was cancelled; nothing is raised besides.

    Attributes:
        reason: `aborted` when somebody cancelled it.
        error: what was received, as a message.
        cause: the exception, where there was one; seed 000 has no such field, so it is not part of its JSON.
    """

    type: ClassVar[Literal["error"]] = "error"
    reason: Literal["aborted", "error"]
    error: Message
    cause: InterlinguaError | None = None


AssistantMessageEvent: TypeAlias = (
    Start
    | TextStart
    | TextDelta
    | TextEnd
    | ThinkingStart
    | ThinkingDelta
    | ThinkingEnd
    | ToolCallStart
    | ToolCallDelta
    | ToolCallEnd
    | Done
    | Error
)
"""Seed 000 §5.1, with its names and fields; attributes are spelled in snake_case, `to_wire_event` in the seed's."""
