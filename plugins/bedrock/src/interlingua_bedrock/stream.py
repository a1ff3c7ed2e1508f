"""The events of a stream -> canonical events; unknown events and fields are ignored (WIRE.md, Streaming)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import attrs

from interlingua.errors import MalformedResponseError
from interlingua.plugins import RequestContext, WireChunk, loads
from interlingua.types import (
    BlockEnd,
    ContentBlock,
    ErrorEvent,
    MessageComplete,
    RawUpdate,
    RedactedThinkingBlock,
    StreamEvent,
    TextBlock,
    TextDelta,
    ThinkingBlock,
    ThinkingDelta,
    ToolUseEnd,
    ToolUseInputDelta,
    ToolUseStart,
    UsageUpdate,
)
from interlingua_bedrock.errors import make_error
from interlingua_bedrock.response import (
    SERVER_CALL,
    failure_of,
    from_wire_block,
    from_wire_stop,
    from_wire_usage,
    issued_id,
    required_text,
    trace_of,
)

_FAILURES = ("exception", "error")


async def stream_response(
    response_stream: AsyncIterator[WireChunk], context: RequestContext
) -> AsyncIterator[StreamEvent]:
    """Translate framed chunks into events."""
    reader = ConverseStreamReader(context)
    async for chunk in response_stream:
        for made in reader.read(chunk):
            yield made
        if reader.over:
            return
    for made in reader.finish():
        yield made


@attrs.define
class ConverseOpenBlock:
    """A block that has started and not ended.

    Attributes:
        index: its place in the message.
        kind: `text`, `toolUse`, `reasoningContent`, or another kind of the wire; "" while it is unknown.
        start: start event of a call.
        raw: the merged deltas of any other block.
        pieces: pieces of a string that arrives in several deltas.
        signature: signature of reasoning.
        citations: citations of text.
    """

    index: int
    kind: str = ""
    start: ToolUseStart | None = None
    raw: dict[str, Any] = attrs.field(factory=dict)
    pieces: list[str] = attrs.field(factory=list)
    signature: str | None = None
    citations: list[dict[str, Any]] = attrs.field(factory=list)


class ConverseStreamReader:
    """The state of one stream."""

    def __init__(self, context: RequestContext) -> None:
        self.over = False
        self._context = context
        self._open: dict[int, ConverseOpenBlock] = {}
        self._next = 0
        self._stop: dict[str, Any] | None = None
        self._ended = False
        self._trace: dict[str, Any] = {}

    def read(self, chunk: WireChunk) -> Iterator[StreamEvent]:
        """Translate one frame."""
        kind, data = chunk
        if chunk.headers.get(":message-type") in _FAILURES or kind.endswith("Exception") or kind == "error":
            yield from self._fail(kind, chunk)
            return
        event = loads(data) if data else {}
        if not isinstance(event, dict):
            raise MalformedResponseError(f"the event {kind!r} is not an object")
        if kind == "contentBlockDelta":
            yield from self._delta(self._block(event), event.get("delta"))
        elif kind == "contentBlockStart":
            yield from self._start(event)
        elif kind == "contentBlockStop":
            if (opened := self._open.pop(_index(event), None)) is not None:
                yield from self._end(opened)
        elif kind == "messageStop":
            self._stop = event
            self._trace |= trace_of(event)
            yield from self._flush(whole=True)
        elif kind == "metadata":
            self._trace |= trace_of(event)
            usage = from_wire_usage(event.get("usage"), event.get("serviceTier"))
            if usage is not None:
                yield UsageUpdate(usage=usage)

    def finish(self) -> Iterator[StreamEvent]:
        """End the message after the source has ended, completely or not."""
        if self.over:
            return
        yield from self._flush(whole=False)
        if self._trace:
            yield RawUpdate(trace=dict(self._trace))
        if self._stop is not None:
            raw = self._stop.get("stopReason")
            if (failed := failure_of(raw)) is not None:
                yield ErrorEvent(error=failed)
                return
            word = raw if raw is None or isinstance(raw, str) else str(raw)
            yield MessageComplete(stop_reason=from_wire_stop(raw), stop_reason_raw=word)

    def _fail(self, kind: str, chunk: WireChunk) -> Iterator[StreamEvent]:
        try:
            details = loads(chunk.data)
        except ValueError:
            details = {}
        if not isinstance(details, dict) or not details:
            details = {"message": chunk.headers.get(":error-message") or chunk.data.decode("utf-8", "replace")}
        yield from self._flush(whole=False)
        if self._trace:
            yield RawUpdate(trace=dict(self._trace))
        yield ErrorEvent(error=make_error(kind, details, headers=self._context.response_headers))
        self.over = True

    def _block(self, event: Mapping[str, Any]) -> ConverseOpenBlock:
        """Return the block an event belongs to; text and reasoning start with their first delta."""
        index = _index(event)
        found = self._open.get(index)
        if found is None:
            found = self._open[index] = ConverseOpenBlock(self._next)
            self._next += 1
        return found

    def _start(self, event: Mapping[str, Any]) -> Iterator[StreamEvent]:
        if _index(event) in self._open:
            raise MalformedResponseError(f"block {_index(event)} begins twice", path="contentBlockIndex")
        start = event.get("start")
        if not isinstance(start, Mapping):
            raise MalformedResponseError("a block begins without an object", path="start")
        opened = self._block(event)
        opened.kind = next(iter(start), "")
        inner = start.get(opened.kind)
        if opened.kind == "toolUse" and isinstance(inner, Mapping) and inner.get("type") != SERVER_CALL:
            name = self._context.tool_name(required_text(inner, "name"))
            minted = self._context.mint_tool_use_id()
            opened.start = ToolUseStart(
                index=opened.index, id=minted, name=name, provider_id=issued_id(inner), keep_raw=False
            )
            yield opened.start
        elif isinstance(inner, Mapping):
            opened.raw = dict(inner)

    def _delta(self, opened: ConverseOpenBlock, delta: Any) -> Iterator[StreamEvent]:
        if not isinstance(delta, Mapping):
            raise MalformedResponseError("a delta is not an object", path="delta")
        kind = next(iter(delta), "")
        value = delta.get(kind)
        if kind == "text" and isinstance(value, str) and opened.kind in ("", "text"):
            opened.kind = "text"
            yield TextDelta(index=opened.index, text=value)
        elif kind == "toolUse" and isinstance(value, Mapping):
            piece = required_text(value, "input")
            if opened.start is not None:
                yield ToolUseInputDelta(index=opened.index, partial_json=piece)
            opened.pieces.append(piece)
        elif kind == "reasoningContent" and isinstance(value, Mapping):
            yield from self._reasoning(opened, value)
        elif kind == "citation" and isinstance(value, Mapping):
            opened.kind = opened.kind or "text"
            opened.citations.append(dict(value))
        elif kind == "toolResult" and isinstance(value, list):
            opened.raw["content"] = _joined_texts([*opened.raw.get("content", ()), *value])
        elif kind == "image" and isinstance(value, Mapping):
            source = value.get("source")
            if isinstance(source, Mapping) and isinstance(source.get("bytes"), str):
                opened.pieces.append(source["bytes"])
                opened.raw |= {name: one for name, one in value.items() if name != "source"}
            else:
                opened.raw |= value
        elif kind:  # of a newer kind: kept unchanged
            opened.kind = opened.kind or kind
            opened.raw.setdefault("deltas", []).append(dict(delta))

    def _reasoning(self, opened: ConverseOpenBlock, value: Mapping[str, Any]) -> Iterator[StreamEvent]:
        opened.kind = "reasoningContent"
        if isinstance(value.get("redactedContent"), str):
            opened.pieces.append(value["redactedContent"])
        if isinstance(value.get("signature"), str):
            opened.signature = (opened.signature or "") + value["signature"]
        if isinstance(value.get("text"), str):
            yield ThinkingDelta(index=opened.index, text=value["text"])

    def _flush(self, *, whole: bool) -> Iterator[StreamEvent]:
        """End the open blocks; a call that was cut off has no end."""
        for index in sorted(self._open):
            opened = self._open[index]
            if whole or opened.start is None:
                yield from self._end(opened)
        self._open.clear()

    def _end(self, opened: ConverseOpenBlock) -> Iterator[StreamEvent]:
        if opened.start is not None:
            yield ToolUseEnd(index=opened.index)
        elif opened.kind:
            yield BlockEnd(index=opened.index, block=self._whole(opened))

    def _whole(self, opened: ConverseOpenBlock) -> ContentBlock:
        """Return the block at its end; its text was sent before."""
        if opened.kind == "text":
            return TextBlock(text="", citations=opened.citations)
        if opened.kind == "reasoningContent":
            if opened.pieces:
                return RedactedThinkingBlock(data=_joined_base64(opened.pieces))
            return ThinkingBlock(text="", signature=opened.signature)
        raw = dict(opened.raw)
        if opened.kind == "toolUse" and opened.pieces:
            raw["input"] = _parsed("".join(opened.pieces))
        elif opened.kind == "image" and opened.pieces:
            raw["source"] = {"bytes": _joined_base64(opened.pieces)}
        return from_wire_block({opened.kind: raw}, self._context)


def _index(event: Mapping[str, Any]) -> int:
    value = event.get("contentBlockIndex")
    if not isinstance(value, int):
        raise MalformedResponseError("an event of a block has no index", path="contentBlockIndex")
    return value


def _parsed(text: str) -> Any:
    try:
        return loads(text)
    except ValueError:
        return text


def _joined_texts(parts: list[Any]) -> list[Any]:
    """Join neighbouring text parts: each delta has a piece of one."""
    joined: list[Any] = []
    for part in parts:
        last = joined[-1] if joined else None
        if isinstance(part, Mapping) and isinstance(last, Mapping) and set(part) == set(last) == {"text"}:
            joined[-1] = {"text": last["text"] + part["text"]}
        else:
            joined.append(part)
    return joined


def _joined_base64(pieces: list[str]) -> str:
    """Return the base64 of bytes that arrived in separately encoded pieces."""
    if len(pieces) == 1:
        return pieces[0]
    try:
        return base64.b64encode(b"".join(base64.b64decode(piece, validate=True) for piece in pieces)).decode()
    except binascii.Error:
        return "".join(pieces)
