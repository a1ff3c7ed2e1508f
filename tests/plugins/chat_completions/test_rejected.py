"""Answers that the service made and refused: Groq's `failed_generation` (WIRE.md, Groq), whole, streamed, typed."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import attrs
import httpx
import pytest

from interlingua import AsyncClient, Client
from interlingua.errors import BadRequestError, RejectedAnswerError
from interlingua.output import InvalidOutputError
from interlingua_agents import Agent
from interlingua_output import Output
from tests.support.quiet import quiet_ledger

MODEL = "groq:openai/gpt-oss-120b"
# the error objects as users report and as recorded traffic has them
SCHEMA = {
    "message": "Failed to generate JSON. Please adjust your prompt. See 'failed_generation' for more details.",
    "type": "invalid_request_error",
    "code": "json_validate_failed",
    "failed_generation": '{"name": "Ann", "age": "30"}',
}
CALL = {
    "message": "tool call validation failed: parameters for tool person did not match schema: errors: "
    "[`/age`: expected integer, but got string]",
    "type": "invalid_request_error",
    "code": "tool_use_failed",
    "failed_generation": '[\n {\n "name": "person",\n "parameters": {"name": "Ann", "age": "30"}\n }\n]',
}
REJECTED = {"native": SCHEMA, "tool": CALL}


@attrs.frozen
class Person:
    name: str
    age: int


class Service:
    """Refuses the first answers, then gives a good one."""

    def __init__(self, mode: str, *, times: int = 1, text: str | None = None) -> None:
        self.mode, self.bodies, self._times = mode, list[dict[str, Any]](), times
        self.error = {**REJECTED[mode], **({} if text is None else {"failed_generation": text})}

    def __call__(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        self.bodies.append(body)
        if len(self.bodies) <= self._times:
            if body.get("stream"):
                event = {"error": {**self.error, "status_code": 400}}
                return self._events([f"event: error\ndata: {json.dumps(event)}\n\n"])
            return httpx.Response(400, json={"error": self.error})
        good = '{"name":"Ann","age":30}'
        message: dict[str, Any] = {"role": "assistant", "content": good}
        if self.mode == "tool":
            call = {"id": "call_1", "type": "function", "function": {"name": "person", "arguments": good}}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        head = {"id": "chatcmpl-1", "model": body["model"], "created": 1}
        choice = {"index": 0, "finish_reason": "stop"}
        if body.get("stream"):
            if self.mode == "tool":
                message["tool_calls"][0]["index"] = 0
            chunk = {**head, "object": "chat.completion.chunk", "choices": [{**choice, "delta": message}]}
            return self._events([f"data: {json.dumps(chunk)}\n\n", "data: [DONE]\n\n"])
        return httpx.Response(
            200, json={**head, "object": "chat.completion", "choices": [{**choice, "message": message}]}
        )

    @staticmethod
    def _events(lines: list[str]) -> httpx.Response:
        return httpx.Response(200, text="".join(lines), headers={"content-type": "text/event-stream"})

    def client(self) -> Client:
        http = httpx.Client(transport=httpx.MockTransport(self))
        return Client(MODEL, api_key="k", http_client=http, retry=0)

    def async_client(self) -> AsyncClient:
        http = httpx.AsyncClient(transport=httpx.MockTransport(self))
        return AsyncClient(MODEL, api_key="k", http_client=http, retry=0)

    def send(self, asynchronous: bool, **arguments: Any) -> Any:
        with quiet_ledger():
            if asynchronous:
                return asyncio.run(self.async_client().send("Who?", **arguments))
            return self.client().send("Who?", **arguments)


@pytest.fixture(params=["native", "tool"])
def mode(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.mark.parametrize("asynchronous", [False, True])
def test_it_is_an_attempt_of_a_typed_answer(mode: Any, asynchronous: bool) -> None:
    service = Service(mode)
    answer = service.send(asynchronous, output=Output(Person, mode=mode))

    assert answer.value == Person("Ann", 30)
    rejected, taken = answer.attempts
    assert rejected.message.text == REJECTED[mode]["failed_generation"]
    assert REJECTED[mode]["message"] in rejected.errors[0].message
    assert not taken.errors
    asked = service.bodies[1]["messages"][-2:]
    assert asked[0] == {"role": "assistant", "content": REJECTED[mode]["failed_generation"]}
    assert REJECTED[mode]["message"] in asked[1]["content"]
    assert ("age: has to be of type integer" in asked[1]["content"]) == (mode == "native")
    assert rejected.message not in answer.messages


def test_an_empty_one_is_an_attempt_as_well(mode: Any) -> None:
    service = Service(mode, text="")
    answer = service.send(False, output=Output(Person, mode=mode))
    assert answer.value == Person("Ann", 30)
    assert [one["role"] for one in service.bodies[1]["messages"]][-2:] == ["user", "user"]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_without_a_retry_left_the_text_is_in_the_error(mode: Any, asynchronous: bool) -> None:
    with pytest.raises(InvalidOutputError) as caught:
        Service(mode, times=2).send(asynchronous, output=Output(Person, mode=mode))
    assert [one.message.text for one in caught.value.attempts] == [REJECTED[mode]["failed_generation"]] * 2
    assert "30" not in str(caught.value)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_where_no_type_is_asked_for_it_is_a_bad_request_with_the_text(mode: Any, asynchronous: bool) -> None:
    with pytest.raises(RejectedAnswerError) as caught:
        Service(mode).send(asynchronous)
    assert isinstance(caught.value, BadRequestError)
    assert caught.value.partial.text == REJECTED[mode]["failed_generation"]
    assert not caught.value.retryable


def test_a_stream_keeps_the_text(mode: Any) -> None:
    asked = Service(mode).client().stream("Who?", output=Output(Person, mode="tool"))
    with quiet_ledger(), pytest.raises(RejectedAnswerError) as caught, asked as stream:
        _ = stream.answer
    assert caught.value.partial.text == REJECTED[mode]["failed_generation"]


@pytest.mark.parametrize("streamed", [False, True])
def test_an_agent_asks_again(mode: Any, streamed: bool) -> None:
    service = Service("tool" if streamed else mode)  # no schema in a stream here
    agent = Agent(MODEL, output=Output(Person, mode=service.mode))
    with quiet_ledger(), service.client() as client:
        if streamed:
            with agent.stream_sync("Who?", client=client) as events:
                run = list(events)[-1].result
        else:
            run = agent.run_sync("Who?", client=client)
    assert run.value == Person("Ann", 30)
    assert service.error["message"] in str(service.bodies[1]["messages"][-1])
    assert service.error["failed_generation"] in [one.get("content") for one in service.bodies[1]["messages"]]
    assert [one.role.value for one in run.messages][:2] == ["user", "assistant"]
