"""Cassettes of applications, and the fixtures: what is recorded, what must not be, and what a replay accepts."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import interlingua as il
from interlingua.errors import APITimeoutError
from interlingua.testing import Cassette, MemoryReply, MemoryTransport, ScriptedModel, ScriptedReply, call, no_network
from tests.support.loopback import LoopbackHandler, LoopbackServer

KEY = "sk-ant-very-secret-key"


class _Service(LoopbackHandler):
    """Answers as the Messages API does, with the question in capitals; it repeats the key, as a careless one might."""

    def do_POST(self) -> None:
        body = json.loads(self.read_body())
        said = body["messages"][-1]["content"][-1]["text"].upper()
        answer = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "stop_reason": "end_turn",
            "content": [{"type": "text", "text": f"{said} {self.headers['x-api-key']}"}],
            "usage": {"input_tokens": 1, "output_tokens": 2},
        }
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("set-cookie", "session=abc")
        self.end_headers()
        self.wfile.write(json.dumps(answer, ensure_ascii=False).encode())


@pytest.fixture
def address() -> Iterator[str]:
    with LoopbackServer(_Service) as server:
        yield server.url


def _client(address: str, cassette: Cassette) -> il.Client:
    return il.Client("anthropic:m", api_key=KEY, base_url=address, transport=cassette.transport(), retry=0)


def _recorded(path: Path, address: str, *questions: str) -> list[str]:
    cassette = Cassette(path, record=True)
    with _client(address, cassette) as client:
        return [client.send(question).text for question in questions]


def test_what_is_recorded_is_replayed_without_a_network(tmp_path: Path, address: str) -> None:
    texts = _recorded(tmp_path / "a.jsonl", address, "größer", "b")
    cassette = Cassette(tmp_path / "a.jsonl")
    with no_network(), _client(address, cassette) as client:
        assert client.send("b").text == "B -"  # in any order
        with pytest.raises(AssertionError, match="1 recorded exchanges were not used"):
            cassette.assert_done()
        assert client.send("größer").text == "GRÖSSER -"
    cassette.assert_done()
    assert texts == [f"GRÖSSER {KEY}", f"B {KEY}"]
    assert [sent["messages"][-1]["content"][-1]["text"] for sent in cassette.sent] == ["b", "größer"]


def test_a_cassette_holds_no_key_and_no_cookie(tmp_path: Path, address: str) -> None:
    _recorded(tmp_path / "a.jsonl", address, f"my key is {KEY}")

    text = (tmp_path / "a.jsonl").read_text()
    assert KEY not in text
    assert "session=abc" not in text
    assert "x-api-key" not in text
    assert "my key is -" in text


def test_another_request_is_refused_with_the_place_where_it_differs(tmp_path: Path, address: str) -> None:
    _recorded(tmp_path / "a.jsonl", address, "a")
    with (
        _client(address, Cassette(tmp_path / "a.jsonl")) as client,
        pytest.raises(AssertionError, match=r"body\.messages\[0\]\.content\[0\]\.text is 'x', and 'a' in the cassette"),
    ):
        client.send("x")


def test_asynchronous_clients_record_and_replay(tmp_path: Path, address: str) -> None:
    async def ask(cassette: Cassette) -> str:
        settings: Any = {"api_key": KEY, "base_url": address, "transport": cassette.async_transport()}
        async with il.AsyncClient("anthropic:m", **settings) as client:
            return (await client.send("a")).text

    assert asyncio.run(ask(Cassette(tmp_path / "a.jsonl", record=True))) == f"A {KEY}"
    assert asyncio.run(ask(Cassette(tmp_path / "a.jsonl"))) == "A -"


def test_ids_that_are_minted_anew_fit(tmp_path: Path) -> None:
    from interlingua.testing.cassette import _same

    one, other = (il.types.new_tool_use_id() for _ in range(2))
    asked = {"method": "POST", "url": "u", "body": {"a": [one, other, one]}}
    again = {"method": "POST", "url": "u", "body": {"a": [other, one, other]}}
    mixed = {"method": "POST", "url": "u", "body": {"a": [one, other, other]}}

    assert _same(asked) == _same(again)
    assert _same(asked) != _same(mixed)


def test_a_missing_or_foreign_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(il.CallerError, match=r"a\.jsonl: No such file or directory; record it first"):
        Cassette(tmp_path / "a.jsonl")
    (tmp_path / "b.jsonl").write_text("{}\n")
    with pytest.raises(il.CallerError, match="is not a cassette"):
        Cassette(tmp_path / "b.jsonl")


def test_a_delay_meets_the_time_limits() -> None:
    model = ScriptedModel([ScriptedReply(answer="late", delay=5.0), ScriptedReply(answer="late", delay=0.05)])
    client = model.client(timeout=il.Timeout(first_byte=0.2), retry=0)
    begun = time.monotonic()
    with pytest.raises(APITimeoutError, match=r"first_byte=0\.2 s"):
        client.send("x")

    assert time.monotonic() - begun < 2
    assert client.send("x").text == "late"


def test_a_slow_stream_arrives_word_by_word_or_ends_at_its_limit() -> None:
    model = ScriptedModel([ScriptedReply(answer="a b c", pause=0.05), ScriptedReply(answer="a b c", pause=5.0)])
    client = model.client(timeout=il.Timeout(between_chunks=0.3), retry=0)
    arrived = []
    with client.stream("x") as stream:
        for text in stream.text_stream:
            arrived.append((text, time.monotonic()))
    assert [text for text, _ in arrived] == ["a", " b", " c"]
    assert arrived[-1][1] - arrived[0][1] > 0.08
    with pytest.raises(APITimeoutError, match="between_chunks"), client.stream("x") as stream:
        assert stream.message


@pytest.mark.parametrize("is_async", [False, True])
def test_a_stream_that_breaks_keeps_its_words(is_async: bool) -> None:
    model = ScriptedModel([ScriptedReply(answer="one two three", breaks_after=2)])

    async def ask() -> il.Message:
        async with model.async_client(retry=0) as client, client.stream("x") as stream:
            return await stream.message

    def ask_blocking() -> il.Message:
        with model.client(retry=0).stream("x") as stream:
            return stream.message

    with pytest.raises(il.WireError) as caught:
        asyncio.run(ask()) if is_async else ask_blocking()
    assert caught.value.partial.text == "one two"


def test_a_connection_that_breaks_before_the_answer_is_tried_again() -> None:
    model = ScriptedModel([ScriptedReply(breaks_after=0), ScriptedReply(answer=[call("add", a=1)], pause=0.001)])
    with model.client(retry=il.Retry(initial_delay=0.001)).stream("x") as stream:
        assert stream.message.tool_calls[0].input == {"a": 1}
    assert len(model.requests) == 2


def test_closing_wakes_a_reply_that_waits() -> None:
    reply = MemoryReply([b"a", b"b"], pause=20.0)
    threading.Timer(0.1, reply.close).start()
    begun = time.monotonic()

    assert list(reply) == []
    assert time.monotonic() - begun < 5


def test_what_was_sent_is_read_by_its_parts() -> None:
    model = ScriptedModel(["ok", "left"])
    with pytest.raises(AssertionError, match="sent no request"):
        assert model.last
    asked = il.assistant([il.ToolUseBlock(id="tu_1", name="add")])
    history = [il.system("Be brief."), il.user("1 + 2?"), asked, il.tool_result(asked.tool_calls[0], "3")]
    model.client().send(history)

    assert model.last.text == "1 + 2?"
    assert model.last.instructions == "Be brief."
    assert list(model.last.results.values()) == ["3"]
    with pytest.raises(AssertionError, match="1 scripted answers were not asked for, after 1 requests"):
        model.assert_done()


TESTS = """
from interlingua import Client

