"""The events of a stream."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, TypeAlias

import attrs

from interlingua._json import FrozenDict
from interlingua._values import KEEP_SURROGATES, validated
from interlingua.errors import InterlinguaError
from interlingua.types.blocks import ContentBlock, ToolUseBlock
from interlingua.types.messages import Loss, StopReason, Usage


@validated
@attrs.frozen(kw_only=True)
class TextDelta:
    """More text of block `index`.

    Attributes:
        index: the block.
        text: the new piece.
    """

    type: ClassVar[Literal["text_delta"]] = "text_delta"
    index: int
    text: str = attrs.field(metadata=KEEP_SURROGATES)


@validated
@attrs.frozen(kw_only=True)
class ThinkingDelta:
    """More reasoning of block `index`.

    Attributes:
        index: the block.
        text: the new piece.
    """

    type: ClassVar[Literal["thinking_delta"]] = "thinking_delta"
    index: int
    text: str = attrs.field(metadata=KEEP_SURROGATES)


@validated
@attrs.frozen(kw_only=True)
class ToolUseStart:
    """A call begins.

    Attributes:
        index: the block.
        id: canonical id, minted by the request context.
        name: tool name.
        provider_id: the id the provider issued, or None.
        keep_raw: True when the wire carries arguments as a string, which is then kept byte-exact.
    """

    type: ClassVar[Literal["tool_use_start"]] = "tool_use_start"
    index: int
    id: str
    name: str
    provider_id: str | None = None
    keep_raw: bool = True


@validated
@attrs.frozen(kw_only=True)
class ToolUseInputDelta:
    """More of the argument text of call `index`.

    Attributes:
        index: the call's block.
        partial_json: the new piece of the argument text.
    """

    type: ClassVar[Literal["tool_use_input_delta"]] = "tool_use_input_delta"
    index: int
    partial_json: str = attrs.field(metadata=KEEP_SURROGATES)


@validated
@attrs.frozen(kw_only=True)
class ToolUseEnd:
    """The call is whole; `block`, when given, is authoritative over the pieces.

    Attributes:
        index: the call's block.
        block: the whole call, if the plugin has it; otherwise it is made of the pieces.
    """

    type: ClassVar[Literal["tool_use_end"]] = "tool_use_end"
    index: int
    block: ToolUseBlock | None = None


@validated
@attrs.frozen(kw_only=True)
class BlockStart:
    """A block begins that is not only text, reasoning or a call: media, opaque, redacted.

    It is repeated for a picture that is shown while it is made: each is whole and replaces the previous one.

    Attributes:
        index: the block.
        block: the parts of the block that are known so far.
    """

    type: ClassVar[Literal["block_start"]] = "block_start"
    index: int
    block: ContentBlock


@validated
@attrs.frozen(kw_only=True)
class BlockEnd:
    """A block is whole. `block` holds its signature, citations or data; its text comes from the deltas, if any came.

    Attributes:
        index: the block.
        block: the whole block, whose text may be empty.
    """

    type: ClassVar[Literal["block_end"]] = "block_end"
    index: int
    block: ContentBlock


@validated
@attrs.frozen(kw_only=True)
class UsageUpdate:
    """Token counts so far; each reported count replaces the earlier one (they are totals, not steps).

    Attributes:
        usage: the counts reported so far; None for a count that was not reported.
    """

    type: ClassVar[Literal["usage_update"]] = "usage_update"
    usage: Usage


@validated
@attrs.frozen(kw_only=True)
class RawUpdate:
    """Opaque state as it arrives, so that an interrupted stream keeps its ids.

    Attributes:
        replay: state that a replay needs; each key replaces the earlier value of that key.
        trace: diagnostic state that may be trimmed; its keys are replaced in the same way.
        losses: rows for content that the service reports it left out of the request; they replace earlier ones.
        follow_up: the `FollowUp` whose stream continues this answer if the body ends before the terminal event; its
            events reach the same generator. A later one replaces it, and `client.resume` begins with it.
    """

    type: ClassVar[Literal["raw_update"]] = "raw_update"
    replay: FrozenDict | dict[str, Any] | None = None
    trace: FrozenDict | dict[str, Any] | None = None
    losses: tuple[Loss, ...] | None = None
    follow_up: object = None


@validated
@attrs.frozen(kw_only=True)
class MessageComplete:
    """The terminal event of a stream that ended well.

    Attributes:
        stop_reason: why the model stopped.
        stop_reason_raw: the provider's word for it.
    """

    type: ClassVar[Literal["message_complete"]] = "message_complete"
    stop_reason: StopReason
    stop_reason_raw: str | None = None


@validated
@attrs.frozen(kw_only=True)
class ErrorEvent:
    """The terminal event of a stream that failed; the client raises `error` after delivering it.

    Attributes:
        error: the error.
    """

    type: ClassVar[Literal["error"]] = "error"
    error: InterlinguaError


StreamEvent: TypeAlias = (
    TextDelta
    | ThinkingDelta
    | ToolUseStart
    | ToolUseInputDelta
    | ToolUseEnd
    | BlockStart
    | BlockEnd
    | UsageUpdate
    | RawUpdate
    | MessageComplete
    | ErrorEvent
)
