"""Typed answers of agents: beside tools, with corrections, at limits, streamed; every way the model can be asked.

Expectations are docs/agents/README.md; the model is a script.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import attrs
import pytest

import interlingua as il
import interlingua.output
from interlingua.testing import MemoryTransport
from interlingua_agents import DEFER, Agent, StopCause, messages_of, tool
from tests.agents.scripted import CAPABLE, MODEL, Say, Script, Theatre, call, playing, registry
from tests.agents.test_agents import async_client, valid

NATIVE = attrs.evolve(
    CAPABLE, supports_structured_output=True, structured_output_with_tools=True, structured_output_streams=True,
    structured_in_prompt=True,
)  # fmt: skip
FORCED = attrs.evolve(CAPABLE, supports_tool_choice=True, supports_named_tool_choice=True)
NOTHING = attrs.evolve(CAPABLE, supports_tools=False, supports_parallel_tool_calls=False)
CAN = {"native": NATIVE, "tool": FORCED, "prompt": NOTHING}


@attrs.frozen
class Report:
    title: str
    total: int


GOOD = {"title": "Moons", "total": 4}
BAD = {"title": "Moons", "total": "four"}


@tool(side_effects="none")
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(side_effects="none")
def breaks() -> str:
    """Break."""
    raise ValueError("broken")


@tool
def order(what: str) -> str:
    """Order."""
    return what


def said(mode: str, value: Any) -> Any:
    """An answer of this value, as the mode has it: a call, or text."""
    if mode == "tool":
        return call("report", value)
    return str(value).replace("'", '"')


def client(theatre: Theatre, mode: str) -> il.Client:
    transport = MemoryTransport(theatre)
    return il.Client(registry=registry(script=Script(CAN[mode])), transport=transport, retry=0)


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("mode", ["native", "tool", "prompt"])
def test_a_typed_answer_is_read(mode: str, streamed: bool) -> None:
    theatre = Theatre(Say(parts=[said(mode, GOOD)]))
    agent = Agent(MODEL, output=Report)
    with client(theatre, mode) as used:
        if streamed:
            with agent.stream_sync("go", client=used) as stream:
                run = stream.result
        else:
            run = agent.run_sync("go", client=used)

    assert run.value == Report("Moons", 4)
    assert run.stop.cause is StopCause.DONE
    assert len(theatre.asked) == 1
    valid(run.messages)
    expected = ["user", "assistant", "tool"] if mode == "tool" else ["user", "assistant"]
    assert [message.role.value for message in run.messages] == expected


@pytest.mark.parametrize("mode", ["native", "tool"])
def test_tools_are_called_before_the_answer(mode: str) -> None:
    theatre = Theatre(Say(parts=["First.", call("add", {"a": 1, "b": 3})]), Say(parts=[said(mode, GOOD)]), "On.")
    agent = Agent(MODEL, tools=[add], output=Report, instructions="Be short.")
    with client(theatre, mode) as used:
        run = agent.run_sync("go", client=used)
        assert run.value.total == 4
        assert theatre.asked[0]["tools"] == (["add", "report"] if mode == "tool" else ["add"])
        valid(run.messages)
        assert Agent(MODEL).run_sync("and?", history=run.messages, client=used).value == "On."
    asked = theatre.asked[-1]["messages"]
    assert sum(len(one.get("calls", ())) for one in asked) == sum(len(one.get("results", ())) for one in asked)


def test_an_answer_beside_calls_is_taken_after_they_ran() -> None:
    theatre = Theatre(Say(parts=[call("report", GOOD), call("add", {"a": 1, "b": 3})]))
    with client(theatre, "tool") as used:
        run = Agent(MODEL, tools=[add], output=Report).run_sync("go", client=used)

    assert run.value == Report("Moons", 4)
    results = {result.tool_name: result.content[0].text for one in run.messages for result in one.tool_results}  # type: ignore[union-attr]
    assert results["add"] == "4"
    assert set(results) == {"add", "report"}
    valid(run.messages)


def test_an_answer_beside_a_call_that_failed_is_not_taken() -> None:
    theatre = Theatre(Say(parts=[call("report", BAD), call("breaks")]), Say(parts=[call("report", GOOD)]))
    with client(theatre, "tool") as used:
        run = Agent(MODEL, tools=[breaks], output=Report, output_retries=0).run_sync("go", client=used)

    assert run.value == Report("Moons", 4)
    assert [failed for _, failed in theatre.results] == [True, True]
    assert "not accepted" in theatre.results[0][0]
    assert "broken" in theatre.results[1][0]
    valid(run.messages)


def test_an_answer_beside_a_call_that_waits_is_not_taken() -> None:
    theatre = Theatre(Say(parts=[call("report", GOOD), call("order", {"what": "tea"})]))
    with client(theatre, "tool") as used:
        run = Agent(MODEL, tools=[order], output=Report, confirm=DEFER).run_sync("go", client=used)

    assert run.stop.cause is StopCause.APPROVAL
    assert [one.name for one in run.pending] == ["order"]
    with pytest.raises(il.CallerError, match="approval"):
        _ = run.value


@pytest.mark.parametrize("mode", ["native", "tool", "prompt"])
@pytest.mark.parametrize("asynchronous", [True, False])
def test_an_answer_that_does_not_fit_is_asked_for_again(mode: str, asynchronous: bool) -> None:
    theatre = Theatre(*[Say(parts=[said(mode, value)], tokens=(10, 1)) for value in (BAD, BAD, GOOD)])
    agent = Agent(MODEL, output=Report, output_retries=2)
    if asynchronous:

        async def play() -> Any:
            async with async_client(theatre, Script(CAN[mode])) as used:
                return await agent.run("go", client=used)

        run = asyncio.run(play())
    else:
        with client(theatre, mode) as used:
            run = agent.run_sync("go", client=used)

    assert run.value == Report("Moons", 4)
    assert run.usage.input_tokens == 30
    sizes = [len(asked["messages"]) for asked in theatre.asked]
    assert sizes[1] == sizes[2]  # a correction replaces the last correction
    assert "total" in str(theatre.asked[1]["messages"][-1])
    assert [message.role.value for message in run.messages][:2] == ["user", "assistant"]
    assert len(run.messages) == (3 if mode == "tool" else 2)  # failed attempts are not in the history
    valid(run.messages)


def test_text_instead_of_the_call_counts_as_an_attempt() -> None:
    theatre = Theatre("It is four.", Say(parts=[call("report", GOOD)]))
    with client(theatre, "tool") as used:
        run = Agent(MODEL, tools=[add], output=Report).run_sync("go", client=used)
    assert run.value.total == 4
    assert run.stop.turns == 2


@pytest.mark.parametrize("mode", ["native", "tool"])
def test_without_a_retry_left_it_is_an_error_with_the_attempts(mode: str) -> None:
    theatre = Theatre(*[Say(parts=[said(mode, BAD)]) for _ in range(2)])
    with client(theatre, mode) as used, pytest.raises(interlingua.output.InvalidOutputError) as caught:
        Agent(MODEL, output=Report).run_sync("go", client=used)

    assert len(caught.value.attempts) == 2
    assert "four" not in str(caught.value)
    valid(messages_of(caught.value))


def test_a_truncated_answer_is_not_asked_for_again() -> None:
    theatre = Theatre(Say(parts=[call("report", '{"title": "Mo')], end="max_tokens"))
    with client(theatre, "tool") as used, pytest.raises(interlingua.output.OutputTruncatedError) as caught:
        Agent(MODEL, output=Report, output_retries=3).run_sync("go", client=used)
    assert len(theatre.asked) == 1
    valid(messages_of(caught.value))


def test_at_the_limit_only_the_answer_is_offered() -> None:
    again = Say(parts=[call("add", {"a": 1, "b": 1})])
    theatre = Theatre(again, again, Say(parts=[call("report", GOOD)]))
    with client(theatre, "tool") as used:
        run = Agent(MODEL, tools=[add], output=Report, max_turns=3).run_sync("go", client=used)

    assert run.value.total == 4
    assert [asked["tools"] for asked in theatre.asked] == [["add", "report"], ["add", "report"], ["report"]]
    assert [asked.get("choice") for asked in theatre.asked] == ["required"] * 3


def test_a_run_that_ends_at_its_limit_has_no_output() -> None:
    again = Say(parts=[call("add", {"a": 1, "b": 1})])
    with client(Theatre(again, again), "native") as used:
        run = Agent(MODEL, tools=[add], output=Report, max_turns=2).run_sync("go", client=used)
    assert run.stop.cause is StopCause.TURN_LIMIT
    with pytest.raises(il.CallerError, match="turn_limit"):
        _ = run.value


def test_a_choice_that_the_caller_forces_goes_first() -> None:
    theatre = Theatre(Say(parts=[call("add", {"a": 1, "b": 1})]), Say(parts=[call("report", GOOD)]))
    agent = Agent(MODEL, tools=[add], output=Report, options={"tool_choice": il.ToolChoice("add")})
    with client(theatre, "tool") as used:
        assert agent.run_sync("go", client=used).value.total == 4
    assert [asked.get("choice") for asked in theatre.asked] == ["add", "required"]


@pytest.mark.parametrize("mode", ["native", "tool"])
def test_a_stream_shows_the_answer_as_it_grows(mode: str) -> None:
    theatre = Theatre(Say(parts=[call("add", {"a": 1, "b": 3})]), Say(parts=[said(mode, GOOD)]))
    with (
        client(theatre, mode) as used,
        Agent(MODEL, tools=[add], output=Report).stream_sync("go", client=used) as stream,
    ):
        events = list(stream)

    partials = [event for event in events if event.type == "output_partial"]
    assert partials[-1].value == GOOD
    assert partials[0].value != GOOD
    assert {event.turn for event in partials} == {2}
    assert [event.call.name for event in events if event.type == "tool_start"] == ["add"]
    assert events[-1].result.value == Report("Moons", 4)  # type: ignore[union-attr]


def test_in_a_session_everything_that_was_said_is_stored(tmp_path: Path) -> None:
    theatre = Theatre(Say(parts=[call("report", BAD)]), Say(parts=[call("report", GOOD)]), "On.")
    with playing(theatre, tmp_path / "s.db", script=Script(FORCED)) as session:
        run = Agent(MODEL, output=Report).run_sync("go", session=session)
        assert run.value.total == 4
        assert [row.status.value for row in session.store.tool_calls("s")] == ["failed", "succeeded"]
        assert list(session.store.verify("s")) == []
        assert session.send("and?").text == "On."


@pytest.mark.parametrize(("kind", "value"), [(list[int], [1, 2]), (int, 3)])
def test_types_that_are_no_objects(kind: Any, value: Any) -> None:
    with client(Theatre(Say(parts=[f'{{"value": {value}}}'])), "native") as used:
        assert Agent(MODEL, output=kind).run_sync("go", client=used).value == value


@pytest.mark.parametrize("end", ["leave", "cancel"])
@pytest.mark.parametrize("kind", ["tool_start", "tool_end"])
def test_a_run_that_ends_before_the_answer_is_taken_leaves_no_call_open(kind: str, end: str) -> None:
    theatre = Theatre(Say(parts=[call("report", GOOD), call("add", {"a": 1, "b": 3}), call("add", {"a": 1, "b": 1})]))
    with client(theatre, "tool") as used:
        with Agent(MODEL, tools=[add], output=Report).stream_sync("go", client=used) as stream:
            for event in stream:
                if event.type == kind and end == "leave":
                    break
                if event.type == kind:
                    stream.cancel()
        valid(stream.messages)

    calls = {one.id for message in stream.messages for one in message.tool_calls}
    assert {result.tool_use_id for message in stream.messages for result in message.tool_results} == calls
