"""Recorded exchanges: answers read through the façade, and streams cut into events."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from interlingua._response.decode import StreamDecoder
from interlingua._response.framing import framer
from interlingua.errors import InterlinguaError
from interlingua.plugins import ConnectionSettings, WireChunk, WireResponse
from interlingua.types import Message, RequestOptions, StreamEvent, tool_result, user
from interlingua_cli.cassettes import RecordedExchange
from interlingua_contract.rule import NotApplicable
from interlingua_contract.subject import Aim, Subject


@attrs.frozen(kw_only=True)
class ReadResult:
    """The result of reading one answer.

    Attributes:
        events: events of a stream; empty for a whole body.
        message: the message, the partial message of a failed answer, or None.
        error: the typed error, or None.
        escaped: an exception that is not a typed error, or None; always a mistake.
    """

    events: tuple[StreamEvent, ...] = ()
    message: Message | None = None
    error: InterlinguaError | None = None
    escaped: Exception | None = None

    @property
    def text(self) -> str:
        """All text of the message, thinking included."""
        if self.message is None:
            return ""
        return "".join(block.text for block in self.message.content if block.type in ("text", "thinking"))


def framing_of(subject: Subject, exchange: RecordedExchange) -> Any:
    """Return the framing of an exchange's stream."""
    return subject.provider.connection(ConnectionSettings(api=subject.api_of(exchange))).framing


def make_decoder(subject: Subject, exchange: RecordedExchange) -> StreamDecoder:
    """Return a decoder for an exchange's stream."""
    return StreamDecoder(subject.provider, framer(framing_of(subject, exchange)), subject.context(exchange))


def read_stream(
    subject: Subject,
    exchange: RecordedExchange,
    body: bytes | None = None,
    *,
    size: int | None = None,
    broken: bool = False,
) -> ReadResult:
    """Read a stream, or `body` instead, in pieces of `size` bytes; with `broken`, the connection is lost at the end."""
    events: list[StreamEvent] = []
    decoder: StreamDecoder | None = None
    try:
        decoder = make_decoder(subject, exchange)
        body = exchange.body if body is None else body
        step = size or max(len(body), 1)
        for at in range(0, len(body), step):
            events += decoder.feed(body[at : at + step])
        events += decoder.end(broken=broken)
        return ReadResult(events=tuple(events), message=decoder.message(broken=OSError("cut") if broken else None))
    except InterlinguaError as error:
        partial = error.partial
        if not isinstance(partial, Message) and decoder is not None:
            partial = decoder.partial()
        return ReadResult(events=tuple(events), message=partial, error=error)
    except Exception as error:  # what no hook may let out
        return ReadResult(events=tuple(events), escaped=error)


def read_whole(
    subject: Subject, exchange: RecordedExchange, body: bytes | None = None, *, status: int | None = None
) -> ReadResult:
    """Read a whole body."""
    response = WireResponse(
        status=exchange.status if status is None else status,
        headers=exchange.headers,
        body=exchange.body if body is None else body,
    )
    try:
        return ReadResult(message=subject.provider.from_wire_response(response, subject.context(exchange)))
    except InterlinguaError as error:
        return ReadResult(message=error.partial if isinstance(error.partial, Message) else None, error=error)
    except Exception as error:  # what no hook may let out
        return ReadResult(escaped=error)


def read_answer(subject: Subject, exchange: RecordedExchange, body: bytes | None = None) -> ReadResult:
    """Read an answer by the road it came on."""
    return (read_stream if exchange.streamed else read_whole)(subject, exchange, body)


_GAPS = {"sse": b"\n\n", "ndjson": b"\n"}


class Frames:
    """A stream cut into its events.

    Raises:
        NotApplicable: the plugin's own framing has no `write`, so no event can be written.
    """

    def __init__(self, subject: Subject, exchange: RecordedExchange) -> None:
        framing = framing_of(subject, exchange)
        self._make = framing
        self.framing = framing if isinstance(framing, str) else "own"
        self._gap = _GAPS.get(self.framing, b"")
        if self._gap:
            body = exchange.body.replace(b"\r\n", b"\n")
            self.events: list[bytes] = [event for event in body.split(self._gap) if event.strip()]
        else:
            self.events = list(_split_frames(framer(framing), exchange.body))

    def join(self, events: Sequence[bytes]) -> bytes:
        """Put events together again."""
        return b"".join(event + self._gap for event in events)

    def event(self, data: bytes, name: str = "") -> bytes:
        """Write an event of this framing."""
        if self.framing == "own":
            return self._write(WireChunk(name, data))
        if self.framing != "sse":
            return data
        lines = b"\n".join(b"data: " + line for line in data.split(b"\n"))
        return b"event: " + name.encode() + b"\n" + lines if name else lines

    def data(self, event: bytes) -> Any:
        """Return an event's JSON, or None."""
        raw = event
        if self.framing == "own":
            raw = self._read(event).data
        elif self.framing == "sse":
            raw = b"\n".join(line[5:].strip() for line in event.split(b"\n") if line.startswith(b"data:"))
        try:
            return json.loads(raw)
        except ValueError:
            return None

    def name(self, event: bytes) -> str:
        """Return an event's name, empty without one."""
        return self._read(event).event

    def _read(self, event: bytes) -> WireChunk:
        made = framer(self._make)
        return next((chunk for chunk in [*made.feed(event), *made.close()]), WireChunk("", b""))

    def _reads_as(self, event: bytes, data: bytes) -> bool:
        try:
            return self._read(event).data == data
        except Exception:  # a checksum, a length
            return False

    def _write(self, chunk: WireChunk) -> bytes:
        write = getattr(framer(self._make), "write", None)
        if write is None:
            raise NotApplicable("the connection's own framing has no `write`, so its streams cannot be changed; add it")
        written: bytes = write(chunk)
        return written

    def with_data(self, event: bytes, data: Any) -> bytes:
        """Return the event with another payload."""
        raw = json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()
        if self.framing == "ndjson":
            return raw
        if self.framing == "own":
            chunk = self._read(event)
            plain = event.replace(chunk.data, raw)  # without `write`: good where a framing counts no bytes
            return plain if self._reads_as(plain, raw) else self._write(WireChunk(chunk.event, raw, chunk.headers))
        kept = [line for line in event.split(b"\n") if not line.startswith(b"data:")]
        return b"\n".join([*kept, b"data: " + raw])

    def changed(self, change: Callable[[Any], Any]) -> bytes:
        """Return the stream with every JSON payload passed through `change`."""
        events = []
        for event in self.events:
            data = self.data(event)
            new = data if data is None else change(data)
            events.append(event if new is data else self.with_data(event, new))
        return self.join(events)


