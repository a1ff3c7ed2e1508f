"""The body of a reply: decompressed piece by piece, within the limits of size and time, over any transport."""

from __future__ import annotations

import zlib
from collections.abc import Awaitable, Callable, Iterator

from interlingua._plugins.wire import WireResponse
from interlingua.errors import APIConnectionError, MalformedResponseError
from interlingua.transport import AsyncReply, TimeLimits

ACCEPTED = "gzip, deflate"
"""Content encodings that `ReplyBody` can decompress piece by piece."""

_COMPRESSED = frozenset(("gzip", "x-gzip", "deflate"))
_PIECE = 256 * 1024


class Decompressor:
    """Decompresses a body piece by piece, because a small one may hold a thousand times its size."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self._zlib = zlib.decompressobj(zlib.MAX_WBITS | 32)  # gzip or zlib, as its first bytes say
        self._begun = False

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Yield what these bytes hold."""
        if self._encoding not in _COMPRESSED:
            what = f"the body has content-encoding {self._encoding!r}"
            raise MalformedResponseError(f"{what}, which was not asked for and cannot be decompressed")
        piece = b""
        while data or len(piece) == _PIECE:
            try:
                piece = self._zlib.decompress(data, _PIECE)
            except zlib.error as error:
                if self._begun or self._encoding != "deflate":
                    raise APIConnectionError(f"the body cannot be decompressed: {error}") from error
                self._zlib = zlib.decompressobj(-zlib.MAX_WBITS)  # some servers leave zlib's header out
            else:
                data = self._zlib.unconsumed_tail
                if piece:
                    yield piece
            self._begun = True


class ReplyBody:
    """The reply to one request. Iterating yields the pieces of its body, decompressed, as they arrive.

    `read` accepts at most `max_bytes` of them.
    """

    def __init__(self, reply: AsyncReply, limits: TimeLimits, max_bytes: int) -> None:
        self._reply, self._limits, self._max_bytes = reply, limits, max_bytes
        self.status, self.headers = reply.status, reply.headers
        self.close, self.abort = reply.aclose, reply.abort
        self._pieces: Iterator[bytes] = iter(())
        encoding = reply.headers.get("content-encoding", "").strip().lower()
        self._inflate = None if encoding in ("", "identity") else Decompressor(encoding).pieces
        self._next: Callable[[], Awaitable[bytes]] | None = None
        self._whole: WireResponse | None = None  # once `read` has read it
        self._rest: Iterator[bytes] = iter(())  # its body, to iterate over

    def __aiter__(self) -> ReplyBody:
        return self

    async def __anext__(self) -> bytes:
        self._limits.left()
        if self._whole is not None:
            for whole in self._rest:
                return whole
            raise StopAsyncIteration
        if self._next is None:
            self._next = aiter(self._reply).__anext__
        if self._inflate is None:
            return await self._next()
        while (piece := next(self._pieces, None)) is None:
            self._pieces = self._inflate(await self._next())
        return piece

    async def read(self) -> WireResponse:
        """Read the whole body and release the connection; what was read is returned again.

        Raises:
            MalformedResponseError: it is larger than the limit.
            APIConnectionError: it broke off, or cannot be decompressed.
        """
        if self._whole is not None:
            return self._whole
        body = bytearray()
        try:
            async for piece in self:
                body += piece
                if len(body) > self._max_bytes:
                    text = f"the body of the answer is larger than max_response_bytes={self._max_bytes} bytes"
                    raise MalformedResponseError(text, status=self.status)
        finally:
            await self.close()
        self._whole = WireResponse(status=self.status, headers=self.headers, body=bytes(body))
        self._rest = iter((self._whole.body,))
        return self._whole
