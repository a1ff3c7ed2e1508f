"""Which road a recorded body wants: the body's own start decides over what the recorder and the headers say."""

from __future__ import annotations

import base64
import json

import pytest

from interlingua.errors import DecodeError
from interlingua_cli.replay.source import Entry, read_entry
from tests.cli.replay.acme import line


@pytest.mark.parametrize(
    ("body", "said", "content_type", "expected"),
    [
        ('{"a": 1}', "json", "application/json", "json"),
        ("data: {}\n\n", "sse", "application/json", "sse"),  # corpus PROBES: kind=sse ct=application/json
        ("data: {}\n\n", None, "", "sse"),
        (": keep-alive\n\ndata: {}\n\n", "json", "application/json", "sse"),
        ('{"error": {}}', "sse", "text/event-stream", "json"),  # a whole answer to a stream request
        ('{"a": 1}\n{"a": 2}\n', "ndjson", "application/x-ndjson", "ndjson"),
        ('{"a": 1}\n', None, "application/x-ndjson", "ndjson"),
        ("<html>", None, "text/html", "json"),
    ],
)
def test_kind(body: str, said: str | None, content_type: str, expected: str) -> None:
    entry = read_entry(line(body, kind=said, response_headers={"Content-Type": content_type}), "x:1")

    assert entry.kind == expected
    assert entry.streamed is (expected != "json")


def test_exact_bytes_win_over_the_decoded_text() -> None:
    entry = read_entry(
        line("decoded", kind="binary-eventstream", response_b64=base64.b64encode(b"\x00\xff").decode()), ""
    )

    assert entry.body == b"\x00\xff"
    assert entry.kind == "binary-eventstream"


def test_what_is_missing_is_told_from_what_is_there() -> None:
    entry = read_entry(b'{"response_text": "{}"}', "day.jsonl:7")

    assert (entry.id, entry.status, entry.model, entry.group) == ("day.jsonl:7", 200, "unknown", "unnamed")
    assert read_entry(line("{}"), "").group == "acme-say"


@pytest.mark.parametrize("text", [b"{", b"[]", b'{"status": "x"}', b'{"response_text": 3}', b'{"response_headers": 3}'])
def test_a_line_that_is_no_exchange_is_a_decode_error_with_its_place(text: bytes) -> None:
    with pytest.raises(DecodeError, match="day:3"):
        read_entry(text, "day:3")


def test_lone_surrogates_do_not_stop_a_recording() -> None:
    entry = read_entry(json.dumps({"id": "a", "response_text": '{"text": "\ud83d"}'}).encode(), "")

    assert isinstance(entry, Entry)
