"""Cut a byte stream into chunks: server-sent events and JSON lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import repeat
from typing import Protocol

from interlingua._plugins.wire import EVENT_LIMIT, WireChunk
from interlingua.errors import MalformedResponseError, PluginError

make_chunk: Callable[[tuple[str, bytes]], WireChunk] = partial(tuple.__new__, WireChunk)
"""Create a `WireChunk` from a pair without a call of Python code: one is created per event."""

_BARE_JSON = (b"{", b"[{", b"error: {", b"error:{")
_BARE_JSON_GOES_ON = (b" ", b"\t", b'"', b"}", b"]")
_BOM = b"\xef\xbb\xbf"
_CR = 13  # `13 in data` is five times as fast as `b"\r" in data`


def too_large(event: bytes | bytearray, limit: int) -> bool:
    """Return True if an event is larger than `limit` bytes; line ends around it do not count."""
    start, end = 0, len(event)
    if end <= limit:
        return False
    while start < end and event[start] in b"\r\n":  # `strip` would copy an event that may be too large
        start += 1
    while end > start and event[end - 1] in b"\r\n":
        end -= 1
    return end - start > limit


def check_size(event: bytes | bytearray, limit: int) -> None:
    """Raise MalformedResponseError if an event, complete or still growing, is larger than the limit."""
    if too_large(event, limit):
        raise MalformedResponseError(f"one event of the response stream is larger than {limit} bytes")


def read_block(block: bytes) -> Iterator[WireChunk]:
    """Yield the event between two blank lines by the WHATWG rules (HTML standard §9.2.6), with three deviations.

    A line that starts a JSON object is an error body that a gateway wrote into the stream: it ends the event before it,
    continues over its indented lines, and becomes a chunk without an event name. A field `error` with a JSON object is
    an event of that name (older local servers report failures this way). `data` lines that each hold one complete JSON
    object are separate events, because a service left out the blank lines.
    """
    name = of = b""  # `of`: the event name when the last data line was read
    data: list[bytes] = []
    bare: list[bytes] = []
    for line in block.split(b"\n"):
        if bare and line.startswith(_BARE_JSON_GOES_ON):
            bare.append(line)
            continue
        if bare:
            yield _outside(bare)
            bare = []
        if line.startswith(_BARE_JSON):
            if data:
                yield _event(name, data)
            name, data, bare = b"", [], [line]
            continue
        field, _, value = line.partition(b":")
        if field == b"data":
            value = value.removeprefix(b" ")
            if len(data) == 1 and _is_whole(data[0]) and (_is_whole(value) or value == b"[DONE]"):
                yield _event(of, data)
                data = []
            data.append(value)
            of = name
        elif field == b"event":
            name = value.removeprefix(b" ")
    if bare:
        yield _outside(bare)
    if data:
        yield _event(name, data)


def _is_whole(line: bytes) -> bool:
    return line.startswith(b"{") and line.endswith(b"}")


def _outside(lines: list[bytes]) -> WireChunk:
    text = b"\n".join(lines)
    name = "error" if text.startswith(b"error:") else ""
    return make_chunk((name, text.removeprefix(b"error:").lstrip()))


def _event(name: bytes, data: list[bytes]) -> WireChunk:
    return make_chunk((name.decode("utf-8", "replace"), b"\n".join(data)))


class _Names(dict[bytes, str]):
    """Decoded event names; bounded, because the server chooses them."""

    def __missing__(self, name: bytes) -> str:
        text = name.decode("utf-8", "replace")
        if len(self) < 256 and len(name) < 256:
            self[name] = text
        return text


_names = _Names()


def read_blocks(body: bytes) -> list[WireChunk]:
    """Read blocks separated by blank lines; all at once if the number of LF proves that they have the usual form."""
    feeds = body.count(b"\n")
    if body.startswith(b"data: "):
        payloads = body[6:].split(b"\n\ndata: ")
        if feeds == 2 * len(payloads) - 2:
            return list(map(make_chunk, zip(repeat(""), payloads, strict=False)))
    elif body.startswith(b"event: "):
        pairs = [block.partition(b"\ndata: ") for block in body[7:].split(b"\n\nevent: ")]
        if feeds == 3 * len(pairs) - 2 and all(pair[1] for pair in pairs):
            return [make_chunk((_names[name], payload)) for name, _, payload in pairs]
    chunks: list[WireChunk] = []
    for block in body.split(b"\n\n"):
        if block.startswith(b"data:") and b"\n" not in block:
            chunks.append(make_chunk(("", block[5:].removeprefix(b" "))))
        else:
            chunks += read_block(block)
    return chunks


class SseFramer:
    """Reads an event stream by the WHATWG rules (HTML standard §9.2), with deviations.

    `close` returns a last event without a blank line after it (recorded streams often lack that line), and JSON outside
    of fields is kept (see `read_block`). An event of more than `limit` bytes raises MalformedResponseError.
    """

    __slots__ = ("_after_cr", "_at_start", "_limit", "_odd", "_rest")

    def __init__(self, limit: int = EVENT_LIMIT) -> None:
        self._limit = limit
        self._rest = bytearray()
        self._at_start = True
        self._after_cr = False
        self._odd = True  # either of the two, so that `feed` tests one flag

    def feed(self, data: bytes) -> list[WireChunk]:
        """See `Framer.feed`."""
        if self._odd or _CR in data:
            data = self._normalise(data)
        rest = self._rest
        if not rest and data.endswith(b"\n\n"):
            body = data[:-2]
            return read_blocks(body) if len(body) <= self._limit else self._chunks(body)
        end = data.rfind(b"\n\n")
        if end < 0 and not (data.startswith(b"\n") and rest.endswith(b"\n")):
            # Append, and search for the blank line at the boundary only: tiny pieces stay linear.
            rest += data
            check_size(rest, self._limit)
            return []
        if rest:
            data = b"".join((rest, data))
            end = data.rfind(b"\n\n")
        self._rest = bytearray(data[end + 2 :])
        return self._chunks(data[:end])

    def close(self) -> list[WireChunk]:
        """See `Framer.close`."""
        body, self._rest = bytes(self._rest), bytearray()
        return self._chunks(body)

    def _normalise(self, data: bytes) -> bytes:
        """Remove the byte order mark and convert line ends to LF, also a CR LF that two calls share."""
        if self._at_start:
            data = bytes(self._rest) + data
            self._rest.clear()
            if len(data) < len(_BOM) and _BOM.startswith(data):
                self._rest += data
                return b""
            self._at_start = False
            data = data.removeprefix(_BOM)
        if data:
            if self._after_cr and data.startswith(b"\n"):
                data = data[1:]
            self._odd = self._after_cr = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return data

    def _chunks(self, body: bytes) -> list[WireChunk]:
        if len(body) <= self._limit:
            return read_blocks(body)
        chunks: list[WireChunk] = []
        blocks = body.split(b"\n\n")
        for at, block in enumerate(blocks):
            if chunks and too_large(block, self._limit):
                # Return the complete events before it first; the next call rejects this one.
                self._rest[:0] = b"\n\n".join([*blocks[at:], b""])
                return chunks
            check_size(block, self._limit)
            chunks += read_block(block)
        return chunks


class NdjsonFramer:
    """Splits a body at LF or CRLF into lines of at most `limit` bytes; skips blank lines; the last may lack its end."""

    __slots__ = ("_limit", "_rest")

    def __init__(self, limit: int = EVENT_LIMIT) -> None:
        self._limit = limit
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[WireChunk]:
        """See `Framer.feed`."""
        if b"\n" not in data:
            # Appending keeps a line of many small pieces linear.
            self._rest += data
            check_size(self._rest, self._limit)
            return []
        lines = b"".join((self._rest, data)).split(b"\n")
        self._rest = bytearray(lines.pop())
        return self._chunks(lines)

    def close(self) -> list[WireChunk]:
        """See `Framer.close`."""
        line, self._rest = bytes(self._rest), bytearray()
        return self._chunks([line])

    def _chunks(self, lines: list[bytes]) -> list[WireChunk]:
        chunks: list[WireChunk] = []
        for at, line in enumerate(lines):
            if chunks and too_large(line, self._limit):
                # Return the complete lines before it first; the next call rejects this one.
                self._rest = bytearray(b"\n".join([*lines[at:], self._rest]))
                return chunks
            check_size(line, self._limit)
            if line and not line.isspace():
                chunks.append(make_chunk(("", line.removesuffix(b"\r"))))
        return chunks


class Framer(Protocol):
    """An incremental reader of one response body; it holds the incomplete end of the body and is used once.

    A framer may have a method `write(chunk: WireChunk) -> bytes`, the reverse of `feed` for one chunk: the contract
    suite uses it to damage streams of this framing. Both methods raise MalformedResponseError if one event is larger
    than the limit of the framer.
    """

    def feed(self, data: bytes) -> Iterable[WireChunk]:
        """Take the next bytes of the body, split anywhere, and return the chunks that they complete, in order.

        Written as a generator, it delivers the chunks before a broken one; its exceptions become
        MalformedResponseError.
        """

    def close(self) -> Iterable[WireChunk]:
        """Return the last chunks after the normal end of the body; not called if the connection broke.

        An exception because the body ended within a chunk becomes a StreamInterruptedError.
        """


_FRAMERS: dict[str, Callable[[int], Framer]] = {"sse": SseFramer, "ndjson": NdjsonFramer}


def framer(name: str | Callable[[], Framer], limit: int = EVENT_LIMIT) -> Framer:
    """Return a framer for one response body: "sse", "ndjson", or a factory, as in `Connection.framing`."""
    if callable(name):
        return name()
    factory = _FRAMERS.get(name)
    if factory is None:
        known = ", ".join(repr(key) for key in _FRAMERS)
        raise PluginError(f"unknown framing {name!r}: use one of {known}, or a framer factory")
    return factory(limit)
