"""Frames: botocore reads what we write, we read what it reads, and damage is a typed error."""

from __future__ import annotations

import base64
import struct
import uuid
import zlib
from typing import Any

import pytest
from botocore.eventstream import EventStreamBuffer

from interlingua.errors import MalformedResponseError
from interlingua.plugins import WireChunk
from interlingua_bedrock.event_stream import EventStreamFramer, read_headers
from tests.plugins.bedrock.wire import frame

HEADERS = {":event-type": "metadata", ":content-type": "application/json", ":message-type": "event"}
BODY = (
    frame("messageStart", {"role": "assistant"})
    + frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "ünïcode ✓"}})
    + frame("throttlingException", {"message": "slow down"}, "exception")
)


def _ours(body: bytes, size: int) -> list[tuple[Any, ...]]:
    framer = EventStreamFramer()
    chunks = [chunk for at in range(0, len(body), size) for chunk in framer.feed(body[at : at + size])]
    return [(chunk.event, chunk.data, dict(chunk.headers)) for chunk in (*chunks, *framer.close())]


def _theirs(body: bytes) -> list[tuple[Any, ...]]:
    buffer = EventStreamBuffer()
    buffer.add_data(body)
    return [(message.payload, message.headers) for message in buffer]


@pytest.mark.parametrize("size", [1, 7, 64, 100_000])
def test_frames_are_read_at_every_chunking_as_botocore_reads_them(size: int) -> None:
    assert [(data, headers) for _, data, headers in _ours(BODY, size)] == _theirs(BODY)
    assert [event for event, _, _ in _ours(BODY, size)] == ["messageStart", "contentBlockDelta", "throttlingException"]


def test_what_is_written_is_what_was_read() -> None:
    framer = EventStreamFramer()
    assert b"".join(EventStreamFramer.write(chunk) for chunk in framer.feed(BODY)) == BODY
    plain = EventStreamFramer.write(WireChunk("messageStop", b"{}"))
    assert _theirs(plain) == [(b"{}", HEADERS | {":event-type": "messageStop"})]


def test_every_type_of_header_is_read() -> None:
    number = uuid.uuid4()
    raw = (
        b"\x01t\x00\x01f\x01\x01b\x02\xff\x01s\x03\xff\xfe\x01i\x04\x00\x00\x00\x07"
         b"\x01l\x05" + struct.pack(">q", -9) + b"\x01y\x06\x00\x02\x00\xff" + b"\x01w\x07\x00\x02hi"
        + b"\x01d\x08" + struct.pack(">q", 1_700_000_000_000) + b"\x01u\x09" + number.bytes
    )  # fmt: skip
    found = read_headers(raw)

    assert found == {
        "t": True, "f": False, "b": -1, "s": -2, "i": 7, "l": -9, "y": b"\x00\xff", "w": "hi",
        "d": 1_700_000_000_000, "u": str(number),
    }  # fmt: skip
    size = struct.pack(">II", 16 + len(raw), len(raw))
    framed = size + struct.pack(">I", zlib.crc32(size)) + raw
    [(payload, theirs)] = _theirs(framed + struct.pack(">I", zlib.crc32(framed)))
    assert payload == b""
    assert {name: value for name, value in theirs.items() if name != "u"} == {
        name: value for name, value in found.items() if name != "u"
    }
    assert theirs["u"] == number.bytes


@pytest.mark.parametrize("at", range(0, len(BODY), 5))
def test_a_changed_byte_is_an_error_after_the_frames_before_it(at: int) -> None:
    damaged = BODY[:at] + bytes([BODY[at] ^ 0xFF]) + BODY[at + 1 :]
    framer = EventStreamFramer()
    good: list[WireChunk] = []
    with pytest.raises(MalformedResponseError):
        good.extend(chunk for part in (framer.feed(damaged), framer.close()) for chunk in part)
    whole = list(EventStreamFramer().feed(BODY))
    assert good == whole[: len(good)]


@pytest.mark.parametrize("cut", [1, 11, 13, 60, len(BODY) - 1])
def test_a_body_that_ends_within_a_frame_is_an_error(cut: int) -> None:
    framer = EventStreamFramer()
    list(framer.feed(BODY[:cut]))
    with pytest.raises(MalformedResponseError, match="within a frame"):
        list(framer.close())


def test_a_frame_without_bounds_is_refused() -> None:
    size = struct.pack(">II", 1 << 31, 0)
    with pytest.raises(MalformedResponseError, match="bytes"):
        list(EventStreamFramer().feed(size + struct.pack(">I", zlib.crc32(size))))


@pytest.mark.parametrize(
    "raw", [b"\x05ab", b"\x01a\x07\x00\x09hi", b"\x01a\x63", b"\x01\xff\x07\x00\x00", b"\x01a\x05\x00"]
)
def test_headers_that_cannot_be_read_are_an_error(raw: bytes) -> None:
    with pytest.raises(MalformedResponseError, match="headers"):
        read_headers(raw)


def test_the_empty_frame_of_the_published_test_vectors() -> None:
    """https://github.com/awslabs/aws-c-event-stream, tests: empty_message."""
    empty = base64.b64decode("AAAAEAAAAAAFwkjrfZjI/w==")
    assert [tuple(pair) for pair in EventStreamFramer().feed(empty)] == [("", b"")]
