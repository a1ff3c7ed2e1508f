"""The loop with a real session and store under it: what the model sees, what is stored, and when it stops.

Expectations are the issue's sentences, seed 003 §9 and seed 004 §6; the model is a script. pytest comes in.
"""

from __future__ import annotations

import asyncio
import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

import interlingua as il
from interlingua_sessions import open_store
from interlingua_sessions.events import AgentEvent, MessageUpdate
from interlingua_sessions.session import Session
from interlingua_sessions.store import ToolCallStatus
from interlingua_sessions.tools import (
    AgentLoop,
    Confirmation,
    Limits,
    Permission,
    StopCause,
    Stopped,
    Tool,
    Toolbox,
    ToolContext,
    ToolFailure,
    ToolOutput,
    by_side_effects,
    tool,
)
from tests.sessions.tools.scripted import MODEL, Say, Theatre, call, playing, playing_async, registry


@tool(side_effects="none")
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(side_effects="read")
def fail(why: str) -> str:
    """Fail in the words given."""
    raise ToolFailure(why)


def roles(session: Session) -> list[str]:
    return [message.role.value for message in session.messages]


def test_a_call_is_run_stored_and_answered(tmp_path: Path) -> None:
    theatre = Theatre(Say(parts=["I add.", call("add", {"a": 2, "b": 3})]), "It is 5.")
    with playing(theatre, tmp_path / "s.db") as session:
        answer = session.send("2 + 3?", tools=AgentLoop([add]))
        (row,) = session.store.tool_calls("s")

        assert answer.text_content() == "It is 5."
        assert roles(session) == ["user", "assistant", "tool", "assistant"]
        assert [message.id for message in session.store.messages("s")] == sorted(one.id for one in session.messages)
        assert theatre.asked[1]["messages"][-1] == {"role": "tool", "results": [{"error": False, "text": "5"}]}
        assert theatre.asked[0]["tools"] == ["add"]
        # seed 003 §9's words for seed 004 §6's life cycle, with its start and end
        assert (row.status, row.provider_id, row.result_message_id) == ("succeeded", "c1", session.messages[2].id)
        assert row.started_at is not None
        assert row.completed_at is not None
        assert row.created_at <= row.started_at <= row.completed_at
        assert list(session.store.verify("s")) == []


def test_a_toolbox_alone_is_run_with_the_usual_settings(tmp_path: Path) -> None:
    theatre = Theatre(
        Say(parts=[call("add", {"a": 2, "b": 3})]), "5.", Say(parts=[call("add", {"a": 1, "b": 1})]), "2."
    )
    with playing(theatre, tmp_path / "s.db") as session:
        assert session.send("2 + 3?", tools=Toolbox([add])).text_content() == "5."

    async def play() -> str:
        async with playing_async(theatre, tmp_path / "s.db") as again:
            return (await again.send("1 + 1?", tools=Toolbox([add]))).text_content()

    assert asyncio.run(play()) == "2."


def test_a_failed_calls_error_goes_to_the_model_and_into_the_store(tmp_path: Path) -> None:
    @tool(side_effects="none")
    def divide(a: int, b: int) -> float:
        """Divide."""
        return a / b

    theatre = Theatre(Say(parts=[call("fail", {"why": "no such file"}), call("divide", {"a": 1, "b": 0})]), "Sorry.")
    with playing(theatre, tmp_path / "s.db") as session:
        session.send("go", tools=AgentLoop([fail, divide]))
        rows = session.store.failed_tool_calls("s")

    assert theatre.results == [("no such file", True), ("ZeroDivisionError: division by zero", True)]
    assert [(row.name, row.status, row.error) for row in rows] == [
        ("fail", "failed", "no such file"),
        ("divide", "failed", "ZeroDivisionError: division by zero"),
    ]


@pytest.mark.parametrize(
    ("arguments", "said", "path"),
    [
        ({"a": "two", "b": 3}, "/a: 'two' is not of type 'integer'", "/a"),
        ({"a": 2}, "'b' is a required property", ""),
        ('{"a": 2, "b":', "arguments are not JSON", ""),
    ],
)
def test_case_14_invalid_input_is_answered_to_the_model_and_observed_once(
    tmp_path: Path, arguments: Any, said: str, path: str
) -> None:
    seen: list[dict[str, Any]] = []

    class Watching:
        @il.hookimpl
        def observe(self, event: dict[str, Any]) -> None:
            seen.append(event)

    theatre = Theatre(Say(parts=[call("add", arguments)]), "I see.")
    with playing(theatre, tmp_path / "s.db", plugins=[Watching()]) as session:
        session.send("go", tools=AgentLoop([add]))
        (row,) = session.store.tool_calls("s")

    ((text, is_error),) = theatre.results
    assert is_error
    assert text.startswith("invalid input: ")
    assert said in text
    assert [event["path"] for event in seen if event["type"] == "tool_input_invalid"] == [path]
    assert (row.status, row.started_at) == ("failed", None)  # it never ran