def test_scripted(interlingua_model, interlingua_offline):
    assert interlingua_model(["Hello."]).client().send("Hi").text == "Hello."

def test_left(interlingua_model):
    interlingua_model(["Hello."])

def test_recorded(interlingua_cassette):
    client = Client("anthropic:m", api_key="k" * 20, base_url="ADDRESS", transport=interlingua_cassette.transport())
    assert client.send("hi").text == "HI " + ("k" * 20 if interlingua_cassette.is_recording else "-")
"""


def test_the_fixtures(tmp_path: Path, address: str) -> None:
    (tmp_path / "test_app.py").write_text(TESTS.replace("ADDRESS", address))
    plugin = ["-p", "no:interlingua", "-p", "interlingua.testing.fixtures"]  # also if it is not installed

    def run(*arguments: str) -> str:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin, *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120).stdout

    assert "2 passed, 1 deselected, 1 error" in run("-k", "scripted or left")  # the error is the answer that is left
    assert "record it first" in run("-k", "recorded")
    assert "1 passed" in run("-k", "recorded", "--interlingua-record")
    assert (tmp_path / "cassettes/test_app/test_recorded.jsonl").exists()
    assert "1 passed" in run("-k", "recorded")


def test_a_memory_transport_without_delays_does_not_wait() -> None:
    transport = MemoryTransport(lambda _: b"{}")
    begun = time.monotonic()
    for _ in range(1000):
        transport.open(None, il.transport.TimeLimits(None))  # type: ignore[arg-type]

    assert time.monotonic() - begun < 1
