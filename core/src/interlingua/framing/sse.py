"""Server-sent events, read incrementally: blocks are cut at blank lines and the usual shapes are read in bulk.

JSON decoding and the meaning of event names never live here.
Whoever may come into `interlingua.framing` reaches this class through it.
"""

from __future__ import annotations

from itertools import repeat

from interlingua.framing.fields import read_block
from interlingua.framing.pending import EVENT_LIMIT, check_size, make_chunk
from interlingua.wire import WireChunk

_BOM = b"\xef\xbb\xbf"


class _Names(dict[bytes, str]):
    """Decoded event names; bounded, because the server chooses them."""

    def __missing__(self, name: bytes) -> str:
        text = name.decode("utf-8", "replace")
        if len(self) < 256 and len(name) < 256:
            self[name] = text
        return text


_names = _Names()


class SseFramer:
    """Reads an event stream by the WHATWG rules (HTML standard §9.2), with two deviations.

    An event that the body's end cuts off from its blank line is given by `close` (recorded streams often lack that
    line), and bare JSON lines are kept (see `read_block`).

    Args:
        limit: Bytes one event may hold; more raises MalformedResponse.
    """

    __slots__ = ("_after_cr", "_at_start", "_limit", "_rest")

    def __init__(self, limit: int = EVENT_LIMIT) -> None:
        self._limit = limit
        self._rest = bytearray()
        self._at_start = True
        self._after_cr = False

    def feed(self, data: bytes) -> list[WireChunk]:
        """Take the next bytes of the body (see `Framer.feed`)."""
        if self._at_start:
            data = self._without_bom(data)
        if self._after_cr or b"\r" in data:
            data = self._with_lf(data)
        end = data.rfind(b"\n\n")
        rest = self._rest
        if rest:
            if end < 0 and not (data.startswith(b"\n") and rest.endswith(b"\n")):
                # Appending, and looking for the blank line near the seam only, keeps tiny pieces linear.
                rest += data
                check_size(rest, self._limit)
                return []
            data = b"".join((rest, data))
            end = data.rfind(b"\n\n")
            rest.clear()
        elif end < 0:
            rest += data
            check_size(rest, self._limit)
            return []
        if end + 2 < len(data):
            rest += data[end + 2 :]
        return self._chunks(data[:end])

    def close(self) -> list[WireChunk]:
        """Flush the last event (see `Framer.close`)."""
        body = bytes(self._rest)
        self._rest.clear()
        return self._chunks(body)

    def _without_bom(self, data: bytes) -> bytes:
        data = bytes(self._rest) + data
        self._rest.clear()
        if len(data) < len(_BOM) and _BOM.startswith(data):
            self._rest += data
            return b""
        self._at_start = False
        return data.removeprefix(_BOM)

    def _with_lf(self, data: bytes) -> bytes:
        if not data:
            return data
        if self._after_cr and data.startswith(b"\n"):
            data = data[1:]
        self._after_cr = data.endswith(b"\r")
        data = data.replace(b"\r\n", b"\n")
        return data.replace(b"\r", b"\n") if b"\r" in data else data

    def _chunks(self, body: bytes) -> list[WireChunk]:
        """Read whole blocks; each quick road is taken only when the count of LF proves that every block has its shape."""
        if len(body) > self._limit:
            return self._sized_chunks(body)
        if body.startswith(b"data: "):
            payloads = body[6:].split(b"\n\ndata: ")
            if body.count(b"\n") == 2 * len(payloads) - 2:
                return list(map(make_chunk, zip(repeat(""), payloads, strict=False)))
        elif body.startswith(b"event: "):
            pairs = [block.partition(b"\ndata: ") for block in body[7:].split(b"\n\nevent: ")]
            if body.count(b"\n") == 3 * len(pairs) - 2 and all(pair[1] for pair in pairs):
                return [make_chunk((_names[name], payload)) for name, _, payload in pairs]
        return [chunk for block in body.split(b"\n\n") for chunk in read_block(block)]

    def _sized_chunks(self, body: bytes) -> list[WireChunk]:
        blocks = body.split(b"\n\n")
        chunks: list[WireChunk] = []
        for at, block in enumerate(blocks):
            if len(block) > self._limit:
                if chunks:
                    # The whole events before it are not lost: this one is refused at the next call.
                    self._rest[:0] = b"\n\n".join([*blocks[at:], b""])
                    return chunks
                check_size(block, self._limit)
            chunks += read_block(block)
        return chunks
