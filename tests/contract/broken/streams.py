"""Adapters that read streams wrongly."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any

import attrs

from interlingua.types.events import MessageComplete, RawUpdate, StreamEvent, TextDelta
from interlingua.types.messages import StopReason
from tests.contract.broken.machine import Mutant, in_chunks, in_events


def _no_spaces(event: StreamEvent) -> Iterator[StreamEvent]:
    yield attrs.evolve(event, text=event.text.strip()) if isinstance(event, TextDelta) else event


def _dropping(*kinds: str) -> Callable[[StreamEvent], Iterable[StreamEvent]]:
    return lambda event: () if event.type in kinds else (event,)


def _twice(kind: str) -> Callable[[StreamEvent], Iterable[StreamEvent]]:
    return lambda event: (event, event) if event.type == kind else (event,)


def _after_the_end(event: StreamEvent) -> Iterator[StreamEvent]:
    yield event
    if isinstance(event, MessageComplete):
        yield RawUpdate(trace={"late": True})


def _buffered(inner: Callable[..., Any], **_: Any) -> AsyncIterator[StreamEvent]:
    async def broken() -> AsyncIterator[StreamEvent]:
        for event in [event async for event in inner()]:
            yield event

    return broken()


def _always_complete(inner: Callable[..., Any], **_: Any) -> AsyncIterator[StreamEvent]:
    async def broken() -> AsyncIterator[StreamEvent]:
        done = False
        async for event in inner():
            done = done or event.type in ("message_complete", "error")
            yield event
        if not done:
            yield MessageComplete(stop_reason=StopReason.END_TURN, stop_reason_raw="end_turn")

    return broken()


def _sleeping(inner: Callable[..., Any], **_: Any) -> AsyncIterator[StreamEvent]:
    async def broken() -> AsyncIterator[StreamEvent]:
        async for event in inner():
            await asyncio.sleep(0)
            yield event

    return broken()


def _yields_when_closed(inner: Callable[..., Any], **_: Any) -> AsyncIterator[StreamEvent]:
    async def broken() -> AsyncIterator[StreamEvent]:
        try:
            async for event in inner():
                yield event
        finally:
            yield RawUpdate(trace={"closed": True})

    return broken()


def _in_a_loop(inner: Callable[..., Any], **_: Any) -> AsyncIterator[StreamEvent]:
    async def broken() -> AsyncIterator[StreamEvent]:
        try:
            looped = asyncio.get_running_loop() is not None
        except RuntimeError:
            looped = False
        async for event in inner():
            if not (looped and event.type == "usage_update"):
                yield event

    return broken()


def _refusing_unknown(chunk: Any) -> Iterator[Any]:
    if b"contract_new_kind" in chunk.data:
        raise ValueError("unknown event")
    yield chunk


def _needs_json(chunk: Any) -> Iterator[Any]:
    if not chunk.data.startswith(b"{"):
        raise RuntimeError("not an object")
    yield chunk


def _no_errors(chunk: Any) -> Iterator[Any]:
    if chunk.event != "error" and b'"error"' not in chunk.data:
        yield chunk


_shared: dict[str, str] = {}


def _shared_text(event: StreamEvent) -> Iterator[StreamEvent]:
    if isinstance(event, TextDelta):
        _shared["text"] = _shared.get("text", "") + event.text
        yield attrs.evolve(event, text=_shared["text"])
    else:
        yield event


def _other_word(event: StreamEvent) -> Iterator[StreamEvent]:
    yield attrs.evolve(event, stop_reason=StopReason.OTHER) if isinstance(event, MessageComplete) else event


def _per_call(inner: Callable[..., Any], **_: Any) -> AsyncIterator[StreamEvent]:
    async def broken() -> AsyncIterator[StreamEvent]:
        held: list[StreamEvent] = []
        async for event in inner():
            if event.type == "tool_use_end":
                held.append(event)
                continue
            yield event
        for event in held:
            yield event

    return broken()


STREAMS = (
    Mutant("spaces of deltas stripped", "C21", in_events(_no_spaces)),
    Mutant("counts of streams lost", "C21", in_events(_dropping("usage_update"))),
    Mutant("another stop reason when streamed", "C21", in_events(_other_word)),
    Mutant("a call never ended", "C24", in_events(_dropping("tool_use_end"))),
    Mutant("a call ended after the terminal event", "C24", {"stream_response": _per_call}),
    Mutant("an event after the terminal one", "C24", in_events(_after_the_end)),
    Mutant("calls ended twice", "C24", in_events(_twice("tool_use_end"))),
    Mutant("all events at the end", "C25", {"stream_response": _buffered}),
    Mutant("an unknown event is an exception", "C26", in_chunks(_refusing_unknown)),
    Mutant("text shared by all streams", "C29", in_events(_shared_text)),
    Mutant("sleeps between events", "C30", {"stream_response": _sleeping}),
    Mutant("yields while being closed", "C30", {"stream_response": _yields_when_closed}),
    Mutant("does otherwise in an event loop", "C31", {"stream_response": _in_a_loop}),
    Mutant("a cut stream is complete", "C32", {"stream_response": _always_complete}),
    Mutant("garbage in a stream is an untyped error", "C33", in_chunks(_needs_json)),
    Mutant("errors in a stream passed over", "C34", in_chunks(_no_errors)),
    Mutant("argument pieces twice", "C21", in_events(_twice("tool_use_input_delta"))),
)
