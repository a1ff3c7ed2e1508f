"""An agent of ten turns whose tools change at turns 3, 6 and 9, on services that check what they have cached."""

from __future__ import annotations

import json
from typing import Any

import pytest

import interlingua as il
from interlingua.testing import MemoryReply, MemoryTransport
from interlingua.transport import HttpRequest
from interlingua.types import Message, change
from interlingua_agents import Agent, Tool, tool
from tests.plugins.test_changes import MODELS, CheckedService

RAN: list[str] = []


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


class CallingService(CheckedService):
    """Calls a tool in each turn, and answers when it has the result."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.tool = ""

    def reply(self, request: HttpRequest) -> MemoryReply:
        """Answer a request; the checks of the base class raise within it."""
        body = json.loads(request.body)
        made = json.loads(self.answer(body))
        last = body["input"][-1] if self.key == "openai" else body["messages"][-1]["content"][-1]
        if last.get("type") not in ("function_call_output", "tool_result"):
            self._call(made)
        return MemoryReply(json.dumps(made).encode(), headers={"content-type": "application/json"})

    def _call(self, made: dict[str, Any]) -> None:
        number = len(self.asked)
        if self.key == "openai":
            call = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": self.tool}
            made["output"] = [{**call, "arguments": '{"x":"it"}', "status": "completed"}]
            return
        used: dict[str, Any] = {"type": "tool_use", "id": f"toolu_{number}", "name": self.tool, "input": {"x": "it"}}
        made["content"], made["stop_reason"] = [made["content"][0], used], "tool_use"


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
            agent = Agent(f"{model}:{MODELS[model]}", tools=[READ, SEARCH, DEPLOY, AUDIT][: 4 if turn > 8 else 3])
            history += [CHANGES[turn]] if turn in CHANGES else []
            if turn < 3:
                agent = Agent(f"{model}:{MODELS[model]}", tools=[READ, SEARCH])
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
