"""Newline-delimited JSON, read incrementally: one chunk a line.

JSON decoding never lives here: a line is handed on as it came.
Whoever may come into `interlingua.framing` reaches this class through it.
"""

from __future__ import annotations

from interlingua.framing.pending import EVENT_LIMIT, check_size, make_chunk, too_large
from interlingua.wire import WireChunk


class NdjsonFramer:
    """Cuts a body at LF or CRLF; blank lines are skipped, the last line may lack its end.

    Args:
        limit: Bytes one line may hold; more raises MalformedResponse.
    """

    __slots__ = ("_limit", "_rest")

    def __init__(self, limit: int = EVENT_LIMIT) -> None:
        self._limit = limit
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[WireChunk]:
        """Take the next bytes of the body (see `Framer.feed`)."""
        if b"\n" not in data:
            # Appending keeps a line of many small pieces linear.
            self._rest += data
            check_size(self._rest, self._limit)
            return []
        lines = b"".join((self._rest, data)).split(b"\n")
        self._rest = bytearray(lines.pop())
        return self._chunks(lines)

    def close(self) -> list[WireChunk]:
        """Flush the last line (see `Framer.close`)."""
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