def test_an_input_that_only_the_functions_types_refuse_is_observed_too(tmp_path: Path) -> None:
    from typing import Annotated

    import msgspec

    seen: list[dict[str, Any]] = []

    class Watching:
        @il.hookimpl
        def observe(self, event: dict[str, Any]) -> None:
            seen.append(event)

    def pick(number: int) -> int:
        """Pick."""
        return number

    pick.__annotations__["number"] = Annotated[int, msgspec.Meta(ge=1)]  # the subset has no bounds: words only
    theatre = Theatre(Say(parts=[call("pick", {"number": 0})]), "I see.")
    with playing(theatre, tmp_path / "s.db", plugins=[Watching()]) as session:
        session.send("go", tools=AgentLoop([tool(side_effects="none")(pick)]))
        asked = session.messages[1]

    assert theatre.results == [("invalid input: Expected `int` >= 1 - at `$.number`", True)]
    (event,) = [event for event in seen if event["type"] == "tool_input_invalid"]
    assert (event["tool"], event["message_id"], event["session_id"]) == ("pick", asked.id, "s")
    assert event["tool_use_id"] == asked.tool_calls()[0].id


def test_an_invented_tool_is_answered_with_the_names_there_are(tmp_path: Path) -> None:
    theatre = Theatre(Say(parts=[call("subtract", {})]), "Oh.")
    with playing(theatre, tmp_path / "s.db") as session:
        session.send("go", tools=AgentLoop([add, fail]))

    assert theatre.results == [("there is no tool 'subtract'; the tools are: add, fail", True)]


def sleepers(*seconds: float, log: list[str]) -> Tool:
    @tool(side_effects="none")
    async def nap(place: int) -> str:
        """Sleep."""
        await asyncio.sleep(seconds[place])
        log.append(f"done {place}")
        return f"nap {place}"

    return nap


def test_case_09_results_are_stored_in_call_order_however_they_end(tmp_path: Path) -> None:
    log: list[str] = []
    nap = sleepers(0.2, 0.1, 0.0, log=log)
    theatre = Theatre(Say(parts=[call("nap", {"place": at}) for at in range(3)]), "Well slept.")
    with playing(theatre, tmp_path / "s.db") as session:
        session.send("go", tools=AgentLoop([nap]))
        results = [message.tool_results()[0] for message in session.messages if message.role is il.Role.TOOL]
        calls = session.messages[1].tool_calls()

    assert log == ["done 2", "done 1", "done 0"]
    assert [one.tool_use_id for one in results] == [one.id for one in calls]
    assert [text for text, _ in theatre.results] == ["nap 0", "nap 1", "nap 2"]


@pytest.mark.parametrize("blocking", [True, False])
def test_calls_that_only_look_run_side_by_side_up_to_the_limit(tmp_path: Path, blocking: bool) -> None:
    running, most = 0, 0
    lock = threading.Lock()

    def enter(step: int) -> None:
        nonlocal running, most
        with lock:
            running += step
            most = max(most, running)

    if blocking:

        @tool(side_effects="read")
        def look() -> str:
            """Look."""
            enter(1)
            time.sleep(0.05)
            enter(-1)
            return "seen"
    else:

        @tool(side_effects="read")
        async def look() -> str:
            """Look."""
            enter(1)
            await asyncio.sleep(0.05)
            enter(-1)
            return "seen"

    theatre = Theatre(Say(parts=[call("look")] * 6), "Done.")
    with playing(theatre, tmp_path / "s.db") as session:
        session.send("go", tools=AgentLoop([look], limits=Limits(side_by_side=3)))

    assert most == 3
    assert theatre.results == [("seen", False)] * 6


def test_what_changes_something_runs_alone_and_in_its_place(tmp_path: Path) -> None:
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
    with playing(theatre, tmp_path / "s.db") as session:
        session.send("go", tools=AgentLoop([read, write], confirm=lambda _: True))

    assert log[:2] == ["read a begins", "read b begins"]
    assert log[4:] == ["write c", "read d begins", "read d ends"]


