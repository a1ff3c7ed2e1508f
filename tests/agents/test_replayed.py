"""The tool loop over recorded exchanges of two wires, with a swap in between and back.

The cassette refuses a request that differs from the recorded request in more than new ids. So the request that the loop
sends after a tool is compared with one that a real server received.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import interlingua as il
from interlingua.testing import MemoryReply, MemoryTransport
from interlingua_agents.agent import Agent
from interlingua_agents.events import RunEvent, ToolEnd
from interlingua_agents.loop import AgentLoop
from interlingua_agents.results import RunStop, StopCause
from interlingua_agents.tools import ToolError, tool_of
from interlingua_cli.demo.replay import RecordedAnswers
from interlingua_cli.demo.session import FILES, READ_FILE, recorded_scenario
from interlingua_sessions import open_store
from interlingua_sessions.session import Session
from tests.support.cassettes import load_exchanges
from tests.tools.record.wires import LOCAL, WIRES


def read_file(path: str) -> str:
    if path not in FILES:
        raise ToolError(f"no file {path!r}")
    return FILES[path]


@pytest.mark.parametrize("by_agent", [False, True])
def test_the_recorded_session_plays_through_the_loop(tmp_path: Path, by_agent: bool) -> None:
    cast = recorded_scenario()
    assert cast.cassette is not None
    keys = {key: {**settings, "api_key": "k"} for key, settings in cast.settings.items()}
    transport = MemoryTransport(RecordedAnswers(cast.cassette))
    stops: list[RunStop] = []
    loop = AgentLoop([tool_of(READ_FILE, read_file)], on_stop=stops.append)
    with (
        il.Client(transport=transport, environ={}, retry=0, settings=keys) as client,
        open_store(tmp_path / "s.db") as store,
    ):
        session = Session.open(store, "s", client=client, workspace=str(tmp_path), options=cast.options)
        for turn in cast.turns:
            hint = il.CacheHint() if turn is cast.turns[0] else None
            question = [il.TextBlock(text=turn.text, cache=hint)]
            session.switch(cast.models[turn.model])
            if by_agent:
                run = Agent(tools=[tool_of(READ_FILE, read_file)]).run_sync(question, session=session)
                stops.append(run.stop)
            else:
                session.send(question, tools=loop)

        calls = store.tool_calls("s")
        read = [message.tool_results[0] for message in session.messages if message.role is il.Role.TOOL]
        findings = [finding for finding in store.verify("s") if not finding.repairable]

    assert [stopped.cause for stopped in stops] == [StopCause.DONE] * 3
    assert [(call.name, call.status.value) for call in calls] == [("read_file", "succeeded")] * 2
    assert {call.provider for call in calls} == {model.partition(":")[0] for model in cast.models}
    assert [result.content for result in read] == [
        (il.TextBlock(text=FILES["README.md"]),),
        (il.TextBlock(text=FILES["LICENSE"]),),
    ]
    assert findings == []


def test_a_recorded_stream_with_a_call_is_told_and_run(tmp_path: Path) -> None:
    """A stream recorded from a server, the loop stopping behind its results: there is no second recorded answer."""
    wire = WIRES["messages"]
    (exchange,) = load_exchanges(wire.cassette("stream_parallel_calls"))
    transport = MemoryTransport(lambda _: MemoryReply(exchange.body, status=exchange.status, headers=exchange.headers))
    told: list[RunEvent] = []
    asked: list[str] = []

    def answer(**given: object) -> str:
        asked.append(str(given))
        return "found"

    names = {declared["name"]: declared for declared in exchange.request["tools"]}
    tools = [
        tool_of(
            il.ToolDefinition(
                name=name,
                description=declared.get("description", ""),
                input_schema=declared["input_schema"],
                side_effects=il.SideEffects.READ,
            ),
            answer,
        )
        for name, declared in names.items()
    ]
    client = il.Client(
        f"anthropic:{LOCAL.model}", transport=transport, retry=0, settings=wire.settings("http://recorded")
    )
    with client, open_store(tmp_path / "s.db") as store:
        session = Session.open(store, "s", client=client, workspace=str(tmp_path))
        session.send("go", tools=AgentLoop(tools, listen=told.append, max_turns=1))

        calls = session.messages[1].tool_calls
    ended = [event.call.id for event in told if isinstance(event, ToolEnd)]
    assert len(calls) >= 2
    assert len(asked) == len(calls)
    assert sorted(ended) == sorted(call.id for call in calls)
