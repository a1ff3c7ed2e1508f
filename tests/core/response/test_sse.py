"""Server-sent events: what is expected comes from the WHATWG text (HTML standard §9.2), by example or a slow reader."""

from __future__ import annotations

import gzip
import json
import os
import re
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlingua._response.framing import SseFramer
from interlingua.errors import MalformedResponseError
from interlingua.plugins import WireChunk

BOM = b"\xef\xbb\xbf"


def slow_events(body: bytes) -> list[tuple[str, bytes]]:
    """The oracle: the standard's steps over the complete body, line by line; shares no code with the framer."""
    if body.startswith(BOM):
        body = body[3:]
    events: list[tuple[str, bytes]] = []
    name, data = b"", b""
    # The end of the body counts as a blank line: the stated deviation from the standard.
    for line in [*re.split(rb"\r\n|\n|\r", body), b""]:
        if line == b"":
            if data != b"":
                events.append((name.decode("utf-8", "replace"), data[:-1]))
            name, data = b"", b""
        elif not line.startswith(b":"):
            field, value = line.split(b":", 1) if b":" in line else (line, b"")
            if value.startswith(b" "):
                value = value[1:]
            if field == b"event":
                name = value
            elif field == b"data":
                data += value + b"\n"
    return events


def read(pieces: list[bytes], limit: int | None = None) -> list[tuple[str, bytes]]:
    framer = SseFramer() if limit is None else SseFramer(limit)
    chunks = [chunk for piece in pieces for chunk in framer.feed(piece)]
    chunks += framer.close()
    assert all(type(chunk) is WireChunk for chunk in chunks)
    return [(chunk.event, chunk.data) for chunk in chunks]


def drain(framer: SseFramer, pieces: list[bytes], got: list[WireChunk]) -> None:
    for piece in pieces:
        got += framer.feed(piece)
    got += framer.close()


def cut(body: bytes, size: int) -> list[bytes]:
    return [body[at : at + size] for at in range(0, len(body), size)]


def cut_at(body: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(body) + 1) for place in places), len(body)]
    return [body[start:end] for start, end in pairwise(edges)]


TOKENS = [
    *(b"data", b"event", b"id", b"retry", b"other", b":", b" ", b"x", b"\xff", "é日😀".encode(), BOM),
    *(b"\n", b"\r", b"\r\n", b"\n\n", b"\r\r", b"\r\n\r\n", b"\n\r\n", b"\n\n\n"),
    *(b"data: ", b"data:", b"event: ", b": comment\n", b"id: 7\n", b"\ndata: ", b"\n\nevent: ", b"\n\ndata: "),
    *(b"data: a\n\n", b"data: b\n\n", b"event: e\ndata: c\n\n", b"event: ping\n\n", b"event: m\ndata: 1\ndata: 2\n\n"),
    *(b"data: a\r\n\r\n", b"event: e\r\ndata: c\r\n\r\n", b"data: d\nevent: late\n\n", b"data: [DONE]\n\n"),
]
tokens = st.lists(st.sampled_from(TOKENS), max_size=30).map(b"".join)
usual = st.lists(st.sampled_from([token for token in TOKENS if token.endswith(b"\n\n")]), max_size=12).map(b"".join)
bare = st.sampled_from([b'{"error": 1}\n', b'{\n  "error": {\n    "code": 5\n  }\n}\n', b'[{"error": 1}]\n', b"{"])
cuts = st.lists(st.integers(0, 10_000), max_size=12)


@settings(deadline=None)
@given(body=st.tuples(st.sampled_from([b"", BOM]), tokens | usual).map(b"".join), places=cuts)
def test_any_cut_gives_what_the_standard_says_of_the_whole(body: bytes, places: list[int]) -> None:
    expected = slow_events(body)

    assert expected == read([body])
    assert expected == read(cut(body, 1))
    assert expected == read(cut(body, 7))
    assert expected == read(cut_at(body, places))


@settings(deadline=None)
@given(body=st.lists(bare | st.sampled_from(TOKENS), max_size=20).map(b"".join), places=cuts)
def test_bare_json_is_the_same_at_any_cut(body: bytes, places: list[int]) -> None:
    assert read([body]) == read(cut(body, 1)) == read(cut(body, 7)) == read(cut_at(body, places))


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        # The three worked examples of HTML §9.2.6; their last event is incomplete there and flushed here.
        ([b"data: YHOO", b"data: +2", b"data: 10", b"", b""], [("", b"YHOO\n+2\n10")]),
        (
            [
                b": test stream",
                b"",
                b"data: first event",
                b"id: 1",
                b"",
                b"data:second event",
                b"id",
                b"",
                b"data:  third",
            ],
            [("", b"first event"), ("", b"second event"), ("", b" third")],
        ),
        ([b"data", b"", b"data", b"data", b"", b"data:"], [("", b""), ("", b"\n"), ("", b"")]),
        ([b"data:test", b"", b"data: test", b"", b""], [("", b"test"), ("", b"test")]),
        # A name after its data, the last of two names, no data, a name that does not leak into the next event.
        ([b"data: 1", b"event: late", b"", b"data: 2", b"", b""], [("late", b"1"), ("", b"2")]),
        ([b"event: a", b"event: b", b"data: 1", b"", b""], [("b", b"1")]),
        ([b"event: ping", b"", b"data: 1", b"", b""], [("", b"1")]),
        ([b"retry: 3", b"other: x", b"Data: y", b" data: z", b"data: 1", b"", b""], [("", b"1")]),
        ([b"event: caf\xc3\xa9", b"data: \xe6\x97\xa5", b"", b""], [("café", "日".encode())]),
    ],
)
def test_the_standard_by_example(lines: list[bytes], expected: list[tuple[str, bytes]], end: bytes, size: int) -> None:
    assert expected == read(cut(end.join(lines), size))


