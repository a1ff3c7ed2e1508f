"""Assemble stream events into one message, the same whatever the chunking; pieces of text are joined once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs

from interlingua.errors import InterlinguaError, PluginError
from interlingua.plugins.wire import RequestContext
from interlingua.types.blocks import ContentBlock, TextBlock, ThinkingBlock, ToolUseBlock, read_tool_input
from interlingua.types.events import (
    BlockEnd,
    BlockStart,
    ErrorEvent,
    MessageComplete,
    RawUpdate,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolUseEnd,
    ToolUseInputDelta,
    ToolUseStart,
    UsageUpdate,
)
from interlingua.types.messages import ErrorInfo, Message, MessageStatus, StopReason, Usage

UNFINISHED = "the call was cut off before its arguments were whole"


def _ignore(_piece: str) -> None:
    """Before the first delta there is nothing to append to."""


@attrs.define
class _Slot:
    """One block being built."""

    kind: type
    pieces: list[str] = attrs.field(factory=list)
    start: ToolUseStart | None = None
    block: ContentBlock | None = None
    ended: bool = False


class Assembler:
    """Builds the message of one exchange from its events; blocks stand in the order of their indexes."""

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self._slots: dict[int, _Slot] = {}
        self._usage: Usage | None = None
        self._replay: dict[str, Any] = {}
        self._trace: dict[str, Any] = {}
        self.complete: MessageComplete | None = None
        self.error: InterlinguaError | None = None
        # the block that text is arriving for: most events only append to it
        self._hot: type | None = None
        self._hot_index = -1
        self._append: Callable[[str], None] = _ignore

    def feed(self, events: Iterable[StreamEvent]) -> None:
        """Take events in order.

        Raises:
            PluginError: an event refers to a block that was never begun, or contradicts it.
        """
        for event in events:
            kind = type(event)
            if kind is TextDelta or kind is ThinkingDelta:
                if kind is not self._hot or event.index != self._hot_index:  # type: ignore[union-attr]
                    self._open_text(event.index, kind)  # type: ignore[union-attr]
                self._append(event.text)  # type: ignore[union-attr]
            elif kind is ToolUseInputDelta:
                if kind is not self._hot or event.index != self._hot_index:  # type: ignore[union-attr]
                    self._open_input(event.index)  # type: ignore[union-attr]
                self._append(event.partial_json)  # type: ignore[union-attr]
            else:
                _HANDLERS[kind](self, event)

    def _open_text(self, index: int, kind: type) -> None:
        expected = TextBlock if kind is TextDelta else ThinkingBlock
        slot = self._slots.get(index)
        if slot is None:
            slot = self._slots[index] = _Slot(expected)
        elif slot.kind is not expected:
            raise PluginError(f"{kind.__name__} for block {index}, which is a {slot.kind.__name__}")
        self._hot, self._hot_index = kind, index
        self._append = slot.pieces.append

    def _open_input(self, index: int) -> None:
        slot = self._slots.get(index)
        if slot is None or slot.kind is not ToolUseBlock:
            raise PluginError(f"ToolUseInputDelta for block {index}, where no call was begun")
        self._hot, self._hot_index = ToolUseInputDelta, index
        self._append = slot.pieces.append

    def _call_start(self, event: ToolUseStart) -> None:
        if event.index in self._slots:
            raise PluginError(f"ToolUseStart for block {event.index}, which was begun before")
        self._slots[event.index] = _Slot(ToolUseBlock, start=event)

    def _call_end(self, event: ToolUseEnd) -> None:
        slot = self._slots.get(event.index)
        if slot is None or slot.kind is not ToolUseBlock:
            raise PluginError(f"ToolUseEnd for block {event.index}, where no call was begun")
        slot.ended = True
        slot.block = event.block or slot.block

    def _block(self, event: BlockStart | BlockEnd) -> None:
        slot = self._slots.get(event.index)
        if slot is None:
            slot = self._slots[event.index] = _Slot(type(event.block))
        elif slot.kind is not type(event.block):
            raise PluginError(f"{type(event.block).__name__} for block {event.index}, which is a {slot.kind.__name__}")
        slot.block = event.block
        slot.ended = type(event) is BlockEnd

    def _usage_update(self, event: UsageUpdate) -> None:
        self._usage = event.usage if self._usage is None else self._usage.updated(event.usage)

    def _raw_update(self, event: RawUpdate) -> None:
        if event.replay:
            self._replay.update(event.replay)
        if event.trace:
            self._trace.update(event.trace)

    def _completed(self, event: MessageComplete) -> None:
        self.complete = event

    def _failed(self, event: ErrorEvent) -> None:
        self.error = event.error

    def message(self, status: MessageStatus = MessageStatus.PARTIAL, error: BaseException | None = None) -> Message:
        """Return the message as it stands; blocks that are not whole say so.

        Args:
            status: COMPLETE only after a `message_complete` event.
            error: what ended it, where it failed.
        """
        unfinished = status is not MessageStatus.COMPLETE
        content = [_build(slot, unfinished=unfinished) for _, slot in sorted(self._slots.items())]
        reason, raw = (self.complete.stop_reason, self.complete.stop_reason_raw) if self.complete else (None, None)
        if error is not None:
            reason = reason or StopReason.ERROR
        return self._context.message(
            content,
            stop_reason=reason,
            stop_reason_raw=raw,
            usage=self._usage,
            replay=self._replay or None,
            trace=self._trace or None,
            status=status,
            error=None if error is None else ErrorInfo(type=type(error).__name__, message=str(error)),
        )


def _build(slot: _Slot, *, unfinished: bool) -> ContentBlock:
    text = "".join(slot.pieces)
    if slot.start is not None:
        return _build_call(slot, slot.start, text, unfinished=unfinished)
    if slot.block is None:
        return slot.kind(text=text)  # type: ignore[no-any-return]
    if slot.pieces and isinstance(slot.block, (TextBlock, ThinkingBlock)):
        return attrs.evolve(slot.block, text=text)
    return slot.block


def _build_call(slot: _Slot, start: ToolUseStart, raw: str, *, unfinished: bool) -> ToolUseBlock:
    if isinstance(slot.block, ToolUseBlock):
        return slot.block
    value, error = read_tool_input(raw)
    if unfinished and not slot.ended:
        error = error or UNFINISHED
    return ToolUseBlock(
        id=start.id,
        name=start.name,
        input=value,
        provider_id=start.provider_id,
        raw_input=raw if start.keep_raw or error else None,
        parse_error=error,
    )


_HANDLERS: dict[type, Callable[[Assembler, Any], None]] = {
    ToolUseStart: Assembler._call_start,
    ToolUseEnd: Assembler._call_end,
    BlockStart: Assembler._block,
    BlockEnd: Assembler._block,
    UsageUpdate: Assembler._usage_update,
    RawUpdate: Assembler._raw_update,
    MessageComplete: Assembler._completed,
    ErrorEvent: Assembler._failed,
}