def _split_frames(made: Any, body: bytes) -> Iterator[bytes]:
    """Yield the bytes of each event, up to and including the byte that completes it."""
    start = 0
    for at in range(len(body)):
        if list(made.feed(body[at : at + 1])):
            yield body[start : at + 1]
            start = at + 1
    if body[start:].strip():
        yield body[start:]


_Fault = Callable[[Frames, Sequence[bytes], int], list[bytes]]

STREAM_FAULTS: Mapping[str, _Fault] = {
    "a lost event": lambda _, events, at: [*events[:at], *events[at + 1 :]],
    "an event twice": lambda _, events, at: [*events[: at + 1], *events[at:]],
    "two events swapped": lambda _, events, at: [*events[:at], *reversed(events[at : at + 2]), *events[at + 2 :]],
    "a line of garbage": lambda frames, events, at: [*events[:at], frames.event(b"\x00\xff{garbage"), *events[at:]],
    "half an event": lambda _, events, at: [*events[:at], events[at][: len(events[at]) // 2], *events[at + 1 :]],
    "null": lambda frames, events, at: [*events[:at], frames.event(b"null"), *events[at:]],
    "a list": lambda frames, events, at: [*events[:at], frames.event(b"[1]"), *events[at:]],
    "another stream spliced in": lambda _, events, at: [*events[:at], *events],
}
"""Faults at one event of a stream, by name."""


def is_decision(exchange: RecordedExchange) -> bool:
    """Return True if an exchange is an answered request for decisions."""
    try:
        body = json.loads(exchange.request_body)
    except ValueError:
        return False
    return isinstance(body, dict) and "questions" in body and exchange.status < 300


def recorded_streams(subject: Subject) -> list[RecordedExchange]:
    """Return every recorded stream.

    Raises:
        NotApplicable: no cassette has a stream.
    """
    found = [exchange for exchange in subject.exchanges if exchange.good and exchange.streamed]
    if not found:
        raise NotApplicable("no cassette has a stream: record one")
    return found


def recorded_answers(subject: Subject) -> list[tuple[RecordedExchange, Message]]:
    """Return every recorded answer that became a whole message.

    Raises:
        NotApplicable: no cassette has a good answer.
    """
    answers = [(exchange, read_answer(subject, exchange)) for exchange in subject.exchanges if exchange.good]
    found = [(exchange, read.message) for exchange, read in answers if read.error is None and read.message is not None]
    if not found:
        raise NotApplicable("no cassette has a good answer: record one")
    return found


def aim_for(subject: Subject, exchange: RecordedExchange) -> Aim:
    """Return what the exchange was made for."""
    api, model = subject.api_of(exchange) or subject.apis[0], subject.model_of(exchange)
    declared = subject.provider.capabilities(model, RequestOptions(model=model, api=api))
    return subject.aim(api, model, declared)


def replay_history(message: Message) -> list[Message]:
    """Return the history in which this answer is sent back."""
    return [user("q"), message, *[tool_result(one, "r") for one in message.tool_calls], user("n")]


def spread_places(count: int, most: int = 24) -> list[int]:
    """Return places to break a sequence at: all of a short one, some of a long one, always both ends."""
    return list(range(count)) if count <= most else sorted({count * step // most for step in range(most)} | {count - 1})


def json_payloads(subject: Subject, exchange: RecordedExchange) -> list[Any]:
    """Return the JSON of an answer: of a whole body, or of each event."""
    if exchange.streamed:
        frames = Frames(subject, exchange)
        return [data for event in frames.events if (data := frames.data(event)) is not None]
    return [json.loads(exchange.body)]


USAGE_COUNTS = (
    "input_tokens", "output_tokens", "cached_input_tokens", "cache_creation_input_tokens", "reasoning_tokens",
)  # fmt: skip
