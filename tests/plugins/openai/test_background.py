"""Background answers of Responses: asked for until they are there, cancelled, taken up by another client."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import interlingua as il
from interlingua import codec
from interlingua.types import MessageStatus
from tests.support.cassettes import load_exchanges
from tests.support.fake_provider import Got, Reply, served
from tests.support.retry_waits import without_waiting

# the shapes of an answer in the background and of the finished one (plugins/openai/WIRE.md, Responses status)
QUEUED = {
    "id": "resp_1",
    "object": "response",
    "status": "queued",
    "background": True,
    "model": "gpt-5.1",
    "output": [],
}
TEXT = {"type": "output_text", "text": "done", "annotations": []}
ITEM = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [TEXT]}
USAGE = {"input_tokens": 9, "output_tokens": 2, "total_tokens": 11}
DONE = QUEUED | {"status": "completed", "output": [ITEM], "usage": USAGE}


class Service:
    def __init__(self, polls: int) -> None:
        self.polls, self.asked = polls, list[str]()

    def __call__(self, got: Got) -> Reply:
        self.asked.append(got.path)
        assert got.headers["authorization"] == "Bearer sk"
        if got.path == "/responses":
            sent = json.loads(got.body)
            assert (sent["background"], sent["store"], "include" in sent) == (True, True, False)
            return reply(QUEUED)
        if got.path.endswith("/cancel"):
            return reply(QUEUED | {"status": "cancelled"})
        self.polls -= 1
        return reply(DONE if self.polls <= 0 else QUEUED | {"status": "in_progress"})


def reply(body: dict[str, Any]) -> Reply:
    return Reply(body=(json.dumps(body).encode(),))


def client(url: str, **more: Any) -> il.Client:
    return without_waiting(il.Client("openai:gpt-5.1", api_key="sk", base_url=url, **more))


OPTIONS: dict[str, Any] = {"api": "responses", "provider_options": {"background": True}}


def test_send_waits_for_it() -> None:
    with served(choose=(service := Service(polls=3))) as server, client(server.url) as ours:
        message = ours.send("x", **OPTIONS)

    assert (message.text, message.usage.output_tokens) == ("done", 2)
    assert service.asked == ["/responses", *["/responses/resp_1"] * 3]


def test_another_client_takes_it_up() -> None:
    with served(choose=(service := Service(polls=2))) as server:
        with client(server.url) as ours:
            pending = ours.start("x", **OPTIONS)
        assert (pending.metadata.status, service.asked) == (MessageStatus.PARTIAL, ["/responses"])
        with client(server.url) as another:
            message = another.resume(codec.loads_message(codec.dumps_message(pending)))

    assert (message.text, message.id) == ("done", pending.id)
    assert service.asked == ["/responses", *["/responses/resp_1"] * 2]


def test_a_time_limit_cancels_it() -> None:
    limited = pytest.raises(il.errors.APITimeoutError)
    with served(choose=(service := Service(polls=10**6))) as server, client(server.url, timeout=0.5) as ours, limited:
        ours.send("x", **OPTIONS)

    assert service.asked == ["/responses", "/responses/resp_1/cancel"]


def test_an_answer_that_another_client_cancelled_is_complete() -> None:
    with (
        served(
            choose=lambda got: reply(QUEUED if got.path == "/responses" else QUEUED | {"status": "cancelled"})
        ) as server,
        client(server.url) as ours,
    ):
        assert ours.send("x", **OPTIONS).metadata.stop_reason_raw == "cancelled"


# the events of a background stream (guides/background: `response.created`, then `response.queued`), numbered
TEXTS = ("one ", "two ", "three")
PART = {"type": "output_text", "text": "", "annotations": []}
EVENTS: tuple[dict[str, Any], ...] = (
    {"type": "response.created", "response": QUEUED},
    {"type": "response.queued", "response": QUEUED},
    {"type": "response.in_progress", "response": QUEUED | {"status": "in_progress"}},
    {"type": "response.output_item.added", "output_index": 0, "item": ITEM | {"status": "in_progress", "content": []}},
    {"type": "response.content_part.added", "item_id": "msg_1", "output_index": 0, "content_index": 0, "part": PART},
    *(
        {
            "type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0,
            "delta": text,
        }
        for text in TEXTS
    ),
    {
        "type": "response.output_text.done", "item_id": "msg_1", "output_index": 0, "content_index": 0,
        "text": "".join(TEXTS),
    },
    {
        "type": "response.output_item.done", "output_index": 0,
        "item": ITEM | {"content": [TEXT | {"text": "".join(TEXTS)}]},
    },
    {
        "type": "response.completed",
        "response": DONE | {"output": [ITEM | {"content": [TEXT | {"text": "".join(TEXTS)}]}]},
    },
)  # fmt: skip


def events(first: int = 0, last: int | None = None) -> list[bytes]:
    """Return events as they are sent, numbered from 0; `starting_after=0` begins at event 1."""
    numbered = [json.dumps(each | {"sequence_number": at}) for at, each in enumerate(EVENTS)]
    return [f"data: {each}\n\n".encode() for each in numbered[first:last]]


class Streaming:
    """A service whose stream breaks after some events; `breaks` holds the number of events of each reading."""

    def __init__(self, *breaks: int | None, rest: float = 0.0) -> None:
        self.breaks, self.rest, self.asked = list(breaks), rest, list[str]()

    def __call__(self, got: Got) -> Reply:
        self.asked.append(got.path)
        if got.path.endswith("/cancel"):
            return reply(QUEUED | {"status": "cancelled"})
        assert got.path in ("/responses", "/responses/resp_1?stream=true&starting_after=0")
        first = 0 if got.path == "/responses" else 1
        last = self.breaks.pop(0) if self.breaks else None
        end = [] if last is None else [self.rest, None] if self.rest else [None]
        return Reply(body=[*events(first, last), *end])

    @property
    def created(self) -> int:
        return self.asked.count("/responses")


AGAIN = "/responses/resp_1?stream=true&starting_after=0"
Read = Callable[..., tuple[list[str], il.Message]]


def read_blocking(url: str, **more: Any) -> tuple[list[str], il.Message]:
    with client(url, **more) as ours, ours.stream("x", **OPTIONS) as stream:
        return [event.text for event in stream if event.type == "text_delta"], stream.message


def read_asynchronous(url: str, **more: Any) -> tuple[list[str], il.Message]:
    async def run() -> tuple[list[str], il.Message]:
        async with il.AsyncClient("openai:gpt-5.1", api_key="sk", base_url=url, **more) as ours:
            async with ours.stream("x", **OPTIONS) as stream:
                pieces = [event.text async for event in stream if event.type == "text_delta"]
            return pieces, await stream.message

    return asyncio.run(run())


BOTH = pytest.mark.parametrize("read", [read_blocking, read_asynchronous])


@BOTH
@pytest.mark.parametrize("last", [1, 3, 5, 7, len(EVENTS) - 1, None])
def test_a_stream_that_broke_off_is_read_on(read: Read, last: int | None) -> None:
    """Every event comes once, though the service sends all again from the first."""
    with served(choose=(service := Streaming(last))) as server:
        pieces, message = read(server.url)

    assert (tuple(pieces), message.text) == (TEXTS, "".join(TEXTS))
    assert message.usage.output_tokens == 2
    assert service.asked == ["/responses"] + [AGAIN] * (last is not None)


@BOTH
def test_a_stream_that_breaks_where_it_broke_before_is_an_error_to_resume(read: Read) -> None:
    with served(choose=(service := Streaming(6, 6))) as server:
        with pytest.raises(il.errors.StreamInterruptedError) as caught:
            read(server.url, retry=0)
        partial = caught.value.partial
        assert (partial.text, partial.metadata.status) == ("one ", MessageStatus.ERROR)
        with client(server.url) as another:
            message = another.resume(codec.loads_message(codec.dumps_message(partial)))

    assert (message.text, message.id) == ("".join(TEXTS), partial.id)
    assert service.asked == ["/responses", AGAIN, AGAIN]


@BOTH
def test_what_continues_a_stream_is_tried_again(read: Read) -> None:
    class Failing(Streaming):
        def __call__(self, got: Got) -> Reply:
            if got.path == AGAIN and self.asked.count(AGAIN) == 0:
                self.asked.append(got.path)
                return Reply(status=503)
            return super().__call__(got)

    with served(choose=(service := Failing(6))) as server:
        pieces, message = read(server.url)

    assert (tuple(pieces), message.text) == (TEXTS, "".join(TEXTS))
    assert service.asked == ["/responses", AGAIN, AGAIN]


def test_leaving_a_stream_ends_the_generation() -> None:
    with served(choose=(service := Streaming(6, rest=2.0))) as server, client(server.url) as ours:
        with ours.stream("x", **OPTIONS) as stream:
            assert next(event.text for event in stream if event.type == "text_delta") == "one "
        assert stream.message.metadata.status is MessageStatus.CANCELLED

    assert service.asked == ["/responses", "/responses/resp_1/cancel"]


@BOTH
def test_a_time_limit_ends_the_generation_of_a_stream(read: Read) -> None:
    with (
        served(choose=(service := Streaming(6, rest=3.0))) as server,
        pytest.raises(il.errors.APITimeoutError) as caught,
    ):
        read(server.url, timeout=0.7)

    assert caught.value.partial.text == "one "
    assert service.asked == ["/responses", "/responses/resp_1/cancel"]


@pytest.mark.parametrize("name", ["responses_background", "responses_background_streamed"])
def test_the_cassettes_are_what_is_sent_and_read(name: str) -> None:
    """Both end as the SDK reads the last answer (test_cassettes.py); the stream broke off between two pieces."""
    exchanges = load_exchanges(f"openai/{name}.yaml")
    streamed = name.endswith("streamed")

    def choose(got: Got) -> Reply:
        found = exchanges.pop(0)
        assert found.uri == f"https://api.openai.com/v1{got.path}"
        assert (json.loads(got.body) if got.body else None) == found.request
        return Reply(body=(found.body, None) if streamed and exchanges else (found.body,))

    prompt = "Compare a.txt and b.txt."
    options: dict[str, Any] = {"model": "openai:gpt-5.5", **OPTIONS}
    with served(choose=choose) as server, client(server.url) as ours:
        if streamed:
            with ours.stream(prompt, **options) as stream:
                message = stream.message
        else:
            message = ours.send(prompt, **options)

    assert message.text == "The two files differ in one line."
    assert (message.usage.output_tokens, message.usage.reasoning_tokens) == (41, 32)
    assert exchanges == []


START = """
import sys
import interlingua as il
from interlingua import codec
url, file, streamed = sys.argv[1:]
client = il.Client("openai:gpt-5.1", api_key="sk", base_url=url)
options = {"api": "responses", "provider_options": {"background": True}}
if streamed == "False":
    open(file, "w").write(codec.dumps_message(client.start("x", **options)))
    print("ready", flush=True)
    input()
