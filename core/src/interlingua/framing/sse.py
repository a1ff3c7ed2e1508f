"""Server-sent events, read incrementally: line ends are made LF and whole blocks are cut off at the last blank line.

The reading of a block (`blocks`, `fields`) and JSON decoding never live here.
Whoever may come into `interlingua.framing` reaches this class through it.
"""

from __future__ import annotations

from interlingua.framing.blocks import read_blocks
from interlingua.framing.fields import read_block
from interlingua.framing.pending import EVENT_LIMIT, check_size, make_chunk, too_large
from interlingua.wire import WireChunk

_BOM = b"\xef\xbb\xbf"
_LF, _CR = b"\n\r"  # numbers: bytes look for one five times as fast as for bytes
_NO_HEAD = b"\n"  # with a cut of 0 no data begins so, whatever it is


class SseFramer:
    """Reads an event stream by the WHATWG rules (HTML standard §9.2), with deviations.

    An event that the body's end cuts off from its blank line is given by `close` (recorded streams often lack that
    line), and JSON that stands where no field has it is kept (see `read_block`).

    Args:
        limit: Bytes one event may hold; more raises MalformedResponse.
    """

    __slots__ = ("_after_cr", "_at_start", "_cut", "_head", "_limit", "_name", "_odd", "_rest")

    def __init__(self, limit: int = EVENT_LIMIT) -> None:
        self._limit = limit
        self._rest = bytearray()
        self._at_start = True
        self._after_cr = False
        self._odd = True  # either of the two: one look per feed
        self._head, self._cut, self._name = _NO_HEAD, 0, ""  # how the last event began that came alone; its name

    def feed(self, data: bytes) -> list[WireChunk]:
        """Take the next bytes of the body (see `Framer.feed`)."""
        cut = self._cut
        if data[:cut] == self._head and data[-2:] == b"\n\n":  # most events come alone and begin as the last one did
            payload = data[cut:-2]
            if _LF not in payload and _CR not in payload and len(payload) <= self._limit:
                return [make_chunk((self._name, payload))]
        chunks = self._feed(data)
        alone = len(chunks) == 1 and not self._rest and not self._odd
        name = chunks[0][0] if alone else ""
        head = (f"event: {name}\ndata: ".encode() if name else b"data: ") if alone else _NO_HEAD
        self._head, self._cut, self._name = head, len(head) if alone else 0, name
        return chunks

    def _feed(self, data: bytes) -> list[WireChunk]:
        if self._odd or _CR in data:
            data = self._plain(data)
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
        """Flush the last event (see `Framer.close`)."""
        body, self._rest = bytes(self._rest), bytearray()
        return self._chunks(body)

    def _plain(self, data: bytes) -> bytes:
        """Take off the byte order mark and make every line end LF, whatever the last call left half said."""
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
