"""A stream of the Messages API -> canonical events (sheet anthropic §9).

Never buffers a delta and awaits nothing but its stream; unknown events and fields are passed over, never fatal.
The plugin object comes in.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import attrs

from interlingua.blocks import OpaqueBlock, TextBlock, ThinkingBlock, ToolUseBlock, read_tool_input
from interlingua.context import RequestContext
from interlingua.events import (
    BlockEnd,
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
from interlingua.jsontext import loads_fast, thaw
from interlingua.wire import WireChunk
from interlingua_anthropic.facts import (
    call_extras,
    from_wire_block,
    from_wire_stop,
    from_wire_usage,
    prefix_replay,
    trace_of,
)
from interlingua_anthropic.service import error_from_body


@attrs.define
class _Open:
    """A block that has begun and not ended."""

    index: int
    raw: dict[str, Any]
    start: ToolUseStart | None = None
    pieces: list[str] = attrs.field(factory=list)
    moved: bool = False


async def stream_response(response_stream: AsyncIterator[WireChunk], context: RequestContext) -> AsyncIterator[StreamEvent]:
    """Translate framed chunks into events."""
    reader = _Reader(context)
    loads = loads_fast
    opened = reader.open
    async for _, data in response_stream:
        event = loads(data)
        if not isinstance(event, dict):
            continue
        if event.get("type") == "content_block_delta":
            delta = event["delta"]
            kind = delta["type"]
            block = opened.get(event["index"])
            if block is not None:
                if kind == "text_delta":
                    yield TextDelta(index=block.index, text=delta["text"])
                    continue
                if kind == "input_json_delta" and block.start is not None:
                    yield ToolUseInputDelta(index=block.index, partial_json=delta["partial_json"])
                    block.moved = True
                    continue
                if kind == "thinking_delta":
                    yield ThinkingDelta(index=block.index, text=delta["thinking"])
                    continue
        for made in reader.read(event):
            yield made
        if reader.over:
            return
    for made in reader.flush():
        yield made


class _Reader:
    """Everything but the hot path: block starts and ends, usage, the end of the message."""

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self.open: dict[int, _Open] = {}
        self.over = False
        self._message: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._calls: dict[str, Any] = {}
        # a body may hold several messages, one after the other: their blocks follow each other (seen in recordings)
        self._offset = 0
        self._next = 0

    def read(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        """Translate one event that is not a plain delta."""
        kind = event.get("type")
        if kind == "content_block_start":
            yield from self._start(event["index"], event["content_block"])
        elif kind == "content_block_delta":
            self._rare_delta(event)
        elif kind == "content_block_stop":
            yield from self._stop(event["index"])
        elif kind == "message_start":
            yield from self._begin(event["message"])
        elif kind == "message_delta":
            self._message.update({name: value for name, value in event["delta"].items() if value is not None})
            self._message.update({name: value for name, value in event.items() if name not in _ENVELOPE})
            yield from self._count(event.get("usage"))
        elif kind == "message_stop":
            yield from self.flush()
            yield RawUpdate(trace=trace_of(self._message, self._usage))
            stop = self._message.get("stop_reason")
            yield MessageComplete(stop_reason=from_wire_stop(stop), stop_reason_raw=stop)
        elif kind == "error":
            yield from self.flush()
            yield ErrorEvent(error=error_from_body(event))
            self.over = True

    def _begin(self, message: dict[str, Any]) -> Iterator[StreamEvent]:
        yield from self.flush()
        self._offset = self._next
        self._message.update(message)
        yield RawUpdate(replay=prefix_replay(self._context), trace={"id": message.get("id")})
        yield from self._count(message.get("usage"))
        for index, raw in enumerate(message.get("content") or ()):
            yield from self._start(index, raw)
            yield from self._stop(index)

    def _start(self, wire_index: int, raw: dict[str, Any]) -> Iterator[StreamEvent]:
        index = wire_index + self._offset
        self._next = max(self._next, index + 1)
        opened = self.open[wire_index] = _Open(index, raw)
        kind = raw.get("type")
        if kind == "tool_use":
            name = self._context.tool_name(raw["name"])
            minted = self._context.mint_tool_use_id()
            opened.start = ToolUseStart(index=index, id=minted, name=name, provider_id=raw["id"], keep_raw=False)
            yield opened.start
            if extras := call_extras(raw):
                self._calls[raw["id"]] = extras
                yield RawUpdate(replay={"calls": dict(self._calls)})
        elif kind == "text" and raw.get("text"):
            yield TextDelta(index=index, text=raw["text"])
        elif kind == "thinking" and raw.get("thinking"):
            yield ThinkingDelta(index=index, text=raw["thinking"])

    def _rare_delta(self, event: dict[str, Any]) -> None:
        delta = event["delta"]
        opened = self.open.get(event["index"])
        if opened is None:
            return
        kind = delta["type"]
        if kind == "signature_delta":
            opened.raw["signature"] = delta["signature"]
        elif kind == "citations_delta":
            opened.raw["citations"] = [*(opened.raw.get("citations") or ()), delta["citation"]]
        elif kind == "input_json_delta":
            opened.pieces.append(delta["partial_json"])
        else:  # a delta of a newer kind: its fields belong to the block
            opened.raw.update({name: value for name, value in delta.items() if name != "type"})

    def _stop(self, wire_index: int) -> Iterator[StreamEvent]:
        opened = self.open.pop(wire_index, None)
        if opened is None:
            return
        index, raw = opened.index, opened.raw
        kind = raw.get("type")
        if opened.start is not None:
            yield ToolUseEnd(index=index, block=self._whole_call(opened, opened.start))
        elif kind == "text":
            yield BlockEnd(index=index, block=TextBlock(text="", citations=raw.get("citations") or ()))
        elif kind == "thinking":
            yield BlockEnd(index=index, block=ThinkingBlock(text="", signature=raw.get("signature") or None))
        else:
            yield BlockEnd(index=index, block=self._opaque(opened))

    def _whole_call(self, opened: _Open, start: ToolUseStart) -> ToolUseBlock | None:
        """The call as its start gave it, where no fragment came after it."""
        given = opened.raw.get("input")
        if opened.moved or not given:
            return None
        return ToolUseBlock(id=start.id, name=start.name, input=given, provider_id=start.provider_id)

    def _opaque(self, opened: _Open) -> Any:
        """A block of a kind without a canonical form, its input put together where it came in pieces."""
        raw = thaw(opened.raw)
        text = "".join(opened.pieces)
        if text.strip():
            value, error = read_tool_input(text)
            raw["input"] = text if error else value
        if raw.get("type") in _KNOWN:
            return from_wire_block(raw, self._context)
        return OpaqueBlock(provider=self._context.origin.provider, kind=str(raw.get("type")), data=raw)

    def _count(self, usage: dict[str, Any] | None) -> Iterator[StreamEvent]:
        """Counts are totals: a later one replaces an earlier one, an absent one keeps it (sheet §9)."""
        if usage:
            self._usage.update({name: value for name, value in usage.items() if value is not None})
            yield UsageUpdate(usage=from_wire_usage(self._usage))

    def flush(self) -> Iterator[StreamEvent]:
        """End what is open, so that an interrupted message keeps its signatures and opaque blocks."""
        for index in sorted(self.open):
            opened = self.open[index]
            if opened.start is None:
                yield from self._stop(index)
        self.open.clear()


_ENVELOPE = ("type", "delta", "usage")
_KNOWN = ("redacted_thinking",)
