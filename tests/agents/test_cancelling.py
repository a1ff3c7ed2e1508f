"""Cancelling a run in every state: no call stays open, no request follows, and the history can be continued.

Expectations are docs/agents/README.md; the model is a script.
"""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

import interlingua as il
from interlingua_agents import Agent, StopCause, ToolContext, tool
from interlingua_agents import events as ev
from interlingua_agents.loop import AgentLoop
from interlingua_agents.memory import AsyncMemoryTurn
from tests.agents.scripted import MODEL, Say, Theatre, call, registry
from tests.agents.test_agents import async_client, client, valid
from tests.agents.ways import STREAMED, play


@tool(side_effects="none")
def look(context: ToolContext) -> str:
    """Look."""
    context.update("looking")
    context.wait(0.05)
    return "seen"


@tool
async def change() -> str:
    """Change."""
    await asyncio.sleep(0.05)
    return "changed"


STATES = ["turn_start", "thinking_delta", "text_delta", "tool_start", "tool_update", "tool_end", "turn_end"]


@pytest.mark.parametrize("way", STREAMED)
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("turn", [1, 2])
def test_cancelled_at_every_event(tmp_path: Path, way: str, state: str, turn: int) -> None:
    parts = [("think", "hm"), "I look.", call("look"), call("change"), call("look")]
    theatre = Theatre(Say(parts=parts), Say(parts=parts), Say(parts=parts))

    def on_event(event: Any, cancel: Any) -> None:
        if event.type == state and event.turn == turn:
            cancel()

    played = play(way, theatre, tmp_path, [look, change], confirm=lambda _: True, on_event=on_event)

    assert played.stopped is not None
    assert played.stopped.cause is StopCause.CANCELLED
    assert len(theatre.asked) == (1 if state == "turn_start" else turn)
    valid(played.messages)
    whole = [one for one in played.messages if one.metadata.status is il.MessageStatus.COMPLETE]
    calls = [one.id for message in whole for one in message.tool_calls]
    assert [one.tool_use_id for one in played.results] == calls
    if played.rows is not None:
        assert played.findings == []
    again = Theatre("On.")
    with client(again) as used:
        run = Agent(MODEL).run_sync("go on", history=played.messages, client=used)
    assert run.value == "On."


class Hanging(httpx.AsyncBaseTransport):
    """A service that never answers."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.asked.set()
        await asyncio.sleep(60)
        raise AssertionError


@pytest.mark.parametrize("streamed", [True, False])
def test_a_task_that_is_cancelled_while_the_model_is_asked(streamed: bool) -> None:
    async def run() -> None:
        transport = Hanging()
        http = httpx.AsyncClient(transport=transport)
        async with il.AsyncClient(registry=registry(), http_client=http, retry=0) as used:
            agent = Agent(MODEL, tools=[look])

            async def go() -> None:
                if streamed:
                    async with agent.stream("go", client=used) as stream:
                        async for _ in stream:
                            pass
                else:
                    await agent.run("go", client=used)

            task = asyncio.create_task(go())
            await transport.asked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(run())


@pytest.mark.parametrize("state", ["tool", "confirm"])
def test_a_task_that_is_cancelled_while_calls_run_adds_a_result_for_each(state: str) -> None:
    running = asyncio.Event()

    @tool(side_effects="none")
    async def hang() -> str:
        """Hang."""
        running.set()
        await asyncio.sleep(60)
        return "late"

    async def confirm(_question: Any) -> bool:
        running.set()
        await asyncio.sleep(60)
        return True

    parts = [call("look"), call("hang" if state == "tool" else "change"), call("change")]
    theatre = Theatre(Say(parts=parts), "Never said.")
    kept: list[Any] = []

    async def run() -> None:
        async with async_client(theatre) as used:

            async def go() -> None:
                async with Agent(MODEL, tools=[look, hang, change], confirm=confirm).stream(
                    "go", client=used
                ) as stream:
                    try:
                        async for _ in stream:
                            pass
                    finally:
                        kept.append(stream)

            task = asyncio.create_task(go())
            await running.wait()
            await asyncio.sleep(0.2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(run())
    messages = kept[0].messages
    valid(messages)
    texts = [result.content[0].text for message in messages for result in message.tool_results]
    assert texts == ["seen", *["cancelled before it was finished"] * 2]


def test_a_loop_that_is_cancelled_between_two_answers_asks_no_more() -> None:
    """Whole answers: there is no stream to cut, so the next request must not begin."""
    theatre = Theatre(Say(parts=[call("look")]), "Never said.")
    stops: list[Any] = []

    def listen(event: Any) -> None:
        if isinstance(event, ev.TurnEnd):
            loop.cancel()

    loop = AgentLoop([look], on_stop=stops.append, listen=listen)
    messages = [il.user("go")]

    async def run() -> None:
        async with async_client(theatre) as used:
            await loop.run_async(AsyncMemoryTurn(used, messages, model=MODEL))

    asyncio.run(run())
    assert len(theatre.asked) == 1
    assert stops[0].cause is StopCause.CANCELLED
    valid(messages)


def test_a_stream_is_cancelled_from_another_thread_while_a_tool_runs() -> None:
    began = threading.Event()

    @tool(side_effects="none")
    def hang(context: ToolContext) -> str:
        """Hang."""
        began.set()
        context.wait(30)
        return "late"

    theatre = Theatre(Say(parts=[call("hang")]), "Never said.")
    with client(theatre) as used, Agent(MODEL, tools=[hang]).stream_sync("go", client=used) as stream:
        thread = threading.Thread(target=lambda: (began.wait(30), stream.cancel()))
        thread.start()
        run = stream.result
        thread.join()

    assert run.stop.cause is StopCause.CANCELLED
    valid(run.messages)
