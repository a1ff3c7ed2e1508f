"""A framed stream of the talk API -> events, as they come.

Never awaits anything but its source, and keeps no state beyond one answer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from interlingua.errors import MalformedResponseError
from interlingua.json import loads
from interlingua.plugins.wire import RequestContext, WireChunk
from interlingua.types.events import (
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

from interlingua_parrot.from_wire import from_wire_part, from_wire_reason, from_wire_usage
from interlingua_parrot.service import error_of_squawk, squawk_of


async def stream_response(source: AsyncIterator[WireChunk], context: RequestContext) -> AsyncIterator[StreamEvent]:
    """Translate events; the message is complete only when `close` has said so."""
    reader = AnswerReader(context)
    async for chunk in source:
        for event in reader.read(chunk):
            yield event
        if reader.closed:
            return


class AnswerReader:
    """Reads the events of one answer; core ends the source, and makes the partial message, when they break off."""

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self._kinds: dict[int, str] = {}
        self.closed = False

    def read(self, chunk: WireChunk) -> Iterator[StreamEvent]:
        """Take one event; an unknown one is passed over."""
        name = chunk.event
        if name == "open":
            yield RawUpdate(trace={"talk": _object(chunk).get("talk")})
        elif name == "words":
            said = _object(chunk)
            yield TextDelta(index=self._place(said, name), text=_text(said, "words"))
        elif name == "trick":
            yield self._begun(_object(chunk))
        elif name == "with":
            said = _object(chunk)
            yield ToolUseInputDelta(index=self._place(said, "trick", new=False), partial_json=_text(said, "json"))
        elif name == "part":
            said = _object(chunk)
            block = from_wire_part(said["part"], self._context)
            yield BlockEnd(index=self._place(said, name, old=False), block=block)
        elif name == "close":
            self.closed = True
            yield from self._ending(_object(chunk))
        elif name == "error":
            self.closed = True
            yield ErrorEvent(error=error_of_squawk(squawk_of(_object(chunk)) or {}))

    def _begun(self, said: dict[str, Any]) -> StreamEvent:
        context = self._context
        return ToolUseStart(
            index=self._place(said, "trick", old=False),
            id=context.mint_tool_use_id(),
            name=context.tool_name(_text(said, "trick")),
            provider_id=_text(said, "tag"),
            keep_raw=False,  # whole answers carry an object here, so neither road keeps a text
        )

    def _ending(self, said: dict[str, Any]) -> Iterator[StreamEvent]:
        yield from (ToolUseEnd(index=at) for at, kind in self._kinds.items() if kind == "trick")
        usage = from_wire_usage(said)
        if usage is not None:
            yield UsageUpdate(usage=usage)
        yield MessageComplete(stop_reason=from_wire_reason(said), stop_reason_raw=said.get("reason"))

    def _place(self, said: dict[str, Any], kind: str, *, new: bool = True, old: bool = True) -> int:
        """Return the part that an event is about.

        Raises:
            MalformedResponseError: it was begun as another kind, or twice, or not at all.
        """
        at = said.get("at")
        known = self._kinds.get(at) if type(at) is int else None
        if type(at) is not int or (known is None and not new) or (known is not None and (not old or known != kind)):
            raise MalformedResponseError(f"an event about part {at!r}, which is {known or 'not begun'}")
        self._kinds[at] = kind
        return at


def _object(chunk: WireChunk) -> dict[str, Any]:
    try:
        said = loads(chunk.data)
    except ValueError as error:
        raise MalformedResponseError(f"the event {chunk.event!r} is not JSON: {error}") from error
    if not isinstance(said, dict):
        raise MalformedResponseError(f"the event {chunk.event!r} is no object")
    return said


def _text(said: dict[str, Any], name: str) -> str:
    value = said.get(name)
    if not isinstance(value, str):
        raise MalformedResponseError(f"{name!r} is {type(value).__name__}, not text")
    return value
