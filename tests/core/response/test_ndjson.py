"""Newline-delimited JSON and the choice of a framer; what is expected comes from splitting the whole body."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlingua._response.framing import NdjsonFramer, SseFramer, framer
from interlingua.errors import MalformedResponseError, PluginError
from interlingua.plugins import WireChunk


def slow_lines(body: bytes) -> list[tuple[str, bytes]]:
    lines = [line[:-1] if line.endswith(b"\r") else line for line in body.split(b"\n")]
    return [("", line) for line in lines if line.strip()]


def read(pieces: list[bytes]) -> list[tuple[str, bytes]]:
    reader = NdjsonFramer()
    chunks = [chunk for piece in pieces for chunk in reader.feed(piece)] + reader.close()
    assert all(type(chunk) is WireChunk for chunk in chunks)
    return [(chunk.event, chunk.data) for chunk in chunks]


def drain(reader: NdjsonFramer, pieces: list[bytes], got: list[WireChunk]) -> None:
    for piece in pieces:
        got += reader.feed(piece)
    got += reader.close()


def cut(body: bytes, size: int) -> list[bytes]:
    return [body[at : at + size] for at in range(0, len(body), size)]


TOKENS = [b"{}", b'{"a": "\xc3\xa9"}', b"\n", b"\r\n", b"\r", b" ", b"\n\n", b"\t"]


@settings(deadline=None)
@given(body=st.lists(st.sampled_from(TOKENS), max_size=20).map(b"".join), size=st.integers(1, 20))
def test_any_cut_gives_the_lines_of_the_whole(body: bytes, size: int) -> None:
    assert slow_lines(body) == read([body]) == read(cut(body, 1)) == read(cut(body, size))


def test_a_line_is_given_as_soon_as_it_ends_and_the_last_one_at_the_close() -> None:
    reader = NdjsonFramer()

    assert reader.feed(b'{"a"') == []
    assert reader.feed(b": 1}\r\n\n{") == [("", b'{"a": 1}')]
    assert reader.feed(b"}") == []
    assert reader.close() == [("", b"{}")]


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize("tail", [b"", b"\n", b"\n3\n"])
def test_a_line_over_the_limit_is_refused_after_the_lines_before_it(size: int, tail: bytes) -> None:
    reader = NdjsonFramer(limit=4)
    got: list[WireChunk] = []

    with pytest.raises(MalformedResponseError, match="larger than 4 bytes"):
        drain(reader, cut(b"1234\r\n2\n12345" + tail, size), got)

    assert got == [("", b"1234"), ("", b"2")]


def test_framer_by_name_or_factory() -> None:
    assert isinstance(framer("sse"), SseFramer)
    assert isinstance(framer("ndjson"), NdjsonFramer)
    assert framer(lambda: NdjsonFramer(5)).feed(b"1\n") == [("", b"1")]
    with pytest.raises(PluginError, match="'eventstream'"):
        framer("eventstream")
