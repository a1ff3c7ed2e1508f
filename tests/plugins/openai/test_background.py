"""Background answers of Responses: asked for until they are there, cancelled, taken up by another client."""

from __future__ import annotations

import json
from typing import Any

import pytest

import interlingua as il
from interlingua import codec
from interlingua.types import MessageStatus
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
            assert json.loads(got.body)["background"] is True
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

    assert (message.text, message.metadata.usage.output_tokens) == ("done", 2)
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
