"""The calls of one answer: side by side or alone, with consent or without, in time, in order, and not too long.

Expectations are docs/agents/README.md; the model is a script.
"""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import interlingua as il
from interlingua_agents.calls import ToolLimits
from interlingua_agents.tools import (
    CallPhase,
    Confirmation,
    Permission,
    Tool,
    ToolContext,
    by_side_effects,
    tool,
)
from interlingua_sessions.store import ToolCallStatus
from interlingua_sessions.turn import CALL_STATUS
from tests.agents.scripted import Say, Theatre, call
from tests.agents.ways import WAYS, play


@tool(side_effects="none")
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def sleepers(*seconds: float, log: list[str]) -> Tool:
    @tool(side_effects="none")
    async def nap(place: int) -> str:
        """Sleep."""
        await asyncio.sleep(seconds[place])
        log.append(f"done {place}")
        return f"nap {place}"

    return nap


@pytest.mark.parametrize("way", WAYS)
def test_case_09_results_are_stored_in_call_order_however_they_end(tmp_path: Path, way: str) -> None:
    log: list[str] = []
    nap = sleepers(0.2, 0.1, 0.0, log=log)
    theatre = Theatre(Say(parts=[call("nap", {"place": at}) for at in range(3)]), "Well slept.")
    played = play(way, theatre, tmp_path, [nap])
    calls = played.messages[1].tool_calls

    assert log == ["done 2", "done 1", "done 0"]
    assert [one.tool_use_id for one in played.results] == [one.id for one in calls]
    assert [text for text, _ in theatre.results] == ["nap 0", "nap 1", "nap 2"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("blocking", [True, False])
def test_calls_that_only_look_run_side_by_side_up_to_the_limit(tmp_path: Path, blocking: bool, way: str) -> None:
    """Each call waits for two others: with fewer at once none would end, with more the fourth would be seen."""
    running = 0
    most: list[int] = []
    lock = threading.Lock()
    threads, tasks = threading.Barrier(3, timeout=30), asyncio.Barrier(3)

    def count(step: int) -> None:
        nonlocal running
        with lock:
            running += step
            most.append(running)

    if blocking:

        @tool(side_effects="read")
        def look() -> str:
            """Look."""
            count(1)
            threads.wait()
            count(-1)
            return "seen"
    else:

        @tool(side_effects="read")
        async def look() -> str:
            """Look."""
            count(1)
            await asyncio.wait_for(tasks.wait(), 30)
            count(-1)
            return "seen"

    theatre = Theatre(Say(parts=[call("look")] * 6), "Done.")
    play(way, theatre, tmp_path, [look], limits=ToolLimits(side_by_side=3))

    assert max(most) == 3
    assert theatre.results == [("seen", False)] * 6


@pytest.mark.parametrize("way", WAYS)
def test_what_changes_something_runs_alone_and_in_its_place(tmp_path: Path, way: str) -> None:
    log: list[str] = []

    @tool(side_effects="read")
    async def read(name: str) -> str:
        """Read."""
        log.append(f"read {name} begins")
        await asyncio.sleep(0.02)
        log.append(f"read {name} ends")
        return name

    @tool(side_effects="write")
    def write(name: str) -> str:
        """Write."""
        log.append(f"write {name}")
        return name

    calls = [call("read", {"name": "a"}), call("read", {"name": "b"}), call("write", {"name": "c"})]
    theatre = Theatre(Say(parts=[*calls, call("read", {"name": "d"})]), "Done.")
    play(way, theatre, tmp_path, [read, write], confirm=lambda _: True)

    assert log[:2] == ["read a begins", "read b begins"]
    assert log[4:] == ["write c", "read d begins", "read d ends"]


@pytest.mark.parametrize("way", WAYS)
def test_consent_is_asked_for_by_side_effects_one_question_at_a_time(tmp_path: Path, way: str) -> None:
    ran: list[str] = []
    asked: list[Confirmation] = []

    def make(name: str, effects: str) -> Tool:
        def work(n: int) -> str:
            ran.append(f"{name} {n}")
            return "ok"

        return tool(side_effects=effects, name=name, description="")(work)

    tools = [make(f"do_{effects}", effects) for effects in ("none", "read", "write", "execute", "network")]
    theatre = Theatre(Say(parts=[call(one.name, {"n": 1}) for one in tools]), "Done.")

    def confirm(question: Confirmation) -> bool:
        assert threading.current_thread() is threading.main_thread()
        asked.append(question)
        return question.tool.side_effects is not il.SideEffects.EXECUTE

    played = play(way, theatre, tmp_path, tools, confirm=confirm)

    assert [one.tool.name for one in asked] == ["do_write", "do_execute", "do_network"]
    assert asked[0].text == 'Run do_write (writes files) with {"n": 1}?'
    assert set(ran) == {"do_none 1", "do_read 1", "do_write 1", "do_network 1"}
    assert theatre.results[3] == ("do_execute was not run: the user said no", True)
    if played.rows is not None:
        rows = {row.name: row for row in played.rows}
        assert (rows["do_execute"].status, rows["do_execute"].started_at) == (ToolCallStatus.CANCELLED, None)
        assert rows["do_write"].status is ToolCallStatus.SUCCEEDED


@pytest.mark.parametrize("way", WAYS)
def test_without_anybody_to_ask_and_by_policy_nothing_is_changed(tmp_path: Path, way: str) -> None:
    @tool(side_effects="write")
    def write() -> str:
        """Write."""
        return "written"

    def last(**more: Any) -> tuple[str, bool]:
        theatre = Theatre(Say(parts=[call("write")]), "Done.")
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        play(way, theatre, folder, [write], **more)
        return theatre.results[0]

    assert last() == ("write was not run: it needs a person's consent, and no person can be asked", True)
    denied = by_side_effects({il.SideEffects.WRITE: Permission.DENY})
    assert last(policy=denied, confirm=lambda _: True) == ("write was not run: it is not permitted here", True)
    assert last(policy=by_side_effects(tools={"write": Permission.ALLOW})) == ("written", False)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("blocking", [True, False])
def test_a_call_that_takes_too_long_is_given_up(tmp_path: Path, blocking: bool, way: str) -> None:
    told = threading.Event()

    if blocking:

        @tool(side_effects="none")
        def hang(context: ToolContext) -> str:
            """Hang."""
            if context.wait(30):
                told.set()
            return "late"
    else:

        @tool(side_effects="none")
        async def hang() -> str:
            """Hang."""
            try:
                await asyncio.sleep(30)
            finally:
                told.set()
            return "late"

    theatre = Theatre(Say(parts=[call("hang"), call("add", {"a": 1, "b": 1})]), "Done.")
    began = time.monotonic()
    played = play(way, theatre, tmp_path, [hang, add], limits=ToolLimits(timeout=0.5))

    assert time.monotonic() - began < 15
    assert theatre.results == [("hang took longer than 0.5 s and was cancelled", True), ("2", False)]
    assert played.statuses() == ["failed", "succeeded"]
    assert told.wait(5)  # the tool was told that its result is no longer needed


@pytest.mark.parametrize("way", WAYS)
def test_a_tools_own_timeout_goes_before_the_loops(tmp_path: Path, way: str) -> None:
    @tool(side_effects="none", timeout=0.05)
    async def slow() -> str:
        """Sleep."""
        await asyncio.sleep(30)
        return ""

    @tool(side_effects="none")
    def own_timeout() -> str:
        """Raise the same error as a timeout would."""
        raise TimeoutError("the server did not answer")

    theatre = Theatre(Say(parts=[call("slow"), call("own_timeout")]), "Done.")
    play(way, theatre, tmp_path, [slow, own_timeout], limits=ToolLimits(timeout=None))

    assert theatre.results == [
        ("slow took longer than 0.05 s and was cancelled", True),
        ("TimeoutError: the server did not answer", True),
    ]


@pytest.mark.parametrize("way", WAYS)
def test_a_large_result_is_cut_with_a_note_and_kept_whole(tmp_path: Path, way: str) -> None:
    whole = "".join(f"line {at}\n" for at in range(1_000))

    @tool(side_effects="read", result_limit=200)
    def read() -> str:
        """Read."""
        return whole

    theatre = Theatre(Say(parts=[call("read")]), "Long.")
    played = play(way, theatre, tmp_path, [read])
    stored = played.messages[2].tool_results[0]
    kept = played.kept[stored.tool_use_id]

    ((text, is_error),) = theatre.results
    assert not is_error
    assert text == stored.content[0].text  # type: ignore[union-attr]
    head, note, tail = text.partition("\n[… ")[0], text[160:].partition("]\n")[0], text[-40:]
    assert head == whole[:160]
    assert f"{len(whole) - 200} of {len(whole)} characters left out" in note
    assert tail == whole[-40:]
    assert kept.content == (il.TextBlock(text=whole),)
    assert kept.tool_use_id == stored.tool_use_id


def test_the_words_of_both_life_cycles() -> None:
    """The phases of a call in the store's words; what was given up is neither a success nor a failure."""
    assert {phase.value: CALL_STATUS[phase].value for phase in CallPhase} == {
        "pending": "pending",
        "running": "pending",
        "completed": "succeeded",
        "failed": "failed",
        "cancelled": "cancelled",
    }


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("workspace", ["", "/data/moons"])
def test_a_tool_that_requires_a_workspace_runs_in_one_only(tmp_path: Path, workspace: str, way: str) -> None:
    ran: list[str] = []

    @tool(side_effects="none", requires_workspace=True)
    def look(context: ToolContext) -> str:
        """Look around."""
        ran.append(context.workspace)
        return "seen"

    theatre = Theatre(Say(parts=[call("look")]), "Done.")
    play(way, theatre, tmp_path, [look], workspace=workspace)

    if workspace:
        assert (ran, theatre.results) == ([workspace], [("seen", False)])
    else:
        why = "look was not run: it requires a workspace, and this conversation has none"
        assert (ran, theatre.results) == ([], [(why, True)])


def test_a_definition_requires_a_workspace_unless_it_says_otherwise_and_a_function_does_not() -> None:
    definition = il.ToolDefinition(name="x", description="", input_schema={"type": "object"}, side_effects="none")

    @tool
    def add(a: int) -> int:
        """Add."""
        return a

    assert definition.requires_workspace is True
    assert add.definition.requires_workspace is False
