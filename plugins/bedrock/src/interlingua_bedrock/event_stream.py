"""The framing `application/vnd.amazon.eventstream`, both directions (WIRE.md, Event stream)."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

from interlingua.errors import MalformedResponseError
from interlingua.plugins import WireChunk

FRAME_LIMIT = 24 * 1024 * 1024
"""Bytes one frame may have; the service's own limit is 16 MiB of payload and 128 KiB of headers."""

_PRELUDE = 12  # length of all, length of the headers, checksum of the two
_CHECKSUM = 4
_SMALLEST = _PRELUDE + _CHECKSUM
_NUMBERS = {2: ">b", 3: ">h", 4: ">i", 5: ">q", 8: ">q"}  # byte, short, int, long, timestamp (milliseconds)
_BYTES, _TEXT, _UUID = 6, 7, 9
_KINDS = (":event-type", ":exception-type", ":error-code")


class EventStreamFramer:
    """Reads frames one by one; the frames before a broken one are returned.

    A chunk's event is the frame's event type, exception type or error code; its headers are all headers of the frame.
    """

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[WireChunk]:
        """Take the next bytes of the body (see `Framer.feed`)."""
        rest = self._rest
        rest += data
        start = 0
        try:
            while len(rest) - start >= _PRELUDE:
                size, heads, check = struct.unpack_from(">III", rest, start)
                if zlib.crc32(rest[start : start + 8]) != check:
                    raise MalformedResponseError("the checksum of a frame's head is wrong")
                if not _SMALLEST + heads <= size <= FRAME_LIMIT:
                    raise MalformedResponseError(f"a frame of {size} bytes with {heads} bytes of headers")
                if len(rest) - start < size:
                    break
                frame = bytes(rest[start : start + size])
                start += size
                if zlib.crc32(frame[:-_CHECKSUM]) != int.from_bytes(frame[-_CHECKSUM:], "big"):
                    raise MalformedResponseError("the checksum of a frame is wrong")
                headers = read_headers(frame[_PRELUDE : _PRELUDE + heads])
                event = next((str(headers[name]) for name in _KINDS if name in headers), "")
                yield WireChunk(event, frame[_PRELUDE + heads : -_CHECKSUM], headers)
        finally:
            del rest[:start]

    def close(self) -> Iterator[WireChunk]:
        """Raise an error if the body ends within a frame (see `Framer.close`)."""
        if self._rest:
            raise MalformedResponseError("the response stream ends within a frame")
        yield from ()

    @staticmethod
    def write(chunk: WireChunk) -> bytes:
        """Return the frame of a chunk; one without headers is an event of JSON."""
        plain = {":event-type": chunk.event, ":content-type": "application/json", ":message-type": "event"}
        heads = write_headers(chunk.headers or plain)
        size = struct.pack(">II", _SMALLEST + len(heads) + len(chunk.data), len(heads))
        frame = size + struct.pack(">I", zlib.crc32(size)) + heads + chunk.data
        return frame + struct.pack(">I", zlib.crc32(frame))


def read_headers(data: bytes) -> dict[str, Any]:
    """Read the headers of a frame: name, type, value of each.

    Raises:
        MalformedResponseError: the headers are not in this form.
    """
    headers: dict[str, Any] = {}
    at = 0
    try:
        while at < len(data):
            end = at + 1 + data[at]
            name, kind, at = data[at + 1 : end].decode(), data[end], end + 1
            if kind in (0, 1):
                headers[name] = kind == 0
            elif kind in _NUMBERS:
                (headers[name],) = struct.unpack_from(_NUMBERS[kind], data, at)
                at += struct.calcsize(_NUMBERS[kind])
            elif kind in (_BYTES, _TEXT):
                (length,) = struct.unpack_from(">H", data, at)
                value = data[at + 2 : at + 2 + length]
                if len(value) != length:
                    raise IndexError("a value ends early")
                headers[name] = value if kind == _BYTES else value.decode()
                at += 2 + length
            elif kind == _UUID:
                headers[name] = str(UUID(bytes=data[at : at + 16]))
                at += 16
            else:
                raise ValueError(f"no type {kind}")
    except (IndexError, ValueError, struct.error) as error:
        raise MalformedResponseError(f"the headers of a frame cannot be read: {error}") from error
    return headers


def write_headers(headers: Mapping[str, Any]) -> bytes:
    """Write headers: strings, bytes, booleans and integers."""
    made = bytearray()
    for name, value in headers.items():
        made += bytes([len(name.encode())]) + name.encode()
        if isinstance(value, bool):
            made += b"\x00" if value else b"\x01"
        elif isinstance(value, int):
            made += b"\x05" + struct.pack(">q", value)
        else:
            data = value if isinstance(value, bytes) else str(value).encode()
            made += bytes([_BYTES if isinstance(value, bytes) else _TEXT]) + struct.pack(">H", len(data)) + data
    return bytes(made)
