"""A chunked body: the chunks that have arrived are read as one piece, and the bytes are those that h11 reads."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from typing import Any

import h11
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua._http.limits import Deadline
from interlingua._http.transport import ChunkReader, Transport, run_without_waiting
from interlingua.plugins import HttpRequest
from tests.support.fault_server import faulty, head

HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


def chunked(*pieces: bytes, size: str = "%x") -> bytes:
    """Return pieces as chunks, the last one included."""
    return b"".join(size.encode() % len(piece) + b"\r\n" + piece + b"\r\n" for piece in pieces) + b"0\r\n\r\n"


def read(reads: list[bytes], *, joined: bool) -> tuple[list[bytes], list[str], bytes]:
    """Return the data of each event, the other events or the error, and the bytes that are left over."""
    connection = h11.Connection(our_role=h11.CLIENT)
    connection.send(h11.Request(method="GET", target="/", headers=[("host", "h")]))
    connection.send(h11.EndOfMessage())
    connection.receive_data(HEAD)
    assert isinstance(connection.next_event(), h11.Response)
    hidden: Any = connection
    rest: deque[bytes] = deque()
    if joined:
        hidden._reader = ChunkReader(hidden._reader)
        rest = hidden._reader.rest
    data: list[bytes] = []
    said: list[str] = []
    try:
        for one in [*reads, b""]:
            connection.receive_data(one)
            while (event := connection.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
                if isinstance(event, h11.Data):
                    data += bytes(event.data), *rest
                    rest.clear()
                else:
                    said.append(type(event).__name__)
                    if isinstance(event, h11.EndOfMessage):
                        return data, [*said, *(str(field) for field in event.headers)], connection.trailing_data[0]
    except h11.RemoteProtocolError as error:
        said.append(str(error))
    return data, said, b""


PIECES = st.lists(st.binary(min_size=1, max_size=40) | st.sampled_from([b"\r\n", b"a\r\n5\r\n", b"\r\n0\r\n\r\n"]))
SIZES = st.sampled_from(["%x", "%X", "%04x", "%x;a=b", "%x ", "%010x", "0x%x", "%x_", "+%x", " %x"])


@given(pieces=PIECES, size=SIZES, cuts=st.lists(st.integers(0, 400)), damage=st.none() | st.integers(0, 400))
def test_bytes_ends_and_errors_are_those_of_h11(
    pieces: list[bytes], size: str, cuts: list[int], damage: int | None
) -> None:
    body = chunked(*pieces, size=size) + b"trailing"
    if damage is not None:
        body = body[:damage] + b"!" + body[damage + 1 :]
    places = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]
    reads = [body[start:end] for start, end in itertools.pairwise(places) if end > start]

    theirs, their_end, their_rest = read(reads, joined=False)
    ours, our_end, our_rest = read(reads, joined=True)

    assert b"".join(ours) == b"".join(theirs)
    assert (our_end, our_rest) == (their_end, their_rest)
    assert len(ours) <= len(theirs)


def test_what_has_arrived_is_one_piece() -> None:
    body = chunked(*(b"%d" % number for number in range(100)))
    whole = b"".join(b"%d" % number for number in range(100))

    assert read([body], joined=True)[0] == [whole]
    assert read([body[:50], body[50:]], joined=True)[0] != [whole]  # nothing waits for more


def test_no_more_is_joined_than_a_stream_should_hold() -> None:
    """The events of one piece are in memory together."""
    pieces = [b"%04d" % number * 25 for number in range(600)]
    data = read([chunked(*pieces)], joined=True)[0]

    assert b"".join(data) == b"".join(pieces)
    assert max(map(len, data)) <= 16 * 1024
    assert len(data) <= 6


def test_a_large_chunk_is_given_as_it_arrives() -> None:
    body = chunked(b"a", b"b" * 1000, b"c")

    assert [len(data) for data in read([body[:300], body[300:600], body[600:]], joined=True)[0]][:2] == [1, 289]


REQUEST = HttpRequest("POST", "", {}, b"{}", None)  # type: ignore[arg-type]  nothing signs it
EVENTS = [b"data: %d\n\n" % number for number in range(500)]


@pytest.mark.parametrize("direct", [True, False], ids=["own", "given"])
def test_both_clients_read_so(direct: bool) -> None:
    async def count(url: str, given: Any, *, blocking: bool) -> list[bytes]:
        transport = Transport(given, blocking=blocking)
        answer = await transport.open(REQUEST._replace(url=url), Deadline(None))
        pieces = [piece async for piece in answer]
        await transport.close()
        return pieces

    async def count_async(url: str) -> list[bytes]:
        async with httpx.AsyncClient() as client:
            return await count(url, None if direct else client, blocking=False)

    with faulty([head("transfer-encoding: chunked"), chunked(*EVENTS)]) as server, httpx.Client() as client:
        blocking = run_without_waiting(count(server.url, None if direct else client, blocking=True))
        for pieces in (blocking, asyncio.run(count_async(server.url))):
            assert b"".join(pieces) == b"".join(EVENTS)
            assert len(pieces) < 50