def test_consent_is_asked_for_by_side_effects_one_question_at_a_time(tmp_path: Path) -> None:
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

    with playing(theatre, tmp_path / "s.db") as session:
        session.send("go", tools=AgentLoop(tools, confirm=confirm))
        rows = {row.name: row for row in session.store.tool_calls("s")}

    assert [one.tool.name for one in asked] == ["do_write", "do_execute", "do_network"]
    assert asked[0].text == 'Run do_write (writes files) with {"n": 1}?'
    assert set(ran) == {"do_none 1", "do_read 1", "do_write 1", "do_network 1"}
    assert theatre.results[3] == ("do_execute was not run: the user said no", True)
    assert (rows["do_execute"].status, rows["do_execute"].started_at) == (ToolCallStatus.CANCELLED, None)
    assert rows["do_write"].status is ToolCallStatus.SUCCEEDED


def test_without_anybody_to_ask_and_by_policy_nothing_is_changed(tmp_path: Path) -> None:
    @tool(side_effects="write")
    def write() -> str:
        """Write."""
        return "written"

    def last(**more: Any) -> tuple[str, bool]:
        theatre = Theatre(Say(parts=[call("write")]), "Done.")
        with playing(theatre, tmp_path / f"{len(list(tmp_path.iterdir()))}.db") as session:
            session.send("go", tools=AgentLoop([write], **more))
        return theatre.results[0]

    assert last() == ("write was not run: it needs a person's consent and nobody can be asked", True)
    denied = by_side_effects({il.SideEffects.WRITE: Permission.DENY})
    assert last(policy=denied, confirm=lambda _: True) == ("write was not run: it is not permitted here", True)
    assert last(policy=by_side_effects(tools={"write": Permission.ALLOW})) == ("written", False)


@pytest.mark.parametrize("blocking", [True, False])
def test_a_call_that_takes_too_long_is_given_up(tmp_path: Path, blocking: bool) -> None:
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
    with playing(theatre, tmp_path / "s.db") as session:
        session.send("go", tools=AgentLoop([hang, add], limits=Limits(timeout=0.1)))
        rows = session.store.tool_calls("s")

    assert time.monotonic() - began < 15
    assert theatre.results == [("hang took longer than 0.1 s and was given up", True), ("2", False)]
    assert [row.status for row in rows] == ["failed", "succeeded"]
    assert told.wait(5)  # the tool was told that nobody waits


def test_a_tools_own_timeout_goes_before_the_loops(tmp_path: Path) -> None:
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
    with playing(theatre, tmp_path / "s.db") as session:
        session.send("go", tools=AgentLoop([slow, own_timeout], limits=Limits(timeout=None)))

    assert theatre.results == [
        ("slow took longer than 0.05 s and was given up", True),
        ("TimeoutError: the server did not answer", True),
    ]


def test_a_large_result_is_cut_with_a_note_and_kept_whole(tmp_path: Path) -> None:
    whole = "".join(f"line {at}\n" for at in range(1_000))

    @tool(side_effects="read", result_limit=200)
    def read() -> str:
        """Read."""
        return whole

    theatre = Theatre(Say(parts=[call("read")]), "Long.")
    with playing(theatre, tmp_path / "s.db") as session:
        session.send("go", tools=AgentLoop([read]))
        stored = session.messages[2].tool_results()[0]
        kept = session.store.kept_result(stored.tool_use_id)

    ((text, is_error),) = theatre.results
    assert not is_error
    assert text == stored.content[0].text  # type: ignore[union-attr]
    head, note, tail = text.partition("\n[… ")[0], text[160:].partition("]\n")[0], text[-40:]
    assert head == whole[:160]
    assert f"{len(whole) - 200} of {len(whole)} characters left out" in note
    assert tail == whole[-40:]
    assert kept is not None
    assert kept.content == (il.TextBlock(text=whole),)
    assert kept.tool_use_id == stored.tool_use_id


@pytest.mark.parametrize("returned", ["terminate", "details"])
def test_outputs_that_say_more_than_content(tmp_path: Path, returned: str) -> None:
    @tool(side_effects="none")
    def work() -> ToolOutput:
        """Work."""
        if returned == "terminate":
            return ToolOutput(content="bye", terminate=True)
        return ToolOutput(content=[1, {"a": None}], details={"path": Path("x")}, metadata={"ms": 3})

    stops: list[Stopped] = []
    theatre = Theatre(Say(parts=["Last words.", call("work")]), "More.")
    with playing(theatre, tmp_path / "s.db") as session:
        answer = session.send("go", tools=AgentLoop([work], on_stop=stops.append))
        result = session.messages[2].tool_results()[0]

    if returned == "terminate":
        assert answer.text_content() == "Last words."
        assert len(theatre.asked) == 1
        assert stops[0].cause is StopCause.TERMINATED
        assert result.terminate
    else:
        assert stops[0].cause is StopCause.DONE
        assert theatre.results == [('[1,{"a":null}]', False)]
        assert (result.details, result.metadata) == ({"path": "x"}, {"ms": 3})


