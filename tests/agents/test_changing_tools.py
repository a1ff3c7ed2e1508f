"""An agent of ten turns whose tools change at turns 3, 6 and 9, on services that check what they have cached."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

import interlingua as il
from interlingua.testing import MemoryReply, MemoryTransport
from interlingua.transport import HttpRequest
from interlingua.types import Message, change
from interlingua_agents import Agent, Tool, tool
from tests.gateway.conftest import Upstream, gateway
from tests.plugins.anthropic.asking import START, STOP, block, ended
from tests.plugins.anthropic.asking import sse as messages_sse
from tests.plugins.openai.wire import events_of, sse
from tests.plugins.test_changes import MODELS, CheckedService
from tests.support.loopback import send_bytes

RAN: list[str] = []
_PIECES = ("thinking", "signature", "text")


def _function(name: str) -> Tool:
    def function(x: str) -> str:
        RAN.append(name)
        return f"{name} of {x}"

    function.__name__ = name
    function.__doc__ = f"Run {name}."
    return tool(side_effects="read")(function)


READ, SEARCH, DEPLOY, AUDIT = map(_function, ("read_file", "search", "deploy", "audit"))
CHANGES = {
    3: change(add=[DEPLOY.definition], effort="high"),
    6: change(remove=["search"]),
    9: change(add=[AUDIT.definition], remove=["deploy"], effort="low"),
}
OFFERED = {1: "search", 3: "deploy", 6: "read_file", 9: "audit"}  # what the model calls from this turn on


def _tools_at(turn: int) -> list[Tool]:
    """Return the tools that the application has by this turn, with those that a change removed."""
    return [READ, SEARCH, DEPLOY, AUDIT][: 2 if turn < 3 else 3 if turn < 9 else 4]


class CallingService(CheckedService):
    """Calls a tool in each turn, and answers when it has the result."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.tool = ""

    def reply(self, request: HttpRequest) -> MemoryReply:
        """Answer a request; the checks of the base class raise within it."""
        kind, data = self.answered(request.body)
        return MemoryReply(data, headers={"content-type": kind})

    def over_http(self, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        send_bytes(handler, 200, *self.answered(json.dumps(body, separators=(",", ":")).encode()))

    def answered(self, sent: bytes) -> tuple[str, bytes]:
        made = json.loads(self.answer(sent))
        body = self.asked[-1]
        last = body["input"][-1] if self.key == "openai" else body["messages"][-1]["content"][-1]
        if last.get("type") not in ("function_call_output", "tool_result"):
            self._call(made)
        if not body.get("stream"):
            return "application/json", json.dumps(made).encode()
        return "text/event-stream", sse(events_of(made)) if self.key == "openai" else _messages_stream(made)

    def _call(self, made: dict[str, Any]) -> None:
        number = len(self.asked)
        if self.key == "openai":
            call = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": self.tool}
            made["output"][1:] = [{**call, "arguments": '{"x":"it"}', "status": "completed"}]
            return
        used: dict[str, Any] = {"type": "tool_use", "id": f"toolu_{number}", "name": self.tool, "input": {"x": "it"}}
        made["content"], made["stop_reason"] = [made["content"][0], used], "tool_use"


def _messages_stream(made: dict[str, Any]) -> bytes:
    events: list[dict[str, Any]] = [START]
    for index, part in enumerate(made["content"]):
        deltas = [{"type": f"{name}_delta", name: part[name]} for name in _PIECES if name in part]
        empty = {name: "" if name in _PIECES else value for name, value in part.items()}
        if part["type"] == "tool_use":
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(part["input"])}]
            empty["input"] = {}
        events += block(index, empty, *deltas)
    return messages_sse(*events, ended(made["stop_reason"]), STOP)


@contextmanager
def _through_a_gateway(service: CallingService) -> Iterator[il.Client]:
    upstream = Upstream()
    upstream.answers = [service.over_http]
    path = "/v1" if service.key == "openai" else ""
    settings = {service.key: {"base_url": f"{upstream.url}{path}", "api_key": "k"}}
    routes = [{"match": "*", "to": [f"{service.key}:{MODELS[service.key]}"], "retries": 0}]
    try:
        with (
            gateway(upstream, settings=settings, routes=routes) as url,
            il.Client(settings={service.key: {"base_url": f"{url}{path}", "api_key": "k"}}, retry=0) as client,
        ):
            yield client
    finally:
        upstream.close()


