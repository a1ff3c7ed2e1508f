"""Join the chunks of a chunked body that arrive together, before httpcore parses them.

A service sends each delta of a model as one chunk, and the HTTP parser spends more time on a chunk than everything
after it does on the delta. The streams of this network backend therefore rewrite neighbouring complete chunks of one
read into one chunk. All other bytes pass unchanged: heads, bodies with a length, size lines that a read cut off,
extensions, trailers, and anything that is not HTTP. The bytes of the body, its end and its errors do not change.
"""

from __future__ import annotations

import re
import selectors
from collections.abc import Callable
from typing import Any, Self

import anyio
import httpcore

_Selector = getattr(selectors, "PollSelector", selectors.SelectSelector)
_SIZE = re.compile(rb"(0*[0-9A-Fa-f]{1,8})\r\n")
_LONGEST_SIZE = 12  # bytes of a size line that a read may have cut off
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:[ \t]*chunked[ \t]*(?:\r\n|$)")
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,18})[ \t]*(?:\r\n|$)")
_STATUS = re.compile(rb"\s*http/1\.[01] (\d{3})")
_LONGEST_HEAD = 128 * 1024
_MOST_SIZES = 4096  # that one connection remembers
_AT_ONCE = 16 * 1024  # bytes of a joined chunk: a stream decodes a chunk's events together
_WRITTEN = 256 * 1024  # most bytes that one turn of the event loop writes


class ChunkJoiner:
    """Rewrites the bytes that one connection receives."""

    def __init__(self) -> None:
        self._off = False  # from here on everything passes: this is not understood
        self._in_chunks = False  # else a head is expected
        self._seen = b""  # of a head or a size line that is not complete; it has passed already
        self._sizes = _Sizes()
        self._skip = 0  # bytes that pass: the rest of a body, or of a chunk and its line end

    def feed(self, data: bytes) -> bytes:
        """Return the bytes that the parser reads instead of those of one read; b"" is the end of the connection."""
        if self._off or not data:
            return data
        if not self._skip:
            return self._join(data) if self._in_chunks else self._read_head(data)
        at = min(self._skip, len(data))
        self._skip -= at
        return data if at == len(data) else data[:at] + self.feed(data[at:])

    def _read_head(self, data: bytes) -> bytes:
        seen = self._seen + data
        end = seen.find(b"\r\n\r\n") + 4
        if end < 4:
            self._seen, self._off = seen, len(seen) > _LONGEST_HEAD
            return data
        at = end - len(self._seen)
        head, self._seen = seen[: end - 4].lower(), b""
        status = _STATUS.match(head)
        kind = int(status[1]) if status else 0
        has_body = kind >= 200 and kind not in (204, 304)
        if 100 <= kind < 200:  # an interim reply: another head follows
            self._off = kind == 101
        elif has_body and _CHUNKED.search(head):
            self._in_chunks = True
        elif has_body and (length := _LENGTH.search(head)):
            self._skip = int(length[1])
        else:
            self._off = True
        return data[:at] + self.feed(data[at:])

    def _join(self, data: bytes) -> bytes:
        if self._seen:
            return self._read_cut_size(data)
        at, pieces = self._split(data)
        while found := _SIZE.match(data, at):
            size, start = int(found[1], 16), found.end()
            end = start + size
            if not size:  # the last chunk; trailers and the next head follow
                self._in_chunks = False
                break
            if end + 2 > len(data):
                self._skip = end + 2 - len(data)
                break
            if data[end : end + 2] != b"\r\n":
                self._off = True
                break
            pieces.append(data[start:end])
            at = end + 2
        else:
            self._keep_cut_size(data[at:])
        body = b"".join(pieces)
        del pieces  # each copy of a read adds to the memory of a stream
        view, out = memoryview(body), list[bytes | memoryview]()
        for start in range(0, len(body), _AT_ONCE):
            part = view[start : start + _AT_ONCE]
            out += (b"%x\r\n" % len(part), part, b"\r\n")
        return b"".join([*out, data[at:]])

    def _split(self, data: bytes) -> tuple[int, list[bytes]]:
        """Return the complete chunks at the beginning of a read, and where they end.

        Much faster than parsing one size line after the other, but it ends at a chunk that contains CR LF.
        """
        parts = data.split(b"\r\n")
        count = (len(parts) - 1) // 2  # of the last, nothing may follow its line end
        lines, pieces = parts[0 : 2 * count : 2], parts[1 : 2 * count : 2]
        sizes = list(map(self._sizes.__getitem__, lines))
        lengths = list(map(len, pieces))
        if sizes != lengths:
            count = next(at for at, size in enumerate(sizes) if size != lengths[at])
            lines, pieces, lengths = lines[:count], pieces[:count], lengths[:count]
        return sum(map(len, lines)) + sum(lengths) + 4 * count, pieces

    def _keep_cut_size(self, seen: bytes) -> None:
        """Keep the beginning of a size line; an extension or anything else ends the joining on this connection."""
        self._seen, self._off = seen, len(seen) >= _LONGEST_SIZE or b";" in seen

    def _read_cut_size(self, data: bytes) -> bytes:
        seen, self._seen = self._seen, b""
        found = _SIZE.match(seen + data)
        if found is None:
            self._keep_cut_size(seen + data)
            return data
        size = int(found[1], 16)
        if not size:
            self._in_chunks = False
            return data
        self._skip = found.end() - len(seen) + size + 2
        return self.feed(data)