def test_the_loop_stops_at_its_turn_limit_with_every_call_answered(tmp_path: Path) -> None:
    stops: list[Stopped] = []
    again = Say(parts=[call("add", {"a": 1, "b": 1})])
    theatre = Theatre(*[again] * 5)
    with playing(theatre, tmp_path / "s.db") as session:
        session.send("go", tools=AgentLoop([add], max_turns=3, on_stop=stops.append))

        assert session.store.unanswered_tool_calls("s") == []
        assert roles(session) == ["user", *["assistant", "tool"] * 3]
    assert (stops[0].cause, stops[0].turns, len(theatre.asked)) == (StopCause.TURN_LIMIT, 3, 3)


@pytest.mark.parametrize(("model", "turns"), [("script:dear", 2), ("script:unpriced", 1)])
def test_the_loop_stops_on_a_budget_and_on_a_price_nobody_knows(tmp_path: Path, model: str, turns: int) -> None:
    stops: list[Stopped] = []
    again = Say(parts=[call("add", {"a": 1, "b": 1})], tokens=(1_000, 100))  # 0.10 + 0.10 USD at the dear model
    with playing(Theatre(*[again] * 5), tmp_path / "s.db", model=model) as session:
        session.send("go", tools=AgentLoop([add], budget_usd="0.35", on_stop=stops.append))

    spent = Decimal("0.4") if model == "script:dear" else Decimal(0)
    assert (stops[0].cause, stops[0].turns, stops[0].spent_usd) == (StopCause.BUDGET, turns, spent)


def cancelling(loop: AgentLoop) -> Callable[[], None]:
    return lambda: threading.Timer(0.1, loop.cancel).start()


@pytest.mark.parametrize("blocking", [True, False])
def test_case_07_a_cancelled_run_answers_every_call(tmp_path: Path, blocking: bool) -> None:
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

    stops: list[Stopped] = []
    loop = AgentLoop([add, hang, change], confirm=lambda _: True, on_stop=stops.append)
    parts = [call("add", {"a": 1, "b": 1}), call("hang"), call("change")]
    theatre = Theatre(Say(parts=parts, hold=cancelling(loop)), "Never said.")
    with playing(theatre, tmp_path / "s.db") as session:
        session.send("go", tools=loop)
        rows = {row.name: row.status for row in session.store.tool_calls("s")}
        findings = list(session.store.verify("s"))
        said = [message.tool_results()[0].content[0].text for message in session.messages[2:]]  # type: ignore[union-attr]

    assert stops[0].cause is StopCause.CANCELLED
    assert len(theatre.asked) == 1
    assert rows == {"add": "succeeded", "hang": "cancelled", "change": "cancelled"}
    assert said == ["2", *["cancelled before it was finished"] * 2]
    assert findings == []


def test_ctrl_c_while_tools_run_keeps_what_they_did(tmp_path: Path) -> None:
    @tool(side_effects="none")
    def interrupt(context: ToolContext) -> str:
        """As a person would."""
        time.sleep(0.1)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        context.wait(30)
        return "late"

    theatre = Theatre(Say(parts=[call("add", {"a": 1, "b": 1}), call("interrupt")]), "Never said.")
    with playing(theatre, tmp_path / "s.db") as session:
        with pytest.raises(KeyboardInterrupt):
            session.send("go", tools=AgentLoop([add, interrupt]))

        assert [row.status for row in session.store.tool_calls("s")] == ["succeeded", "cancelled"]
        assert roles(session) == ["user", "assistant", "tool", "tool"]


def test_calls_left_by_a_dead_process_are_taken_up_but_no_change_is_made_twice(tmp_path: Path) -> None:
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
        for one in asked.tool_calls()[:2]:
            session.store.update_tool_call(one.id, started_at=asked.created_at)  # and then the process died

        answer = session.send(None, tools=AgentLoop([add, change], confirm=lambda _: True))

        assert answer.text_content() == "Back."
        assert changes == ["waited"]
        results = {one["text"] for message in theatre.asked[1]["messages"] for one in message.get("results", [])}
        assert results == {"2", "waited", "interrupted while it ran; whether it took effect is unknown"}
        assert session.store.unanswered_tool_calls("s") == []


def test_a_failing_model_raises_and_the_history_holds_what_was_done(tmp_path: Path) -> None:
    theatre = Theatre(Say(parts=[call("add", {"a": 1, "b": 1})]), Say(fail=(400, "no")))
    with playing(theatre, tmp_path / "s.db") as session:
        with pytest.raises(il.InvalidRequest):
            session.send("go", tools=AgentLoop([add]))

        assert roles(session) == ["user", "assistant", "tool"]


