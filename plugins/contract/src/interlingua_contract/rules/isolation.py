"""Rules on independence: two answers at once do not mix, the hook awaits nothing but its stream, sync equals async.

Never measures time.
The rules room comes in.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence

from interlingua.errors import InterlinguaError, MalformedResponseError, PluginError
from interlingua.plugins.wire import WireChunk
from interlingua.response.decode import StreamDecoder
from interlingua.response.framing import framer
from interlingua.types.events import StreamEvent
from interlingua_cli.cassettes import Exchange
from interlingua_contract.frames import Frames
from interlingua_contract.reading import framing_of, read, read_stream
from interlingua_contract.rule import Finding, rule
from interlingua_contract.rules.decoding import places
from interlingua_contract.rules.roads import streams
from interlingua_contract.subject import Subject


@rule(
    "C29",
    "Reading an answer leaves nothing behind: read again, or at the same time as another, it is the same.",
    source="DESIGN 4",
    fix="Keep the state of a stream in local names of the generator, or in an object made there; never on the plugin.",
)
def answers_do_not_mix(subject: Subject) -> Iterator[Finding]:
    """Every answer twice, and every stream in turn with another one."""
    for exchange in subject.exchanges:
        if exchange.good and read(subject, exchange).message != read(subject, exchange).message:
            yield Finding(why="read a second time it is another message", where=exchange.cassette)
    found = streams(subject)
    for one, other in zip(found, [*found[1:], *found[:1]], strict=True):
        alone = [read_stream(subject, each).message for each in (one, other)]
        together = _interleaved(subject, one, other)
        if together != alone:
            yield Finding(why="read at the same time they mix", where=f"{one.cassette} and {other.cassette}")


def _interleaved(subject: Subject, one: Exchange, other: Exchange) -> list[object]:
    decoders = [
        StreamDecoder(subject.provider, framer(framing_of(subject, each)), subject.context(each))
        for each in (one, other)
    ]
    cut = [Frames(subject, each) for each in (one, other)]
    for at in range(max(len(frames.events) for frames in cut)):
        for decoder, frames in zip(decoders, cut, strict=True):
            if at < len(frames.events):
                decoder.feed(frames.join([frames.events[at]]))
    made: list[object] = []
    for decoder in decoders:
        decoder.end()
        try:
            made.append(decoder.message())
        except InterlinguaError as error:
            made.append(error.partial)
    return made


@rule(
    "C30",
    "`stream_response` awaits nothing but its stream, and can be closed and cancelled at any event.",
    source="hook stream_response; DESIGN 4",
    fix="""No sleeping, no locks, no tasks, no I/O inside the generator; no `yield` in a `finally`, and no `except
    BaseException` that goes on or returns: a cancelled task would look like an answer that ended.""",
)
def hook_awaits_only_its_stream(subject: Subject) -> Iterator[Finding]:
    """Drive by hand; close after every event; cancel while it waits for the next chunk."""
    for exchange in streams(subject):
        found = read_stream(subject, exchange)
        if found.escaped is not None or isinstance(found.error, (PluginError, MalformedResponseError)):
            yield Finding(why=f"driven by hand: {found.error or found.escaped}", where=exchange.cassette)
            continue
        for place in places(len(found.events), 12):
            why = asyncio.run(_closed_after(subject, exchange, place))
            if why:
                yield Finding(why=f"closing after event {place}: {why}", where=exchange.cassette)
                break
        if not asyncio.run(_cancelled(subject, exchange)):
            yield Finding(why="cancelled while it waits, it ends as if nothing were", where=exchange.cassette)


async def _cancelled(subject: Subject, exchange: Exchange) -> bool:
    """True when a cancellation of the task that waits for the stream comes out of the hook."""
    chunks = framer(framing_of(subject, exchange)).feed(exchange.body)

    async def source() -> AsyncIterator[WireChunk]:
        for chunk in chunks[: len(chunks) // 2]:
            yield chunk
        raise asyncio.CancelledError

    try:
        async for _ in subject.provider.stream_response(source(), subject.context(exchange)):
            pass
    except asyncio.CancelledError:
        return True
    except InterlinguaError:
        return False
    return False


async def _closed_after(subject: Subject, exchange: Exchange, place: int) -> str:
    """Take some events and close; say what went wrong."""
    made = framer(framing_of(subject, exchange))
    stream = subject.provider.stream_response(_source(made.feed(exchange.body)), subject.context(exchange))
    closing = getattr(stream, "aclose", None)
    if closing is None:
        return "it is no asynchronous generator"
    try:
        for _ in range(place):
            await anext(stream)
        await closing()
    except StopAsyncIteration:
        return ""
    except RuntimeError as error:
        return str(error)
    return ""


async def _source(chunks: list[WireChunk]) -> AsyncIterator[WireChunk]:
    for chunk in chunks:
        yield chunk


@rule(
    "C31",
    "Sync and async agree: driven by an event loop the hook yields the events that core gets by hand.",
    source="DESIGN 4; STYLE 3.3",
    fix="Do not look for a running event loop, and do nothing that behaves differently inside of one.",
)
def sync_and_async_agree(subject: Subject) -> Iterator[Finding]:
    """Each recorded stream in a real event loop, its chunks one by one."""
    for exchange in streams(subject):
        found = read_stream(subject, exchange)
        events, error = asyncio.run(_looped(subject, exchange))
        if _shown(found.events) != _shown(events):
            yield Finding(why="other events in an event loop", where=exchange.cassette)
        elif found.error is None and error is not None:
            yield Finding(why=f"an error only in an event loop: {error}", where=exchange.cassette)


def _shown(events: Sequence[StreamEvent]) -> list[str]:
    """Events as text; a failure by its class, for each is a new object."""
    return [f"error {type(event.error).__name__}" if event.type == "error" else repr(event) for event in events]


async def _looped(subject: Subject, exchange: Exchange) -> tuple[list[StreamEvent], InterlinguaError | None]:
    made = framer(framing_of(subject, exchange))
    chunks = [*made.feed(exchange.body), *made.close()]

    async def source() -> AsyncIterator[WireChunk]:
        for chunk in chunks:
            await asyncio.sleep(0)
            yield chunk

    events: list[StreamEvent] = []
    try:
        async for event in subject.provider.stream_response(source(), subject.context(exchange)):
            events.append(event)
    except InterlinguaError as error:
        return events, error
    return events, None
