"""Rules on streams: the same answer streamed or whole, in pieces of any size, alone or beside another."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from difflib import SequenceMatcher
from functools import partial
from typing import Any

from interlingua._response.framing import framer
from interlingua.errors import InterlinguaError, MalformedResponseError, PluginError, ProviderError
from interlingua.plugins import WireChunk
from interlingua.types import Message, StreamEvent
from interlingua_cli.cassettes import RecordedExchange
from interlingua_contract.hook_calls import describe
from interlingua_contract.json_paths import append_to_texts, leaves
from interlingua_contract.recordings import (
    USAGE_COUNTS,
    Frames,
    aim_for,
    framing_of,
    make_decoder,
    read_answer,
    read_stream,
    read_whole,
    recorded_streams,
    replay_history,
    spread_places,
)
from interlingua_contract.rule import NotApplicable, RuleFinding, around_difference, rule
from interlingua_contract.scenes import READ
from interlingua_contract.subject import Subject

_SIZES = (1, 7, 64)
_LETTERS = "é√🙂"


@rule(
    "C21",
    "The whole body and the stream of the same answer produce the same message and the same next request.",
    source="format.md, Streaming",
    fix="""Build the blocks of both with the same functions, and number a block by its position in the finished
    content. Ids may differ if the provider creates a new one for each request; nothing else may. If two recordings
    are not of the same answer, list the cassette in quirks.unpaired with the reason.""",
)
def stream_equals_whole_body(subject: Subject) -> Iterator[RuleFinding]:
    """Pairs of cassettes whose requests differ only in streaming."""
    pairs = list(_pairs(subject))
    if not pairs:
        raise NotApplicable("no two cassettes hold the same request, once whole and once streamed: record a pair")
    for whole, streamed in pairs:
        where = f"{whole.cassette} and {streamed.cassette}"
        one, other = read_whole(subject, whole), read_stream(subject, streamed)
        if one.message is None or other.message is None or one.error or other.error:
            yield RuleFinding(f"cannot be read: {one.error or other.error or one.escaped}", where)
            continue
        for what, left, right in zip(_FACTS, _facts_of(one.message), _facts_of(other.message), strict=True):
            if left != right:
                yield RuleFinding(f"{what} differ", where, **around_difference(f"{left!r}", f"{right!r}"))
        aim = aim_for(subject, whole)
        bodies = [
            _without_ids(subject.write(aim, replay_history(message), [READ]).body, message)
            for message in (one.message, other.message)
        ]
        if json.loads(bodies[0]) != json.loads(bodies[1]):
            yield RuleFinding("the next request differs", where, **around_difference(bodies[0], bodies[1]))


def _pairs(subject: Subject) -> Iterator[tuple[RecordedExchange, RecordedExchange]]:
    """Each good whole answer with a good stream of its request: of several, the stream with the most similar name.

    A failure inside a 200 is not that answer.
    """
    found: dict[str, tuple[list[RecordedExchange], list[RecordedExchange]]] = {}
    for exchange in subject.exchanges:
        if exchange.good and exchange.cassette not in subject.quirks.unpaired:
            found.setdefault(_request_key(subject, exchange), ([], []))[exchange.streamed].append(exchange)
    for wholes, streams in found.values():
        answered = [one for one in streams if not isinstance(read_stream(subject, one).error, ProviderError)]
        for whole in wholes:
            if answered and not isinstance(read_whole(subject, whole).error, ProviderError):
                yield whole, max(answered, key=lambda one: SequenceMatcher(None, one.cassette, whole.cassette).ratio())


def _request_key(subject: Subject, exchange: RecordedExchange) -> str:
    """Return what a whole and a streamed request for the same answer have in common: API, model and body."""
    body = exchange.request if isinstance(exchange.request, dict) else {}
    kept = {name: value for name, value in body.items() if not name.startswith("stream")}
    return json.dumps([subject.api_of(exchange), subject.model_of(exchange), kept], sort_keys=True)


_FACTS = ("the kinds of blocks", "texts", "thinking", "calls", "stop reasons", "counts")


def _facts_of(message: Message) -> Iterator[Any]:
    yield [block.type for block in message.content]
    yield [block.text for block in message.content if block.type == "text"]
    yield [block.text for block in message.thinking_blocks]
    yield [(call.name, call.input, call.raw_input, call.parse_error) for call in message.tool_calls]
    yield message.metadata.stop_reason, message.metadata.stop_reason_raw
    usage = message.metadata.usage
    yield usage and [getattr(usage, name) for name in USAGE_COUNTS]


def _without_ids(body: bytes, message: Message) -> bytes:
    for number, call in enumerate(message.tool_calls):
        body = body.replace((call.provider_id or call.id).encode(), f"call-{number}".encode())
    raw = json.dumps(message.metadata.provider_raw or {})
    ids = {part for part in raw.replace('"', " ").split() if "_" in part and len(part) > 12}
    for one in ids:
        body = body.replace(one.encode(), b"id")
    return body


@rule(
    "C22",
    "A stream yields the same events and message at every chunk size: 1, 7 and 64 bytes, and all at once.",
    source="format.md, Streaming",
    fix="""Keep state per event, never per chunk of bytes: core frames the stream before your hook reads it. A
    framing that you write yourself must hold back unfinished lines and unfinished UTF-8.""",
)
def chunking_does_not_matter(subject: Subject) -> Iterator[RuleFinding]:
    """Each recorded stream at four sizes; one more with letters of several bytes."""
    streams = recorded_streams(subject)
    torn = {exchange.cassette: _find_torn_letters(subject, exchange) for exchange in streams}
    for exchange in streams:
        if why := torn[exchange.cassette]:
            yield RuleFinding(why, exchange.cassette)
        whole = read_stream(subject, exchange)
        if whole.escaped is not None:
            yield RuleFinding(f"{type(whole.escaped).__name__}: {whole.escaped}", exchange.cassette)
        for size in _SIZES:
            again = read_stream(subject, exchange, size=size)
            if (again.message, type(again.error)) != (whole.message, type(whole.error)):
                yield RuleFinding(f"another message in pieces of {size} bytes", exchange.cassette)
            elif _without_errors(again.events) != _without_errors(whole.events):
                yield RuleFinding(f"other events in pieces of {size} bytes", exchange.cassette)
    if set(torn.values()) == {None}:
        raise NotApplicable("no event of a stream has three letters of text, so letters of several bytes were not cut")


def _without_errors(events: Sequence[StreamEvent]) -> list[str]:
    return [describe(event) for event in events if event.type != "error"]


def _find_torn_letters(subject: Subject, exchange: RecordedExchange) -> str | None:
    """Put letters of two, three and four bytes into the text; they must arrive at every size; None without text."""
    plain = read_stream(subject, exchange).text

    body = Frames(subject, exchange).changed(partial(append_to_texts, words=_LETTERS, within=plain))
    if _LETTERS not in read_stream(subject, exchange, body).text:
        return None
    torn = [size for size in _SIZES if _LETTERS not in read_stream(subject, exchange, body, size=size).text]
    return f"letters of several bytes are torn in pieces of {torn[0]} bytes" if torn else ""


@rule(
    "C23",
    "CRLF line ends, comments, a byte-order mark and a missing last newline change nothing.",
    source="format.md, Streaming; hook connection",
    fix="""Use core's framings `sse` or `ndjson`. A framing that you write yourself must accept every form that its
    standard allows.""",
)
def line_ends_do_not_matter(subject: Subject) -> Iterator[RuleFinding]:
    """Each recorded stream in four disguises."""
    for exchange in recorded_streams(subject):
        frames = Frames(subject, exchange)
        plain = read_stream(subject, exchange)
        body = frames.join(frames.events)
        disguises = {"no last newline": body.rstrip(b"\n")}
        if frames.framing != "own":
            disguises["CRLF"] = body.replace(b"\n", b"\r\n")
        if frames.framing == "sse" or "event-stream" in exchange.headers.get("content-type", ""):
            disguises["CRLF"] = body.replace(b"\n", b"\r\n")
            disguises["no space behind the colon"] = body.replace(b"\ndata: ", b"\ndata:").replace(
                b"data: ", b"data:", 1
            )
            disguises["data on two lines"] = _on_two_lines(body)
            disguises["comments"] = b": hello\n\n" + body.replace(b"\n\n", b"\n\n: keep-alive\n\n")
            disguises["a byte-order mark"] = b"\xef\xbb\xbf" + body
        for name, changed in disguises.items():
            for size in (None, 1):
                found = read_stream(subject, exchange, changed, size=size)
                if (found.message, type(found.error)) != (plain.message, type(plain.error)):
                    yield RuleFinding(f"another message with {name}", exchange.cassette)
                    break


def _on_two_lines(body: bytes) -> bytes:
    """Break the JSON of each event behind its first comma, where a line break means nothing."""
    return re.sub(rb'(?m)^(data: \{"[^",\\]*":(?:"[^"\\]*"|[0-9a-z.]+),)"', rb'\1\ndata: "', body)


@rule(
    "C29",
    "Reading an answer keeps no state: reading it again, or together with another, has the same result.",
    source="hook stream_response",
    fix="""Keep the state of a stream in local variables of the generator, or in an object created there; never on
    the plugin.""",
)
def answers_do_not_mix(subject: Subject) -> Iterator[RuleFinding]:
    """Every answer twice, and every stream in turn with another one."""
    for exchange in subject.exchanges:
        if exchange.good and read_answer(subject, exchange).message != read_answer(subject, exchange).message:
            yield RuleFinding("read a second time it is another message", exchange.cassette)
    found = recorded_streams(subject)
    for one, other in zip(found, [*found[1:], *found[:1]], strict=True):
        alone = [read_stream(subject, each).message for each in (one, other)]
        together = _read_interleaved(subject, one, other)
        if together != alone:
            yield RuleFinding("read at the same time they mix", f"{one.cassette} and {other.cassette}")


def _read_interleaved(subject: Subject, one: RecordedExchange, other: RecordedExchange) -> list[object]:
    decoders = [make_decoder(subject, each) for each in (one, other)]
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
    "`stream_response` awaits only its stream, and can be closed and cancelled at any event.",
    source="hook stream_response",
    fix="""Inside the generator use no sleep, lock, task or I/O, no `yield` in a `finally`, and no `except
    BaseException` that continues or returns: a cancelled task would look like a finished answer.""",
)
def hook_awaits_only_its_stream(subject: Subject) -> Iterator[RuleFinding]:
    """Drive by hand; close after every event; cancel while it waits for the next chunk."""
    for exchange in recorded_streams(subject):
        found = read_stream(subject, exchange)
        if found.escaped is not None or isinstance(found.error, (PluginError, MalformedResponseError)):
            yield RuleFinding(f"driven by hand: {found.error or found.escaped}", exchange.cassette)
            continue
        for place in spread_places(len(found.events), 12):
            if why := asyncio.run(_close_after(subject, exchange, place)):
                yield RuleFinding(f"closing after event {place}: {why}", exchange.cassette)
                break
        if not asyncio.run(_raises_cancellation(subject, exchange)):
            yield RuleFinding("when cancelled it ends as if the answer were complete", exchange.cassette)


async def _raises_cancellation(subject: Subject, exchange: RecordedExchange) -> bool:
    """True when the hook raises the cancellation of the task that waits for its stream."""
    chunks = list(framer(framing_of(subject, exchange)).feed(exchange.body))
    source = _source(chunks[: len(chunks) // 2], cancelled=True)
    try:
        async for _ in subject.provider.stream_response(source, subject.context(exchange)):
            pass
    except asyncio.CancelledError:
        return True
    except InterlinguaError:
        return False
    return False


async def _close_after(subject: Subject, exchange: RecordedExchange, place: int) -> str:
    """Take some events and close; return what went wrong."""
    made = framer(framing_of(subject, exchange))
    stream = subject.provider.stream_response(_source(list(made.feed(exchange.body))), subject.context(exchange))
    if (closing := getattr(stream, "aclose", None)) is None:
        return "it is not an asynchronous generator"
    try:
        for _ in range(place):
            await anext(stream)
        await closing()
    except StopAsyncIteration:
        return ""
    except RuntimeError as error:
        return str(error)
    return ""


async def _source(chunks: list[WireChunk], *, cancelled: bool = False) -> AsyncIterator[WireChunk]:
    for chunk in chunks:
        await asyncio.sleep(0)
        yield chunk
    if cancelled:
        raise asyncio.CancelledError


@rule(
    "C31",
    "Sync and async agree: the hook yields the same events in an event loop as without one.",
    source="hook stream_response",
    fix="Do not search for a running event loop, and do nothing that behaves differently inside one.",
)
def sync_and_async_agree(subject: Subject) -> Iterator[RuleFinding]:
    """Each recorded stream in a real event loop, its chunks one by one."""
    for exchange in recorded_streams(subject):
        found = read_stream(subject, exchange)
        events, error = asyncio.run(_read_in_loop(subject, exchange))
        if _event_texts(found.events) != _event_texts(events):
            yield RuleFinding("other events in an event loop", exchange.cassette)
        elif found.error is None and error is not None:
            yield RuleFinding(f"an error only in an event loop: {error}", exchange.cassette)


def _event_texts(events: Sequence[StreamEvent]) -> list[str]:
    """Events as text; a failure by its class, for each is a new object."""
    return [f"error {type(event.error).__name__}" if event.type == "error" else describe(event) for event in events]


async def _read_in_loop(
    subject: Subject, exchange: RecordedExchange
) -> tuple[list[StreamEvent], InterlinguaError | None]:
    made = framer(framing_of(subject, exchange))
    source = _source([*made.feed(exchange.body), *made.close()])
    events: list[StreamEvent] = []
    try:
        async for event in subject.provider.stream_response(source, subject.context(exchange)):
            events.append(event)
    except InterlinguaError as error:
        return events, error
    return events, None


@rule(
    "C85",
    "Parallel calls whose pieces arrive in turn, and calls that are equal, are read as the same separate calls.",
    source="format.md, Streaming",
    fix="""Keep the pieces of each call by the index or id that its events carry, not in one buffer of the current call.
    Two calls with equal names and arguments are two calls.""",
)
def interleaved_calls_stay_apart(subject: Subject) -> Iterator[RuleFinding]:
    """The events of parallel calls of each recorded stream shuffled so that their pieces alternate."""
    found = 0
    for exchange in recorded_streams(subject):
        plain = read_stream(subject, exchange)
        if plain.message is None or plain.error is not None or len(plain.message.tool_calls) < 2:
            continue
        frames = Frames(subject, exchange)
        for changed in _alternated(frames):
            read = read_stream(subject, exchange, frames.join(changed))
            if read.error is not None or read.message is None:
                break  # events that this wire never sends in this order
            found += 1
            wanted = sorted(_calls_of(plain.message))
            if (got := sorted(_calls_of(read.message))) != wanted:
                yield RuleFinding(f"the calls {wanted} are read as {got}", exchange.cassette)
    if not found:
        raise NotApplicable("no recorded stream has parallel calls in events that carry an index: record one")


def _calls_of(message: Message) -> list[tuple[str, str]]:
    return [(call.name, call.input_json) for call in message.tool_calls]


def _alternated(frames: Frames) -> Iterator[list[bytes]]:
    """Yield the events with those of two calls in turn, each call's own in order."""
    groups: dict[object, list[bytes]] = {}
    places: list[int] = []
    for at, event in enumerate(frames.events):
        index = _call_index(frames.data(event))
        if index is not None:
            groups.setdefault(index, []).append(event)
            places.append(at)
    if len(groups) < 2 or places != list(range(places[0], places[-1] + 1)):
        return
    queues = [list(group) for group in groups.values()]
    mixed: list[bytes] = []
    while any(queues):
        mixed += [queue.pop(0) for queue in queues if queue]
    yield [*frames.events[: places[0]], *mixed, *frames.events[places[-1] + 1 :]]


def _call_index(data: Any) -> object:
    """Return the index of the call that an event is about; None for another event."""
    for path, leaf in leaves(data):
        if path and path[-1] in ("index", "contentBlockIndex", "output_index") and isinstance(leaf, int):
            inside = "tool_calls" in path
            about = json.dumps(data)
            if inside or any(
                word in about for word in ("tool_use", "toolUse", "input_json", "function_call", "tool-call")
            ):
                return leaf
    return None