with client.stream("x", **options) as stream:
    for event in stream:
        if event.type == "text_delta":
            open(file, "w").write(codec.dumps_message(stream.partial))
            print("ready", flush=True)
            input()
"""
RESUME = """
import sys
import interlingua as il
from interlingua import codec
url, file = sys.argv[1:]
with il.Client("openai:gpt-5.1", api_key="sk", base_url=url) as client:
    print(codec.dumps_message(client.resume(codec.loads_message(open(file).read()))))
"""


@pytest.mark.parametrize("streamed", [False, True])
def test_a_process_that_was_killed_pays_once(tmp_path: Path, streamed: bool) -> None:
    file = tmp_path / "pending.json"
    service: Any = Streaming(6, rest=5.0) if streamed else Service(polls=1)
    with served(choose=service) as server:
        command = [sys.executable, "-c", START, server.url, str(file), str(streamed)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first:
            assert first.stdout is not None
            assert first.stdout.readline() == b"ready\n"
            first.kill()
        time.sleep(0.1)
        written = subprocess.run(
            [sys.executable, "-c", RESUME, server.url, str(file)], check=True, capture_output=True, text=True
        ).stdout
    message = codec.loads_message(written)

    assert message.text == ("".join(TEXTS) if streamed else "done")
    assert (message.usage.input_tokens, message.usage.output_tokens) == (9, 2)
    assert message.usage.cost_usd is not None
    assert service.asked == ["/responses", AGAIN if streamed else "/responses/resp_1"]


def test_a_proxy_of_another_host_keeps_its_address() -> None:
    """Azure's path is before the response's, with its version behind it (the older addresses)."""
    settings = {"azure": {"api_key": "k", "options": {"api_version": "preview"}}}
    asked: list[str] = []

    def choose(got: Got) -> Reply:
        asked.append(got.path)
        return reply(QUEUED if len(asked) == 1 else DONE)

    with served(choose=choose) as server:
        settings["azure"]["base_url"] = server.url
        with without_waiting(il.Client("azure:gpt-5.1", settings=settings)) as ours:
            assert ours.send("x", **OPTIONS).text == "done"

    assert asked == ["/openai/v1/responses?api-version=preview", "/openai/v1/responses/resp_1?api-version=preview"]
