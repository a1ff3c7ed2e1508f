"""Read a stream's chunks into events as they arrive; all state belongs to one answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from interlingua.errors import MalformedResponseError
from interlingua.plugins import RequestContext, WireChunk, loads
from interlingua.types import (
    BlockEnd,
    ErrorEvent,
    MessageComplete,
    RawUpdate,
    StreamEvent,
    TextDelta,
    ToolUseEnd,
    ToolUseInputDelta,
    ToolUseStart,
    UsageUpdate,
)

from interlingua_parrot_1.errors import error_from_squawk, find_squawk
from interlingua_parrot_1.response import from_wire_part, from_wire_stop_reason, from_wire_usage


async def stream_response(
    response_stream: AsyncIterator[WireChunk], context: RequestContext
) -> AsyncIterator[StreamEvent]:
    """Yield the events of one answer; it is complete only when the event `close` has arrived."""
    reader = AnswerReader(context)
    async for chunk in response_stream:
        for event in reader.read(chunk):
            yield event
        if reader.closed:
            return


class AnswerReader:
    """Reads the chunks of one answer; when they break off, core ends the stream and makes the partial message."""

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self._kinds: dict[int, str] = {}  # index of a part -> what it is
        self.closed = False

    def read(self, chunk: WireChunk) -> Iterator[StreamEvent]:
        """Read one chunk; an unknown one is skipped."""
        name = chunk.event
        if name == "open":
            yield RawUpdate(trace={"talk": _object(chunk).get("talk")})
        elif name == "words":
            data = _object(chunk)
            yield TextDelta(index=self._index(data, name), text=_text(data, "words"))
        elif name == "trick":
            yield self._tool_use_start(_object(chunk))
        elif name == "with":
            data = _object(chunk)
            yield ToolUseInputDelta(index=self._index(data, "trick", new=False), partial_json=_text(data, "json"))
        elif name == "part":
            data = _object(chunk)
            block = from_wire_part(data["part"], self._context)
            yield BlockEnd(index=self._index(data, name, old=False), block=block)
        elif name == "close":
            self.closed = True
            yield from self._complete(_object(chunk))
        elif name == "error":
            self.closed = True
            yield ErrorEvent(error=error_from_squawk(find_squawk(_object(chunk)) or {}))

    def _tool_use_start(self, data: dict[str, Any]) -> StreamEvent:
        context = self._context
        return ToolUseStart(
            index=self._index(data, "trick", old=False),
            id=context.mint_tool_use_id(),
            name=context.tool_name(_text(data, "trick")),
            provider_id=_text(data, "tag"),
            keep_raw=False,  # whole answers carry an object, so neither a whole answer nor a stream keeps the text
        )

    def _complete(self, data: dict[str, Any]) -> Iterator[StreamEvent]:
        yield from (ToolUseEnd(index=index) for index, kind in self._kinds.items() if kind == "trick")
        usage = from_wire_usage(data)
        if usage is not None:
            yield UsageUpdate(usage=usage)
        yield MessageComplete(stop_reason=from_wire_stop_reason(data), stop_reason_raw=data.get("reason"))

    def _index(self, data: dict[str, Any], kind: str, *, new: bool = True, old: bool = True) -> int:
        """Return the index of the part that an event belongs to.

        Args:
            data: the event.
            kind: what the part must be.
            new: the event may start the part.
            old: the event may continue the part.

        Raises:
            MalformedResponseError: it was started as another kind, or twice, or not at all.
        """
        index = data.get("at")
        before = self._kinds.get(index) if type(index) is int else None
        allowed = new if before is None else old and before == kind
        if type(index) is not int or not allowed:
            raise MalformedResponseError(f"an event about part {index!r}, which is {before or 'not started'}")
        self._kinds[index] = kind
        return index


def _object(chunk: WireChunk) -> dict[str, Any]:
    try:
        data = loads(chunk.data)
    except ValueError as error:
        raise MalformedResponseError(f"the event {chunk.event!r} is not JSON: {error}") from error
    if not isinstance(data, dict):
        raise MalformedResponseError(f"the event {chunk.event!r} is not an object")
    return data


def _text(data: dict[str, Any], name: str) -> str:
    value = data.get(name)
    if not isinstance(value, str):
        raise MalformedResponseError(f"{name!r} is {type(value).__name__}, not text")
    return value
