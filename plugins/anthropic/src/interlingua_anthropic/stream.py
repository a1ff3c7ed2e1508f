"""A stream -> canonical events; unknown events and fields are ignored (WIRE.md, Streaming)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import attrs

from interlingua.errors import MalformedResponseError
from interlingua.plugins import RequestContext, WireChunk, loads, loads_lossy, thaw
from interlingua.types import (
    BlockEnd,
    ContentBlock,
    ErrorEvent,
    MessageComplete,
    RawUpdate,
    StreamEvent,
    TextBlock,
    TextDelta,
    ThinkingBlock,
    ThinkingDelta,
    ToolUseBlock,
    ToolUseEnd,
    ToolUseInputDelta,
    ToolUseStart,
    UsageUpdate,
    read_tool_input,
)
from interlingua_anthropic.errors import error_from_body, is_error
from interlingua_anthropic.response import (
    call_extras,
    call_of,
    citations_of,
    dropped_blocks,
    from_wire_block,
    from_wire_stop,
    from_wire_usage,
    issued_id,
    prefix_replay,
    required_text,
    signature_of,
    stop_reason_text,
    trace_of,
)

_DELTAS = {
    "text": ("text_delta", "text"),
    "thinking": ("thinking_delta", "thinking"),
    "tool_use": ("input_json_delta", "partial_json"),
}
_TEXTS = {"text_delta": "text", "thinking_delta": "thinking"}
_ENVELOPE = ("type", "delta", "usage")

_EXACT = ("content_block_start", "message_start")  # may carry whole blocks, whose numbers are to stay exact


async def stream_response(  # noqa: C901, PLR0912  the hot path stays in one frame: a call a delta would double it
    response_stream: AsyncIterator[WireChunk], context: RequestContext
) -> AsyncIterator[StreamEvent]:
    """Translate framed chunks into events."""
    reader = MessagesStreamReader(context)
    fast = loads_lossy
    opened = reader.open
    async for name, data in response_stream:
        if data == b"[DONE]":
            for made in reader.end_mark():
                yield made
            continue
        try:
            event = fast(data)
        except ValueError:
            if name != "error":
                raise
            event = {"error": data.decode("utf-8", "replace")}
        if event.__class__ is not dict:
            continue
        if event.get("type") == "content_block_delta":
            delta = event["delta"]
            kind = delta["type"]
            block = opened.get(event["index"])
            if block is not None and block.delta_kind == kind:
                text = delta[block.field]
                if text.__class__ is str:
                    if kind == "text_delta":
                        yield TextDelta(index=block.index, text=text)
                    elif kind == "thinking_delta":
                        yield ThinkingDelta(index=block.index, text=text)
                    else:
                        block.moved |= text != ""
                        yield ToolUseInputDelta(index=block.index, partial_json=text)
                    continue
        elif event.get("type") in _EXACT:
            event = loads(data)
        elif name == "error":  # whatever its body is (the official SDK's rule)
            event = {**event, "type": "error"}
        for made in reader.read(event):
            yield made
        if reader.over:
            return
    for made in reader.flush():
        yield made


@attrs.define
class OpenBlock:
    """A block that has started and not ended; its usual deltas have `delta_kind`, with their text in `field`."""

    index: int
    raw: dict[str, Any]
    delta_kind: str
    field: str
    start: ToolUseStart | None = None
    pieces: list[str] = attrs.field(factory=list)
    moved: bool = False


class MessagesStreamReader:
    """The state of one stream."""

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self.open: dict[int, OpenBlock] = {}
        self.over = False
        self._stopped = False
        self._message: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._others: list[ContentBlock] = []
        self._calls: dict[str, Any] = {}
        self._begun: set[int] = set()  # as the wire counts blocks
        self._last = -1  # in the order of arrival
        # a body may hold several messages, one after the other: their blocks follow each other (seen in recordings)
        self._offset = 0

    def read(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        """Translate one event other than the common deltas."""
        kind = event.get("type")
        if kind == "content_block_start":
            yield from self._start(event["index"], event["content_block"])
        elif kind == "content_block_delta":
            yield from self._rare_delta(event)
        elif kind == "content_block_stop":
            yield from self._stop(event["index"])
        elif kind == "message_start":
            yield from self._begin(event.get("message") or {})
        elif kind == "message_delta":
            delta = event.get("delta") or {}
            self._message.update({name: value for name, value in delta.items() if value is not None})
            self._message.update({name: value for name, value in event.items() if name not in _ENVELOPE})
            yield from self._count(event.get("usage"))
        elif kind == "message_stop":
            yield from self._complete()
        elif is_error(event):
            yield from self.flush()
            yield ErrorEvent(error=error_from_body(event))
            self.over = True

    def end_mark(self) -> Iterator[StreamEvent]:
        """Treat another API's end mark, which some proxies add, as the last event if that is missing."""
        if not self._stopped and self._message.get("stop_reason") is not None:
            yield from self._complete()

    def _complete(self) -> Iterator[StreamEvent]:
        self._stopped = True
        yield from self.flush(whole=True)
        yield RawUpdate(trace=trace_of(self._message, self._usage), losses=dropped_blocks(self._message))
        stop = self._message.get("stop_reason")
        yield MessageComplete(stop_reason=from_wire_stop(stop), stop_reason_raw=stop_reason_text(stop))

    def flush(self, *, whole: bool = False) -> Iterator[StreamEvent]:
        """End the open block, so that an interrupted message keeps its signatures and opaque blocks.

        Args:
            whole: the message is complete, so a call that is still open is whole too.
        """
        for index in sorted(self.open):
            if whole or self.open[index].start is None:
                yield from self._stop(index)
        self.open.clear()

    def _begin(self, message: dict[str, Any]) -> Iterator[StreamEvent]:
        yield from self.flush()
        self._offset = self._last + 1
        self._message.update(message)
        yield RawUpdate(replay=prefix_replay(self._context), trace={"id": message.get("id")})
        yield from self._count(message.get("usage"))
        for index, raw in enumerate(message.get("content") or ()):
            yield from self._start(index, raw)
            yield from self._stop(index)

    def _start(self, wire_index: int, raw: dict[str, Any]) -> Iterator[StreamEvent]:
        if not isinstance(raw, dict) or not isinstance(wire_index, int):
            raise MalformedResponseError("a block begins without an object or an index", path="content_block")
        if wire_index in self.open:
            raise MalformedResponseError(f"block {wire_index} begins twice", path="index")
        # blocks are in the order of their starts: compatible servers use one index for all
        self._begun.add(wire_index + self._offset)
        index = self._last = max(wire_index + self._offset, self._last + 1)
        kind = raw.get("type")
        opened = OpenBlock(index, raw, *_DELTAS.get(str(kind), ("", "")))
        if kind == "tool_use":
            name, issued = self._context.tool_name(required_text(raw, "name")), issued_id(raw)
            minted = self._context.mint_tool_use_id()
            opened.start = ToolUseStart(index=index, id=minted, name=name, provider_id=issued, keep_raw=False)
            yield opened.start
            if issued and (extras := call_extras(raw)):
                self._calls[issued] = extras
                yield RawUpdate(replay={"calls": dict(self._calls)})
        elif kind == "text" and raw.get("text"):
            yield TextDelta(index=index, text=required_text(raw, "text"))
        elif kind == "thinking" and raw.get("thinking"):
            yield ThinkingDelta(index=index, text=required_text(raw, "thinking"))
        self.open[wire_index] = opened

    def _rare_delta(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        delta, wire_index = event["delta"], event["index"]
        opened = self.open.get(wire_index)
        kind = delta["type"]
        if opened is None:
            if kind in _TEXTS and wire_index + self._offset not in self._begun:  # a block whose start was left out
                name = _TEXTS[kind]
                yield from self._start(wire_index, {"type": name, name: delta.get(name)})
            return
        if kind == opened.delta_kind and delta.get(opened.field) is None:
            return  # no text, in another word
        raw = opened.raw
        if kind == "signature_delta":
            raw["signature"] = required_text(delta, "signature")
        elif kind == "citations_delta":
            raw["citations"] = [*(raw.get("citations") or ()), delta["citation"]]
        elif opened.delta_kind and (kind in _TEXTS or kind == "input_json_delta"):
            raise MalformedResponseError(
                f"a {kind} that block {event['index']} ({raw.get('type')}) cannot take", path="delta"
            )
        elif kind == "input_json_delta":
            opened.pieces.append(required_text(delta, "partial_json"))
        elif kind in _TEXTS:
            name = _TEXTS[kind]
            raw[name] = (raw.get(name) or "") + required_text(delta, name)
        elif not opened.delta_kind:  # a delta of a newer kind: its fields belong to the block
            raw.update({name: value for name, value in delta.items() if name != "type"})

    def _stop(self, wire_index: int) -> Iterator[StreamEvent]:
        opened = self.open.pop(wire_index, None)
        if opened is None:
            return
        index, raw = opened.index, opened.raw
        kind = raw.get("type")
        if opened.start is not None:
            yield ToolUseEnd(index=index, block=_whole_call(opened, opened.start))
        elif kind == "text":
            yield BlockEnd(index=index, block=TextBlock(text="", citations=citations_of(raw)))
        elif kind == "thinking":
            yield BlockEnd(index=index, block=ThinkingBlock(text="", signature=signature_of(raw)))
        else:
            self._others.append(self._other(opened))
            yield BlockEnd(index=index, block=self._others[-1])

    def _other(self, opened: OpenBlock) -> ContentBlock:
        """Return a block other than text, thinking or a call, with its input joined if it arrived in pieces."""
        raw = thaw(opened.raw)
        text = "".join(opened.pieces)
        if text.strip():
            value, error = read_tool_input(text)
            raw["input"] = text if error else value
        return from_wire_block(raw, self._context)

    def _count(self, usage: dict[str, Any] | None) -> Iterator[StreamEvent]:
        """Update the counts, which are totals: a later count replaces an earlier one, an absent count keeps it."""
        if usage:
            self._usage.update({name: value for name, value in usage.items() if value is not None})
            yield UsageUpdate(usage=from_wire_usage(self._usage, self._others))


def _whole_call(opened: OpenBlock, start: ToolUseStart) -> ToolUseBlock | None:
    """Return the call from its start event, if no fragment followed."""
    given = opened.raw.get("input")
    if opened.moved or not given:
        return None
    return call_of(given, start.id, start.name, start.provider_id)