class _Sizes(dict[bytes, int]):
    """Size lines as numbers; -1 for what is not the size of a chunk, including that of the last one."""

    def __missing__(self, line: bytes) -> int:
        size = int(line, 16) if _SIZE.fullmatch(line + b"\r\n") else -1
        if size <= 0 or len(self) >= _MOST_SIZES:
            return size or -1
        self[line] = size
        return size


class ReadLimit(float):
    """A limit of seconds that is computed when a read begins; httpcore passes the same object to every read.

    Without it a head, or a body of few bytes at a time, might take the whole limit for each byte.
    """

    seconds: Callable[[], float]

    def __new__(cls, seconds: Callable[[], float]) -> Self:
        """Make a limit from the function that returns the seconds that are left."""
        made = super().__new__(cls, seconds())
        made.seconds = seconds
        return made

    def left(self) -> float:
        """Return the seconds; raise an httpcore.ReadTimeout if they are used up."""
        if (left := self.seconds()) <= 0:
            raise httpcore.ReadTimeout("the limit was used up by earlier reads")
        return left


class _Stream:
    """A blocking stream of httpcore whose chunks are joined."""

    def __init__(self, inner: Any) -> None:
        self._inner, self._feed = inner, ChunkJoiner().feed
        self.write, self.close, self.get_extra_info = inner.write, inner.close, inner.get_extra_info  # no call between

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        timeout = timeout.left() if type(timeout) is ReadLimit else timeout
        return self._feed(self._inner.read(max_bytes, timeout))

    def start_tls(self, *arguments: Any, **named: Any) -> Any:
        return _Stream(self._inner.start_tls(*arguments, **named))


class JoiningBackend(httpcore.SyncBackend):
    """httpcore's blocking network backend, with the chunks of one read joined."""

    def connect_tcp(self, *arguments: Any, **named: Any) -> Any:
        """Connect to a host."""
        return _Stream(super().connect_tcp(*arguments, **named))


class _AsyncStream:
    def __init__(self, inner: Any) -> None:
        self._inner, self._feed = inner, ChunkJoiner().feed
        self.aclose, self._poll = inner.aclose, _Selector()
        self._raw: Any = self._poll.register(inner.get_extra_info("socket"), selectors.EVENT_READ).fileobj

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable":  # of idle connections, before each request; a closed one's number may be another's
            return self._raw.fileno() < 0 or bool(self._poll.select(0))
        return self._inner.get_extra_info(info)

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        timeout = timeout.left() if type(timeout) is ReadLimit else timeout
        return self._feed(await self._inner.read(max_bytes, timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> Any:
        return (self._write_pieces if len(buffer) > _WRITTEN else self._inner.write)(buffer, timeout)

    async def _write_pieces(self, buffer: bytes, timeout: float | None) -> None:
        with anyio.fail_after(timeout):  # asyncio copies what it cannot send at once, and TLS encrypts all of it
            for at in range(0, len(buffer), _WRITTEN):
                await self._inner.write(buffer[at : at + _WRITTEN])

    async def start_tls(self, *arguments: Any, **named: Any) -> Any:
        return _AsyncStream(await self._inner.start_tls(*arguments, **named))


class AsyncJoiningBackend(httpcore.AnyIOBackend):
    """As `JoiningBackend`, on asyncio and trio."""

    async def connect_tcp(self, *arguments: Any, **named: Any) -> Any:
        """Connect to a host."""
        return _AsyncStream(await super().connect_tcp(*arguments, **named))
