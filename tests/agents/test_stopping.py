"""How a run ends: limits, cancellation, Ctrl-C, a dead process; and that no call stays open.

Expectations are docs/agents/README.md; the model is a script.
"""

from __future__ import annotations

import asyncio
import json
import signal
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

import interlingua as il
from interlingua_agents import Agent, RunStream
from interlingua_agents.events import RunEvent, ToolEnd
from interlingua_agents.loop import AgentLoop
from interlingua_agents.results import RunStop, StopCause
from interlingua_agents.tools import ToolContext, tool
from interlingua_sessions import open_store
from interlingua_sessions.session import Session
from tests.agents.scripted import MODEL, Say, Theatre, call, playing, playing_async, registry
from tests.agents.ways import STOPPABLE, WAYS, calls_at_end, play


@tool(side_effects="none")
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def roles(session: Session) -> list[str]:
    return [message.role.value for message in session.messages]


@pytest.mark.parametrize("way", WAYS)
def test_the_loop_stops_at_its_turn_limit_with_every_call_answered(tmp_path: Path, way: str) -> None:
    again = Say(parts=[call("add", {"a": 1, "b": 1})])
    theatre = Theatre(*[again] * 5)
    played = play(way, theatre, tmp_path, [add], max_turns=3)

    assert played.stopped is not None
    assert calls_at_end(played) == []
    assert played.roles == ["user", *["assistant", "tool"] * 3]
    assert (played.stopped.cause, played.stopped.turns, len(theatre.asked)) == (StopCause.TURN_LIMIT, 3, 3)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("model", "turns"), [("script:dear", 2), ("script:unpriced", 1)])
def test_the_loop_stops_on_a_budget_and_on_a_price_nobody_knows(
    tmp_path: Path, model: str, turns: int, way: str
) -> None:
    again = Say(parts=[call("add", {"a": 1, "b": 1})], tokens=(1_000, 100))  # 0.10 + 0.10 USD at the dear model
    played = play(way, Theatre(*[again] * 5), tmp_path, [add], model=model, budget_usd="0.35")

    spent = Decimal("0.4") if model == "script:dear" else Decimal(0)
    stopped = played.stopped
    assert stopped is not None
    assert (stopped.cause, stopped.turns, stopped.spent_usd) == (StopCause.BUDGET, turns, spent)


def once_added(then: Callable[[], object]) -> Callable[[RunEvent], None]:
    """A listener that acts when the adding is done, however busy the machine is."""

    def listen(event: RunEvent) -> None:
        if isinstance(event, ToolEnd) and event.call.name == "add":
            then()

    return listen


@pytest.mark.parametrize("way", STOPPABLE)
@pytest.mark.parametrize("blocking", [True, False])
def test_case_07_a_cancelled_run_answers_every_call(tmp_path: Path, blocking: bool, way: str) -> None:
    if blocking:

        @tool(side_effects="none")
        def hang(context: ToolContext) -> str:
            """Hang."""
            context.wait(30)
            return "late"
    else:

        @tool(side_effects="none")
        async def hang() -> str:
            """Hang."""
            await asyncio.sleep(30)
            return "late"

    @tool(side_effects="execute")
    def change() -> str:
        """Never reached."""
        raise AssertionError

    parts = [call("add", {"a": 1, "b": 1}), call("hang"), call("change")]
    theatre = Theatre(Say(parts=parts), "Never said.")
    played = play(way, theatre, tmp_path, [add, hang, change], confirm=lambda _: True, cancel_after="add")
    said = [result.content[0].text for result in played.results]  # type: ignore[union-attr]

    assert played.stopped is not None
    assert played.stopped.cause is StopCause.CANCELLED
    assert len(theatre.asked) == 1
    assert said == ["2", *["cancelled before it was finished"] * 2]
    if played.rows is not None:
        statuses = {row.name: row.status for row in played.rows}
        assert statuses == {"add": "succeeded", "hang": "cancelled", "change": "cancelled"}
        assert played.findings == []


@pytest.mark.usefixtures("hears_ctrl_c")
@pytest.mark.parametrize("way", ["session listening", "session stream", "agent stream", "agent stream in session"])
def test_ctrl_c_while_tools_run_keeps_what_they_did(tmp_path: Path, way: str) -> None:
    @tool(side_effects="none")
    def interrupt(context: ToolContext) -> str:
        """As a person would."""
        added.wait(30)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        context.wait(30)
        return "late"

    def on_event(event: Any, _cancel: Callable[[], None]) -> None:
        if event.type == "tool_end":
            added.set()

    added = threading.Event()
    theatre = Theatre(Say(parts=[call("add", {"a": 1, "b": 1}), call("interrupt")]), "Never said.")
    played = play(way, theatre, tmp_path, [add, interrupt], on_event=on_event)

    assert isinstance(played.error, KeyboardInterrupt)
    assert played.statuses()[0] == "succeeded"
    assert played.statuses()[1] in ("cancelled", "failed")  # the store's word, or that of the result
    assert played.roles == ["user", "assistant", "tool", "tool"]


