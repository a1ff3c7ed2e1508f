"""Clients beside agents: the facts that they keep on an answer for the application, and agents on trio."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
import trio

import interlingua as il
from interlingua.testing import AsyncMemoryTransport, MemoryTransport
from interlingua.types import ToolKind
from interlingua_agents import Agent, Tool, tool
from tests.agents.scripted import MODEL, Say, Theatre, call, registry

READ = il.ToolDefinition(
    name="read", description="", input_schema={"type": "object", "properties": {}}, side_effects="read",
    kind=ToolKind.FETCH,
)  # fmt: skip


def ask(way: str, theatre: Theatre, **arguments: Any) -> il.Message:
    """Ask once: `send` or `stream`, and with "async " before it the asynchronous client."""

    async def ask_async() -> il.Message:
        async with il.AsyncClient(MODEL, registry=registry(), transport=AsyncMemoryTransport(theatre)) as client:
            if way == "async send":
                return await client.send("hi", **arguments)
            async with client.stream("hi", **arguments) as stream:
                return await stream.message

    if way.startswith("async"):
        return asyncio.run(ask_async())
    with il.Client(MODEL, registry=registry(), transport=MemoryTransport(theatre)) as client:
        if way == "send":
            return client.send("hi", **arguments)
        with client.stream("hi", **arguments) as stream:
            return stream.message


WAYS = ("send", "stream", "async send", "async stream")


@pytest.mark.parametrize("way", WAYS)
def test_the_user_and_the_team_are_kept_on_the_answer(way: str) -> None:
    theatre = Theatre("Hello.")
    answer = ask(way, theatre, user_id="u_7", team_id="t_3")

    assert (answer.metadata.user_id, answer.metadata.team_id) == ("u_7", "t_3")
    assert "t_3" not in str(theatre.asked)


@pytest.mark.parametrize("way", WAYS)
def test_the_kind_of_a_tool_reaches_its_calls(way: str) -> None:
    other = il.ToolDefinition(name="other", description="", input_schema={"type": "object"}, side_effects="none")
    answer = ask(way, Theatre(Say(parts=["So.", call("read"), call("other"), call("absent")])), tools=[other, READ])

    assert [one.kind for one in answer.tool_calls] == ["fetch", None, None]
    assert answer == il.codec.loads_message(il.codec.dumps_message(answer))


@pytest.mark.parametrize("way", WAYS)
def test_a_tool_with_its_function_is_refused_with_the_way_to_offer_or_run_it(way: str) -> None:
    @tool(side_effects="read")
    def moons(planet: str) -> int:
        """Count moons."""
        return len(planet)

    with pytest.raises(il.CallerError, match=r"'moons' is a tool with its function.*`definition`.*with an agent"):
        ask(way, Theatre(), tools=[moons])


@tool(side_effects="none")
def look() -> str:
    """Look."""
    return "seen"


def test_on_trio_an_agent_with_tools_is_refused_before_a_model_is_asked() -> None:
    theatre = Theatre("Hello.", Say(parts=[call("look")]), "Seen.")

    async def run(tools: Sequence[Tool]) -> str:
        async with il.AsyncClient(registry=registry(), transport=AsyncMemoryTransport(theatre)) as used:
            return (await Agent(MODEL, tools=tools).run("go", client=used)).value

    assert trio.run(run, ()) == "Hello."
    with pytest.raises(il.CallerError, match="on asyncio only, not on trio: use run_sync"):
        trio.run(run, (look,))
    assert len(theatre.asked) == 1

    async def in_a_thread() -> str:
        with il.Client(registry=registry(), transport=MemoryTransport(theatre)) as used:
            agent = Agent(MODEL, tools=[look])
            return (await trio.to_thread.run_sync(partial(agent.run_sync, "go", client=used))).value

    assert trio.run(in_a_thread) == "Seen."
