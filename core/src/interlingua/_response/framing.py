"""Cut a byte stream into chunks: server-sent events and JSON lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import repeat
from typing import Protocol

from interlingua._plugins.wire import WireChunk
from interlingua.errors import MalformedResponseError, PluginError

EVENT_LIMIT = 64 * 1024 * 1024
"""Bytes one event may hold by default, line ends around it not counted."""

make_chunk: Callable[[tuple[str, bytes]], WireChunk] = partial(tuple.__new__, WireChunk)
"""Make a `WireChunk` of a pair without a Python call: one is made per event."""

_BARE_JSON = (b"{", b"[{", b"error: {", b"error:{")
_BARE_JSON_GOES_ON = (b" ", b"\t", b'"', b"}", b"]")
_BOM = b"\xef\xbb\xbf"
_CR = 13  # bytes look for a number five times as fast as for bytes


def too_large(event: bytes | bytearray, limit: int) -> bool:
    """Return True when an event holds more than `limit` bytes; line ends around it do not count."""
    start, end = 0, len(event)
    if end <= limit:
        return False
    while start < end and event[start] in b"\r\n":  # `strip` would copy what is too large already
        start += 1
    while end > start and event[end - 1] in b"\r\n":
        end -= 1
    return end - start > limit


def check_size(event: bytes | bytearray, limit: int) -> None:
    """Raise MalformedResponseError when an event, complete or still growing, is larger than the limit."""
    if too_large(event, limit):
        raise MalformedResponseError(f"one event of the response stream is larger than {limit} bytes")


def read_block(block: bytes) -> Iterator[WireChunk]:
    """Yield the event between two blank lines by the WHATWG rules (HTML standard §9.2.6), and bare JSON in its place.

    Three deviations. A line that starts a JSON object is no field but an error body that a gateway wrote into
    the stream: it ends the event before it, takes its pretty-printed further lines with it, and becomes a chunk without
    an event name. A field `error` that holds a JSON object is the event of that name (local servers of older versions
    write failures so, and the gateways built on them). `data` lines of one whole JSON object each are an event each,
    for joined they would be no JSON: a service left the blank lines out.
    """
    name = of = b""  # `of`: the name so far when the last data line came
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
    """Read blocks with a blank line between each two; where the count of LF proves their shape, all at once."""
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

    An event that the body's end cuts off from its blank line is given by `close` (recorded streams often lack that
    line), and JSON that stands where no field has it is kept (see `read_block`).

    Args:
        limit: Bytes one event may hold; more raises MalformedResponseError.
    """

    __slots__ = ("_after_cr", "_at_start", "_limit", "_odd", "_rest")

    def __init__(self, limit: int = EVENT_LIMIT) -> None:
        self._limit = limit
        self._rest = bytearray()
        self._at_start = True
        self._after_cr = False
        self._odd = True  # either of the two: one look per feed

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
            # Appending, and looking for the blank line near the seam only, keeps tiny pieces linear.
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
        """Remove the byte order mark and make every line end LF, also one that two calls share."""
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
                # The whole events before it are not lost: this one is refused at the next call.
                self._rest[:0] = b"\n\n".join([*blocks[at:], b""])
                return chunks
            check_size(block, self._limit)
            chunks += read_block(block)
        return chunks


class NdjsonFramer:
    """Cuts a body at LF or CRLF; blank lines are skipped, the last line may lack its end.

    Args:
        limit: Bytes one line may hold; more raises MalformedResponseError.
    """

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
                # The whole lines before it are not lost: this one is refused at the next call.
                self._rest = bytearray(b"\n".join([*lines[at:], self._rest]))
                return chunks
            check_size(line, self._limit)
            if line and not line.isspace():
                chunks.append(make_chunk(("", line.removesuffix(b"\r"))))
        return chunks


class Framer(Protocol):
    """An incremental reader of one response body; it holds that body's unfinished end and is used once.

    A framer of another framing may have a method `write(chunk: WireChunk) -> bytes`, the reverse of `feed` for one
    chunk: with it the contract suite damages streams of that framing too.
    """

    def feed(self, data: bytes) -> Iterable[WireChunk]:
        """Take the next bytes of the body.

        As a generator it delivers the chunks before a broken one; whatever it raises becomes a MalformedResponseError.

        Args:
            data: Any number of bytes, cut anywhere, also inside a line end or a UTF-8 character.

        Returns:
            The chunks these bytes completed, in order.

        Raises:
            MalformedResponseError: One event is larger than the framer's limit.
        """
        ...

    def close(self) -> Iterable[WireChunk]:
        """Flush: the body ended in good order; a body that broke off is dropped instead of closed.

        What it raises because the body ended within a chunk becomes a StreamInterruptedError.

        Returns:
            What the body's last bytes hold when its final line end or blank line is missing.

        Raises:
            MalformedResponseError: One event is larger than the framer's limit.
        """
        ...


_FRAMERS: dict[str, Callable[[int], Framer]] = {"sse": SseFramer, "ndjson": NdjsonFramer}


def framer(name: str | Callable[[], Framer], limit: int = EVENT_LIMIT) -> Framer:
    """Make a framer for one response body: "sse", "ndjson", or a factory, as a connection names it.

    Raises:
        PluginError: the name is none of these.
    """
    if callable(name):
        return name()
    factory = _FRAMERS.get(name)
    if factory is None:
        known = ", ".join(repr(key) for key in _FRAMERS)
        raise PluginError(f"unknown framing {name!r}: a connection names one of {known}, or a framer factory")
    return factory(limit)
