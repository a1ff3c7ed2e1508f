"""A binary framing for tests: length, name, headers, payload, checksum (as AWS's event stream, but shorter).

`>I` length of the rest, `>H` length of the JSON head `{"event": …, headers…}`, the head, the payload, `>I` CRC-32 of
all before it.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator

from interlingua.plugins import WireChunk

_EDGE = 4


class FrameReader:
    """Reads frames one by one: those before a broken one are given."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[WireChunk]:
        self._rest += data
        while len(self._rest) >= _EDGE:
            (length,) = struct.unpack_from(">I", self._rest)
            if length > 1 << 20:
                raise struct.error(f"a frame of {length} bytes")
            if len(self._rest) < _EDGE + length:
                return
            frame, self._rest = self._rest[: _EDGE + length], self._rest[_EDGE + length :]
            if zlib.crc32(frame[:-_EDGE]) != struct.unpack(">I", frame[-_EDGE:])[0]:
                raise ValueError("a frame's checksum is wrong")
            (size,) = struct.unpack_from(">H", frame, _EDGE)
            head = json.loads(frame[_EDGE + 2 : _EDGE + 2 + size])
            yield WireChunk(head.pop("event"), frame[_EDGE + 2 + size : -_EDGE], head)

    def close(self) -> Iterator[WireChunk]:
        if self._rest:
            raise ValueError("the body ends within a frame")
        yield from ()

    @staticmethod
    def write(chunk: WireChunk) -> bytes:
        head = json.dumps({"event": chunk.event, **chunk.headers}).encode()
        rest = struct.pack(">H", len(head)) + head + chunk.data
        frame = struct.pack(">I", len(rest) + _EDGE) + rest
        return frame + struct.pack(">I", zlib.crc32(frame))