def test_the_counts_that_prove_a_quick_road_are_not_fooled() -> None:
    # One block lacks the line that another has too many.
    assert read([b"event: a\n\nevent: b\ndata: 1\ndata: 2\n\n"]) == [("b", b"1\n2")]
    assert read([b"data: 1\ndata: 2\n\ndata: 3\n\n"]) == [("", b"1\n2"), ("", b"3")]
    assert read([b"event: a\ndata: 1\n\ndata: [DONE]\n\n"]) == [("a", b"1"), ("", b"[DONE]")]
    assert read([b"data: 1\n\nevent: b\ndata: 2\n\n"]) == [("", b"1"), ("b", b"2")]


def test_line_end_split_between_cr_and_lf_is_one_line_end() -> None:
    framer = SseFramer()

    assert framer.feed(b"data: 1\r") == []
    assert framer.feed(b"\ndata: 2\r") == []
    assert framer.feed(b"") == []
    assert framer.feed(b"\n") == []
    assert framer.feed(b"\r") == [("", b"1\n2")]
    assert framer.feed(b"\n") == []
    assert framer.close() == []


def test_an_event_is_given_as_soon_as_its_blank_line_is_there() -> None:
    framer = SseFramer()

    assert framer.feed(b"event: e\ndata: 1\n") == []
    assert framer.feed(b"\ndata: 2") == [("e", b"1")]
    assert framer.feed(b"\n\n") == [("", b"2")]


def test_byte_order_mark_is_dropped_at_the_start_only() -> None:
    assert read([BOM[:1], b"", BOM[1:2], BOM[2:] + b"data: 1\n\n" + BOM + b"data: 2\n\n"]) == [("", b"1")]
    assert read([BOM[:2]]) == []


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_bare_json_in_the_stream_is_kept(size: int) -> None:
    # A gateway's error body instead of an event; some services pretty-print it or wrap it in a list.
    pretty = b'{\n  "error": {\n    "code": 503\n  }\n}'
    body = b'data: 1\n\nevent: e\ndata: 2\n{"error": 3}\ndata: 4\n\n' + pretty + b'\n[{"error": 5}]\r\n'

    assert [
        ("", b"1"),
        ("e", b"2"),
        ("", b'{"error": 3}'),
        ("", b"4"),
        ("", pretty),
        ("", b'[{"error": 5}]'),
    ] == read(cut(body, size))


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_field_named_error_is_the_event_of_that_name(size: int) -> None:
    # Older llama.cpp servers write `error: {json}`; recorded of a gateway built on them (corpus PROBES, framing).
    body = b'data: {"a": 1}\n\nerror: {"code": 500}\n\nerror: no object\n\ndata: 2\nerror:{"code": 5}\n\n'

    expected = [("", b'{"a": 1}'), ("error", b'{"code": 500}'), ("", b"2"), ("error", b'{"code": 5}')]
    assert expected == read(cut(body, size))


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_objects_without_a_blank_line_between_them_are_an_event_each(size: int) -> None:
    body = b'event: a\ndata: {"a": 1}\nevent: b\ndata: {"b": 2}\ndata: [DONE]\n\ndata: {\ndata: }\nevent: late\n\n'

    expected = [("a", b'{"a": 1}'), ("b", b'{"b": 2}'), ("b", b"[DONE]"), ("late", b"{\n}")]
    assert expected == read(cut(body, size))


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("tail", [b"", b"\n", b"\n\n\ndata: 2\n\n"])
def test_an_event_over_the_limit_is_refused_after_the_events_before_it(size: int, tail: bytes) -> None:
    fits = b"data: 0123456789\n\n\n"
    framer = SseFramer(limit=16)
    got: list[WireChunk] = []

    with pytest.raises(MalformedResponseError, match="larger than 16 bytes"):
        drain(framer, cut(fits + fits + b"data: 0123456789x" + tail, size), got)

    assert got == [("", b"0123456789")] * 2
    assert read(cut(fits + fits, size), limit=16) == [("", b"0123456789")] * 2


def test_one_byte_feeding_is_linear() -> None:
    def seconds(size: int) -> float:
        pieces = cut(b"data: " + b"x" * size + b"\n\n", 1)
        start = time.thread_time()
        assert [("", b"x" * size)] == read(pieces)
        return time.thread_time() - start

    # Quadratic would be 16 times; time of this thread alone, best of three: a busy machine changes little.
    small = min(seconds(50_000) for _ in range(3))
    assert min(seconds(200_000) for _ in range(3)) <= 8 * small


def corpus_bodies() -> Iterator[tuple[str, bytes]]:
    folder = os.environ.get("INTERLINGUA_CORPUS")
    if not folder:
        pytest.skip("INTERLINGUA_CORPUS is not set")
    for path in sorted(Path(folder, "dev").glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                if '"kind": "sse"' in line or '"kind":"sse"' in line:
                    entry = json.loads(line)
                    if entry["kind"] == "sse":
                        yield entry["id"], entry["response_text"].encode("utf-8", "surrogatepass")


def test_recorded_streams_are_the_same_at_any_chunk_size() -> None:
    bodies = sorted(corpus_bodies())
    assert bodies
    for name, body in bodies[:: max(1, len(bodies) // 300)]:
        expected = slow_events(body)
        assert expected, name
        for size in (1, 7, len(body)):
            assert expected == read(cut(body, size)), (name, size)
