"""A chunked body: the chunks that have arrived are read as one piece, and the bytes are those that h11 reads."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime

import anyio
import h11
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua._http.io import run_without_waiting
from interlingua._http.joining import ChunkJoiner
from interlingua._http.transports import IO, new_io
from interlingua.transport import HttpRequest, TimeLimits
from tests.support.fault_server import faulty, head

HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"

OTHER = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n5\r\na\n"


def chunked(*pieces: bytes, size: str = "%x", trailer: bytes = b"") -> bytes:
    """Return pieces as chunks, the last one included."""
    body = b"".join(size.encode() % len(piece) + b"\r\n" + piece + b"\r\n" for piece in pieces)
    return body + b"0\r\n" + trailer + b"\r\n"


def read(reads: list[bytes], *, joined: bool) -> tuple[list[bytes], list[str], bytes]:
    """Return the data of each event, the other events or the error, and the bytes that are left over."""
    connection = h11.Connection(our_role=h11.CLIENT)
    feed = ChunkJoiner().feed if joined else bytes
    data: list[bytes] = []
    said: list[str] = []
    ask(connection)
    try:
        for one in [*reads, b""]:
            connection.receive_data(feed(one))
            while (event := connection.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
                if isinstance(event, h11.Data):
                    data.append(bytes(event.data))
                    continue
                said.append(type(event).__name__)
                if isinstance(event, h11.EndOfMessage):
                    said += [str(field) for field in event.headers]
                    connection.start_next_cycle()
                    ask(connection)
                elif isinstance(event, h11.ConnectionClosed):
                    return data, said, b""
    except h11.RemoteProtocolError as error:
        return data, [*said, str(error)], b""
    return data, said, connection.trailing_data[0]


def ask(connection: h11.Connection) -> None:
    connection.send(h11.Request(method="GET", target="/", headers=[("host", "h")]))
    connection.send(h11.EndOfMessage())


PIECES = st.lists(st.binary(min_size=1, max_size=40) | st.sampled_from([b"\r\n", b"a\r\n5\r\n", b"\r\n0\r\n\r\n"]))
SIZES = st.sampled_from(["%x", "%X", "%04x", "%x;a=b", "%x ", "%010x", "0x%x", "%x_", "+%x", " %x"])
TRAILERS = st.sampled_from([b"", b"x-sum: 1\r\n"])
HEADS = st.sampled_from([HEAD, b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n" + HEAD, HEAD.upper(), OTHER + HEAD])
REPLIES = st.builds(lambda first, pieces, size, trailer: first + chunked(*pieces, size=size, trailer=trailer),
                    HEADS, PIECES, SIZES, TRAILERS)  # fmt: skip


@given(
    replies=st.lists(REPLIES, min_size=1, max_size=3),
    cuts=st.lists(st.integers(0, 900)),
    damage=st.none() | st.integers(0, 900),
)
def test_bytes_ends_and_errors_are_those_of_h11(replies: list[bytes], cuts: list[int], damage: int | None) -> None:
    sent = b"".join(replies)
    if damage is not None:
        sent = sent[:damage] + b"!" + sent[damage + 1 :]
    places = [0, *sorted(min(cut, len(sent)) for cut in cuts), len(sent)]
    reads = [sent[start:end] for start, end in itertools.pairwise(places) if end > start]

    theirs, their_end, their_rest = read(reads, joined=False)
    ours, our_end, our_rest = read(reads, joined=True)

    assert b"".join(ours) == b"".join(theirs)
    assert (our_end, our_rest) == (their_end, their_rest)
    assert len(ours) <= len(theirs)


def test_what_has_arrived_is_one_piece() -> None:
    body = chunked(*(b"%d" % number for number in range(100)))
    whole = b"".join(b"%d" % number for number in range(100))

    assert read([HEAD, body], joined=True)[0] == [whole]
    assert read([HEAD + body], joined=True)[0] == [whole]
    assert read([HEAD, body[:50], body[50:]], joined=True)[0] != [whole]  # nothing waits for more


def test_chunks_are_joined_after_a_reply_with_a_length() -> None:
    body = chunked(*(b"%d" % number for number in range(100)))

    assert len(read([OTHER, HEAD, body], joined=True)[0]) == 2


def test_no_more_is_joined_than_a_stream_should_hold() -> None:
    """The events of one piece are in memory together."""
    pieces = [b"%04d" % number * 25 for number in range(600)]
    data = read([HEAD, chunked(*pieces)], joined=True)[0]

    assert b"".join(data) == b"".join(pieces)
    assert max(map(len, data)) <= 16 * 1024
    assert len(data) <= 6


def test_a_large_chunk_is_passed_on_as_it_arrives() -> None:
    body = chunked(b"a", b"b" * 1000, b"c")

    assert [len(data) for data in read([HEAD, body[:300], body[300:600], body[600:]], joined=True)[0]][:2] == [1, 289]


def test_httpx_keeps_the_names_by_which_chunks_are_joined() -> None:
    """Otherwise nothing breaks, but deltas are read one by one."""
    for client in (httpx.Client(proxy="http://proxy.invalid"), httpx.AsyncClient(proxy="http://proxy.invalid")):
        for transport in (client._transport, *client._mounts.values()):
            assert hasattr(transport, "_pool")
            assert hasattr(transport._pool, "_network_backend")


EVENTS = [b"data: %d\n\n" % number for number in range(500)]


async def count(url: str, io: IO) -> list[bytes]:
    reply = await io.open(HttpRequest("POST", url, {}, b"{}", datetime.now(UTC)), TimeLimits(None))
    pieces = [piece async for piece in reply]
    await reply.aclose()
    await io.close()
    return pieces


@pytest.mark.parametrize("proxy", [False, True])
@pytest.mark.parametrize("backend", ["blocking", "asyncio", "trio"])
def test_the_own_transports_read_so(backend: str, proxy: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with faulty([head("transfer-encoding: chunked"), chunked(*EVENTS)]) as server:
        url = server.url
        if proxy:
            url = "http://service.invalid/answer"
            monkeypatch.setenv("http_proxy", server.url)
        if backend == "blocking":
            pieces = run_without_waiting(count(url, new_io(None, None, blocking=True)))
        else:
            pieces = anyio.run(count, url, new_io(None, None, blocking=False), backend=backend)
        assert [one.startswith(b"POST http://service.invalid/") for one in server.requests] == [proxy]

    assert b"".join(pieces) == b"".join(EVENTS)
    assert len(pieces) < 50