def test_the_async_loop_does_the_same(tmp_path: Path) -> None:
    asked: list[str] = []

    async def confirm(question: Confirmation) -> bool:
        await asyncio.sleep(0)
        asked.append(question.tool.name)
        return True

    @tool(side_effects="write")
    def write(name: str) -> str:
        """Write."""
        return name

    parts = [call("add", {"a": 2, "b": 3}), call("write", {"name": "x"}), call("add", {"a": "?", "b": 1})]
    theatre = Theatre(Say(parts=parts), "Done.")

    async def play() -> list[str]:
        async with playing_async(theatre, tmp_path / "s.db") as session:
            answer = await session.send("go", tools=AgentLoop([add, write], confirm=confirm))
            assert answer.text_content() == "Done."
            return [row.status.value for row in session.store.tool_calls("s")]

    assert asyncio.run(play()) == ["succeeded", "succeeded", "failed"]
    assert asked == ["write"]
    assert [is_error for _, is_error in theatre.results] == [False, False, True]
    assert theatre.results[0] == ("5", False)


def test_a_cancelled_task_answers_every_call_before_it_ends(tmp_path: Path) -> None:
    @tool(side_effects="none")
    async def hang() -> str:
        """Hang."""
        await asyncio.sleep(30)
        return "late"

    theatre = Theatre(Say(parts=[call("add", {"a": 1, "b": 1}), call("hang")]), "Never said.")

    async def play() -> list[str]:
        session = playing_async(theatre, tmp_path / "s.db")
        task = asyncio.create_task(session.send("go", tools=AgentLoop([add, hang])))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return [row.status.value for row in session.store.tool_calls("s")]

    assert asyncio.run(play()) == ["succeeded", "cancelled"]


def test_case_22_lone_surrogates_and_nul_from_a_tool_are_stored_and_sent(tmp_path: Path) -> None:
    @tool(side_effects="read")
    def read() -> str:
        """Read a file that is no text."""
        return "a\ud800b\x00c \N{GRINNING FACE}"

    @tool(side_effects="read")
    def structured() -> dict[str, str]:
        """The same inside a value."""
        return {"name": "\udfff"}

    theatre = Theatre(Say(parts=[call("read"), call("structured")]), "Odd.", "Still here.")
    with playing(theatre, tmp_path / "s.db") as session:
        session.send("go", tools=AgentLoop([read, structured]))
    with playing(theatre, tmp_path / "s.db") as session:  # from the database
        session.send("and now?")
        findings = list(session.store.verify("s"))

    assert findings == []
    assert [is_error for _, is_error in theatre.results] == [False, False]
    text = theatre.results[0][0]
    assert text.startswith("a")
    assert text.endswith("c \N{GRINNING FACE}")
    text.encode()


def test_case_35_a_run_cancelled_in_mid_answer_keeps_the_text_and_goes_on_later(tmp_path: Path) -> None:
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

    def listen(event: AgentEvent) -> None:
        if isinstance(event, MessageUpdate) and event.assistant_message_event.type == "toolcall_delta":
            loop.cancel()

    stops: list[Stopped] = []
    loop = AgentLoop([add], listen=listen, on_stop=stops.append)
    http = httpx.Client(transport=httpx.MockTransport(handle))
    client = il.Client(MODEL, registry=registry(), http_client=http, retry=0)
    with client, open_store(tmp_path / "s.db") as store:
        session = Session.open(store, "s", client=client)
        cut = session.send("go", tools=loop)
        assert (cut.metadata.status, cut.text_content()) == (il.MessageStatus.CANCELLED, "I was about to")
        assert stops[0].cause is StopCause.CANCELLED
        assert store.unanswered_tool_calls("s") == []

        assert session.send("go on").text_content() == "Back."
    sent = bodies[-1]["messages"]
    assert sent == [{"role": "user", "text": "go"}, {"role": "assistant", "text": "I was about to"}, sent[2]]


def test_raw_arguments_go_back_as_they_came(tmp_path: Path) -> None:
    odd = '{"b" : 3,   "a":2}'
    theatre = Theatre(Say(parts=[call("add", odd)]), "5")
    with playing(theatre, tmp_path / "s.db") as session:
        session.send("go", tools=AgentLoop([add]))

    sent = theatre.asked[1]["messages"][1]["calls"][0]["json"]
    assert sent == odd
    assert json.loads(sent) == {"a": 2, "b": 3}