@pytest.mark.parametrize("way", [way for way in WAYS if "session" in way])
def test_calls_left_by_a_dead_process_are_taken_up_but_no_change_is_made_twice(tmp_path: Path, way: str) -> None:
    changes: list[str] = []

    @tool(side_effects="write")
    def change(what: str) -> str:
        """Change."""
        changes.append(what)
        return what

    parts = [call("add", {"a": 1, "b": 1}), call("change", {"what": "began"}), call("change", {"what": "waited"})]
    theatre = Theatre(Say(parts=parts), "Back.")
    with playing(theatre, tmp_path / "s.db") as session:
        asked = session.send("go", tools=AgentLoop([add, change]).definitions)
        for one in asked.tool_calls[:2]:
            session.store.update_tool_call(one.id, started_at=asked.created_at)  # and then the process died

    played = play(way, theatre, tmp_path, [add, change], text=None, confirm=lambda _: True)

    assert played.answer.text == "Back."
    assert changes == ["waited"]
    results = {one["text"] for message in theatre.asked[1]["messages"] for one in message.get("results", [])}
    assert results == {"2", "waited", "interrupted while it ran; whether it took effect is unknown"}
    with open_store(tmp_path / "s.db") as store:
        assert store.unanswered_tool_calls("s") == []


def test_a_cancelled_task_answers_every_call_before_it_ends(tmp_path: Path) -> None:
    @tool(side_effects="none")
    async def hang() -> str:
        """Hang."""
        await asyncio.sleep(30)
        return "late"

    theatre = Theatre(Say(parts=[call("add", {"a": 1, "b": 1}), call("hang")]), "Never said.")

    async def play() -> list[str]:
        async with playing_async(theatre, tmp_path / "s.db") as session:
            loop = AgentLoop([add, hang], listen=once_added(lambda: task.cancel()))  # noqa: PLW0108  it is made below
            task = asyncio.create_task(session.send("go", tools=loop))
            with pytest.raises(asyncio.CancelledError):
                await task
            return [row.status.value for row in session.store.tool_calls("s")]

    assert asyncio.run(play()) == ["succeeded", "cancelled"]


@pytest.mark.parametrize("way", ["session listening", "session stream", "agent stream in session", "agent stream"])
def test_case_35_a_run_cancelled_in_mid_answer_keeps_the_text_and_goes_on_later(tmp_path: Path, way: str) -> None:
    class Slow(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            yield b'data: {"at": 0, "text": "I was about to"}\n\n'
            yield b'data: {"at": 1, "name": "add", "id": "c1"}\n\n'
            yield b'data: {"at": 1, "json": "{\\"a\\": 1"}\n\n'
            while True:
                yield b'data: {"at": 1, "json": " "}\n\n'

    bodies: list[Any] = []

    def handle(request: httpx.Request) -> httpx.Response:
        bodies.append(json.loads(request.read()))
        if len(bodies) == 1:
            return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=Slow())
        return httpx.Response(200, json={"parts": [["text", "Back."]], "end": "end_turn", "in": 1, "out": 1})

    def listen(event: RunEvent) -> None:
        if event.type == "toolcall_delta":
            loop.cancel()

    def cancel_at_text(stream: RunStream[str]) -> None:
        with stream:
            for event in stream:
                if event.type == "text_delta":
                    stream.cancel()

    stops: list[RunStop] = []
    loop = AgentLoop([add], listen=listen if way == "session listening" else None, on_stop=stops.append)
    agent = Agent(MODEL, tools=[add])
    http = httpx.Client(transport=httpx.MockTransport(handle))
    client = il.Client(MODEL, registry=registry(), http_client=http, retry=0)
    with client, open_store(tmp_path / "s.db") as store:
        session = Session.open(store, "s", client=client)
        if way == "session listening":
            session.send("go", tools=loop)
        elif way == "session stream":
            cancel_at_text(session.stream("go", tools=loop))
        elif way == "agent stream in session":
            cancel_at_text(stream := agent.stream_sync("go", session=session))
            stops.append(stream.result.stop)
        else:
            cancel_at_text(stream := agent.stream_sync("go", client=client))
            stops.append(stream.result.stop)
            for message in stream.messages:
                session.add(message)
        cut = session.messages[1]
        assert (cut.metadata.status, cut.text) == (il.MessageStatus.CANCELLED, "I was about to")
        assert stops[0].cause is StopCause.CANCELLED
        assert store.unanswered_tool_calls("s") == []

        assert session.send("go on").text == "Back."
    sent = bodies[-1]["messages"]
    assert sent == [{"role": "user", "text": "go"}, {"role": "assistant", "text": "I was about to"}, sent[2]]