def _gemini(request: HttpRequest) -> MemoryReply:
    """Answer elsewhere: the whole list of tools must be there."""
    declared = json.loads(request.body)["tools"][0]["functionDeclarations"]
    assert [one["name"] for one in declared] == ["read_file", "search", "deploy"]
    answer = {"candidates": [{"content": {"role": "model", "parts": [{"text": "G."}]}, "finishReason": "STOP"}]}
    return MemoryReply(json.dumps(answer).encode(), headers={"content-type": "application/json"})


@pytest.mark.parametrize("key", ["anthropic", "openai"])
@pytest.mark.parametrize("swapped", [False, True], ids=["stays", "swapped at turn 5"])
def test_an_agent_whose_tools_change_keeps_the_prefix_and_the_thinking(key: str, swapped: bool) -> None:
    service = CallingService(key)
    settings = {name: {"api_key": "k"} for name in MODELS}
    history: list[Message] = []
    RAN.clear()

    def reply(request: HttpRequest) -> MemoryReply:
        return _gemini(request) if "generativelanguage" in request.url else service.reply(request)

    with il.Client(settings=settings, transport=MemoryTransport(reply), retry=0) as client:
        for turn in range(1, 11):
            service.tool = OFFERED.get(turn, service.tool)
            away = swapped and turn == 5
            model = "google" if away else key
            agent = Agent(f"{model}:{MODELS[model]}", tools=_tools_at(turn))
            history += [CHANGES[turn]] if turn in CHANGES else []
            run = agent.run_sync(f"Turn {turn}.", history=history, client=client)
            history += run.messages
            rows = [row for row in run.messages[-1].metadata.losses if row.block_type in ("tool", "thinking")]
            assert away or not rows, (turn, rows)

    turns = 9 if swapped else 10
    assert len(service.asked) == 2 * turns
    assert ["search"] * 2 + ["deploy"] * (turns - 7) + ["read_file"] * 3 + ["audit"] * 2 == RAN
    front = [one.get("name") for one in service.asked[0]["tools"]]
    assert front == ["read_file", "search"]
    assert all(body["tools"] == service.asked[0]["tools"] for body in service.asked)


@pytest.mark.parametrize("key", ["anthropic", "openai"])
@pytest.mark.parametrize(("by_gateway", "stream"), [(False, True), (True, False), (True, True)])
def test_streams_and_a_gateway_keep_the_prefix_and_the_thinking_too(key: str, by_gateway: bool, stream: bool) -> None:
    service = CallingService(key)
    history: list[Message] = []
    RAN.clear()
    directly = il.Client(settings={key: {"api_key": "k"}}, transport=MemoryTransport(service.reply), retry=0)
    with _through_a_gateway(service) if by_gateway else directly as client:
        for turn in range(1, 11):
            service.tool = OFFERED.get(turn, service.tool)
            agent = Agent(f"{key}:{MODELS[key]}", tools=_tools_at(turn))
            history += [CHANGES[turn]] if turn in CHANGES else []
            if not stream:
                history += agent.run_sync(f"Turn {turn}.", history=history, client=client).messages
                continue
            with agent.stream_sync(f"Turn {turn}.", history=history, client=client) as events:
                for _ in events:
                    pass
            history += events.result.messages

    assert len(service.asked) == 20
    assert ["search", "search", *["deploy"] * 3, *["read_file"] * 3, "audit", "audit"] == RAN


def test_the_service_refuses_a_front_that_changes() -> None:
    """The instrument: without the change in the history, the list in front is another, and the service refuses it."""
    service = CallingService("anthropic")
    service.tool = "read_file"
    transport = MemoryTransport(service.reply)
    with il.Client(settings={"anthropic": {"api_key": "k"}}, transport=transport, retry=0) as client:
        first = Agent(f"anthropic:{MODELS['anthropic']}", tools=[READ, SEARCH]).run_sync("Turn 1.", client=client)
        changed = Agent(f"anthropic:{MODELS['anthropic']}", tools=[READ, SEARCH, DEPLOY])
        with pytest.raises(AssertionError, match="at the front have changed"):
            changed.run_sync("Turn 2.", history=first.messages, client=client)
