"""`Agent`: what it keeps and does not keep, streams, approvals, forced choices, open calls, and secrets.

Expectations are docs/agents/README.md; the model is a script.
"""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import attrs
import pytest

import interlingua as il
from interlingua.testing import AsyncMemoryTransport, MemoryTransport
from interlingua_agents import (
    DEFER,
    Agent,
    CallDecision,
    PendingCall,
    RunResult,
    StopCause,
    ToolContext,
    approve,
    messages_of,
    reject,
    tool,
)
from tests.agents.scripted import CAPABLE, MODEL, Say, Script, Theatre, call, playing, registry
from tests.agents.ways import STREAMED, WAYS, play


@tool(side_effects="none")
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
def order(what: str) -> str:
    """Order."""
    return f"ordered {what}"


def client(theatre: Theatre, *plugins: Any, script: Script | None = None) -> il.Client:
    transport = MemoryTransport(theatre)
    return il.Client(registry=registry(plugins, script), transport=transport, retry=0)


def sent(theatre: Theatre, at: int = -1) -> list[str]:
    return [message["role"] for message in theatre.asked[at]["messages"]]


def valid(messages: Any) -> None:
    assert not il.validate_conversation(list(messages))


def test_an_agent_is_frozen_and_keeps_nothing() -> None:
    theatre = Theatre("One.", "Two.")
    agent = Agent(MODEL, tools=[add], instructions="Be short.")
    history = [il.user("before"), il.assistant("yes")]
    before = list(history)
    with client(theatre) as used:
        first = agent.run_sync("1?", history=history, client=used)
        second = agent.run_sync("2?", client=used)

    assert history == before
    assert [message.role.value for message in first.messages] == ["user", "assistant"]
    assert (first.value, second.value) == ("One.", "Two.")
    assert sent(theatre, 0) == ["system", "user", "assistant", "user"]
    assert sent(theatre, 1) == ["system", "user"]
    assert theatre.asked[1]["messages"][0]["text"] == "Be short."
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        agent.model = "other"  # type: ignore[misc]
    valid([*history, *first.messages])


def test_usage_is_the_sum_of_all_answers() -> None:
    theatre = Theatre(Say(parts=[call("add", {"a": 1, "b": 1})], tokens=(10, 2)), Say(parts=["2"], tokens=(30, 4)))
    with client(theatre) as used:
        run = Agent(MODEL, tools=[add]).run_sync("go", client=used)

    assert (run.usage.input_tokens, run.usage.output_tokens) == (40, 6)
    assert run.usage.cost_usd == run.stop.spent_usd


def test_a_history_goes_on_from_run_to_run() -> None:
    theatre = Theatre(Say(parts=[call("add", {"a": 1, "b": 1})]), "2.", "Yes.")
    history: list[il.Message] = []
    with client(theatre) as used:
        agent = Agent(MODEL, tools=[add])
        history += agent.run_sync("1 + 1?", history=history, client=used).messages
        history += agent.run_sync("Sure?", history=history, client=used).messages

    assert sent(theatre) == ["user", "assistant", "tool", "assistant", "user"]
    assert len(history) == 6
    valid(history)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"prompt": None}, "nothing to answer"),
        ({"prompt": "x", "decisions": [CallDecision(call_id="tu_1", approved=True)]}, "without a prompt"),
        (
            {"prompt": None, "history": [il.user("x")], "decisions": [CallDecision(call_id="t", approved=True)]},
            "not pending",
        ),
    ],
)
def test_arguments_that_do_not_fit_each_other_are_refused(arguments: dict[str, Any], why: str) -> None:
    with client(Theatre()) as used, pytest.raises(il.CallerError, match=why):
        Agent(MODEL, tools=[order]).run_sync(**arguments, client=used)


def test_a_session_and_a_history_exclude_each_other(tmp_path: Path) -> None:
    with playing(Theatre(), tmp_path / "s.db") as session, pytest.raises(il.CallerError, match="a session has both"):
        Agent(MODEL).run_sync("x", session=session, history=[il.user("y")])


def test_each_face_wants_its_own_client_and_session(tmp_path: Path) -> None:
    agent: Any = Agent(MODEL)
    with client(Theatre()) as used, pytest.raises(il.CallerError, match="AsyncClient"):
        asyncio.run(agent.run("x", client=used))
    with pytest.raises(il.CallerError, match="a Session or Client"):
        agent.run_sync("x", client=async_client(Theatre()))
    with playing(Theatre(), tmp_path / "s.db") as session, pytest.raises(il.CallerError, match="AsyncSession"):
        asyncio.run(agent.run("x", session=session))


def test_in_a_session_the_model_may_be_the_sessions_and_instructions_are_not_stored(tmp_path: Path) -> None:
    theatre = Theatre("Hello.", "Again.")
    with playing(theatre, tmp_path / "s.db", system="Be kind.") as session:
        run = Agent(instructions="Be short.").run_sync("hi", session=session)
        stored = [message.role.value for message in session.messages]
        session.send("again")

    assert run.value == "Hello."
    assert [message.role.value for message in run.messages] == ["user", "assistant"]
    assert [message["text"] for message in theatre.asked[0]["messages"]] == ["Be short.", "Be kind.", "hi"]
    assert stored == ["system", "user", "assistant"]
    assert sent(theatre) == ["system", "user", "assistant", "user"]


# streams


@pytest.mark.parametrize("way", STREAMED)
def test_text_before_a_call_does_not_end_a_stream(tmp_path: Path, way: str) -> None:
    """Text, a call and text over two turns: the stream shows all of it and comes to what a whole run comes to."""
    lines = (Say(parts=[("think", "hm"), "I add.", call("add", {"a": 2, "b": 3})]), "It is 5.")
    streamed = play(way, Theatre(*lines), tmp_path, [add])
    (tmp_path / "whole").mkdir()
    whole = play("agent", Theatre(*lines), tmp_path / "whole", [add])

    def plain(messages: Any) -> Any:
        return [(message.role.value, message.text, [one.name for one in message.tool_calls]) for message in messages]

    assert plain(streamed.messages) == plain(whole.messages)
    kinds = [event.type for event in streamed.events]
    assert [kind for at, kind in enumerate(kinds) if kinds[at - 1 : at] != [kind]] == [
        *["run_start", "turn_start", "message_start", "message_end"],  # the question
        *["message_start", "thinking_start", "thinking_delta", "text_start", "text_delta"],
        *["toolcall_start", "toolcall_delta", "toolcall_end", "thinking_end", "text_end", "message_end"],
        *["tool_start", "tool_end", "message_start", "message_end", "turn_end"],
        *["turn_start", "message_start", "text_start", "text_delta", "text_end", "message_end", "turn_end", "run_end"],
    ]
    assert "".join(event.text for event in streamed.events if event.type == "text_delta") == "I add.It is 5."
    assert [event.turn for event in streamed.events] == sorted(event.turn for event in streamed.events)
    assert {event.turn for event in streamed.events[1:]} == {1, 2}  # 0 before the first turn
    (start,) = [event for event in streamed.events if event.type == "tool_start"]
    (end,) = [event for event in streamed.events if event.type == "tool_end"]
    assert (start.call.name, start.call.input, start.side_effects) == ("add", {"a": 2, "b": 3}, "none")
    assert (end.call.id, end.status, end.result.is_error) == (start.call.id, "completed", False)
    assert end.elapsed_s >= 0
    last = streamed.events[-1]
    assert isinstance(last.result, RunResult)
    assert last.result.value == "It is 5."


def test_a_model_that_cannot_stream_is_shown_in_whole_pieces() -> None:
    theatre = Theatre(Say(parts=[("think", "hm"), "I add.", call("add", {"a": 2, "b": 3})]), "It is 5.")
    script = Script(attrs.evolve(CAPABLE, supports_streaming=False))
    with client(theatre, script=script) as used, Agent(MODEL, tools=[add]).stream_sync("go", client=used) as stream:
        pieces = [(event.type, event.text) for event in stream if event.type in ("text_delta", "thinking_delta")]

    assert pieces == [("thinking_delta", "hm"), ("text_delta", "I add."), ("text_delta", "It is 5.")]


def test_updates_of_a_tool_are_in_the_stream() -> None:
    @tool(side_effects="none")
    def count(context: ToolContext) -> str:
        """Count."""
        context.update({"at": 1})
        return "counted"

    with (
        client(Theatre(Say(parts=[call("count")]), "Done.")) as used,
        Agent(MODEL, tools=[count]).stream_sync("go", client=used) as stream,
    ):
        updates = [event.partial for event in stream if event.type == "tool_update"]
    assert updates == [{"at": 1}]


def test_the_text_of_a_stream_alone_and_its_result() -> None:
    lines = (Say(parts=["I add. ", call("add", {"a": 2, "b": 3})]), "It is 5.")
    with client(Theatre(*lines)) as used, Agent(MODEL, tools=[add]).stream_sync("go", client=used) as stream:
        assert "".join(stream.text_stream) == "I add. It is 5."
        assert stream.message.text == "It is 5."
    with client(Theatre(*lines)) as used, Agent(MODEL, tools=[add]).stream_sync("go", client=used) as stream:
        assert stream.result.value == "It is 5."  # without iterating
    with pytest.raises(il.CallerError, match="not open"):
        Agent(MODEL).stream_sync("go").cancel()


@pytest.mark.parametrize("kind", ["text_delta", "tool_start", "tool_end", "turn_end"])
@pytest.mark.parametrize("asynchronous", [True, False])
def test_leaving_a_stream_anywhere_leaves_no_call_open(kind: str, asynchronous: bool) -> None:
    theatre = Theatre(Say(parts=["I add.", call("add", {"a": 2, "b": 3}), call("add", {"a": 1, "b": 1})]), "Never.")
    agent = Agent(MODEL, tools=[add])
    if asynchronous:

        async def run() -> Any:
            async with async_client(theatre) as used, agent.stream("go", client=used) as stream:
                async for event in stream:
                    if event.type == kind:
                        break
            return stream.messages

        messages = asyncio.run(run())
    else:
        with client(theatre) as used:
            with agent.stream_sync("go", client=used) as stream:
                for event in stream:
                    if event.type == kind:
                        break
            messages = stream.messages

    valid(messages)
    calls = [one.id for message in messages if message.metadata.status is il.MessageStatus.COMPLETE
             for one in message.tool_calls]  # fmt: skip
    assert [result.tool_use_id for message in messages for result in message.tool_results] == calls
    assert len(theatre.asked) == 1
    again = Theatre("On we go.")
    with client(again) as used:
        assert agent.run_sync("go on", history=messages, client=used).value == "On we go."


def async_client(theatre: Theatre, script: Script | None = None) -> il.AsyncClient:
    return il.AsyncClient(registry=registry(script=script), transport=AsyncMemoryTransport(theatre), retry=0)


def test_nothing_goes_on_unless_somebody_iterates() -> None:
    theatre = Theatre(Say(parts=["I add.", call("add", {"a": 2, "b": 3})]), "Never.")
    with client(theatre) as used, Agent(MODEL, tools=[add]).stream_sync("go", client=used) as stream:
        assert theatre.asked == []
        next(iter(stream))
        assert len(theatre.asked) <= 1


# approvals


def test_calls_wait_for_a_person_and_every_other_call_is_answered() -> None:
    theatre = Theatre(
        Say(parts=[call("order", {"what": "tea"}), call("add", {"a": 1, "b": 2}), call("order", {"what": "x"})]),
        "Done.",
    )
    agent = Agent(MODEL, tools=[add, order], confirm=DEFER)
    with client(theatre) as used:
        first = agent.run_sync("go", client=used)
        assert first.stop.cause is StopCause.APPROVAL
        assert [(one.name, one.input, one.reason) for one in first.pending] == [
            ("order", {"what": "tea"}, "approval"),
            ("order", {"what": "x"}, "approval"),
        ]
        assert [len(message.tool_results) for message in first.messages] == [0, 0, 1]
        text = json.dumps([attrs.asdict(one) for one in first.pending])
        kept = [PendingCall(**one) for one in json.loads(text)]
        assert kept == list(first.pending)

        decisions = [approve(kept[0]), reject(kept[1], "not now")]
        decisions = [CallDecision(**one) for one in json.loads(json.dumps([attrs.asdict(one) for one in decisions]))]
        second = agent.run_sync(None, history=first.messages, decisions=decisions, client=used)

    assert second.value == "Done."
    assert theatre.results == [  # in the order of the calls, however they were answered
        ("ordered tea", False),
        ("3", False),
        ("order was not run: the user said no: not now", True),
    ]
    valid([*first.messages, *second.messages])


@pytest.mark.parametrize("way", WAYS)
def test_calls_wait_every_way_a_loop_is_run(tmp_path: Path, way: str) -> None:
    theatre = Theatre(Say(parts=[call("order", {"what": "tea"}), call("add", {"a": 1, "b": 2})]))
    played = play(way, theatre, tmp_path, [add, order], confirm=DEFER)

    assert played.stopped is not None
    assert played.stopped.cause is StopCause.APPROVAL
    assert [result.tool_name for result in played.results] == ["add"]
    if played.rows is not None:
        assert [row.status.value for row in played.rows] == ["pending", "succeeded"]


def test_what_is_not_decided_waits_on_without_asking_the_model() -> None:
    theatre = Theatre(Say(parts=[call("order", {"what": "tea"}), call("order", {"what": "x"})]), "Done.")
    agent = Agent(MODEL, tools=[order], confirm=DEFER)
    with client(theatre) as used:
        first = agent.run_sync("go", client=used)
        second = agent.run_sync(None, history=first.messages, decisions=[approve(first.pending[1])], client=used)
        assert (second.stop.cause, second.stop.turns, len(theatre.asked)) == (StopCause.APPROVAL, 0, 1)
        assert [one.input for one in second.pending] == [{"what": "tea"}]
        history = [*first.messages, *second.messages]
        third = agent.run_sync(None, history=history, decisions=[approve(second.pending[0])], client=used)

    assert third.value == "Done."
    valid([*history, *third.messages])


def test_an_invalid_call_is_answered_and_not_put_to_a_person() -> None:
    theatre = Theatre(Say(parts=[call("order", {"what": 3})]), "Sorry.")
    with client(theatre) as used:
        run = Agent(MODEL, tools=[order], confirm=DEFER).run_sync("go", client=used)
    assert run.value == "Sorry."
    assert theatre.results[0][1]


def test_a_definition_alone_ends_the_run_with_its_call_pending() -> None:
    theatre = Theatre(Say(parts=[call("order", {"what": "tea"}), call("add", {"a": 1, "b": 2})]), "Done.")
    agent = Agent(MODEL, tools=[add, order.definition])
    with client(theatre) as used:
        first = agent.run_sync("go", client=used)
        assert (first.stop.cause, [one.reason for one in first.pending]) == (StopCause.EXTERNAL, ["external"])
        (waiting,) = [one for one in first.messages[1].tool_calls if one.id == first.pending[0].call_id]
        history = [*first.messages, il.tool_result(waiting, "done by hand", session_id=first.messages[0].session_id)]
        second = agent.run_sync(None, history=history, client=used)

    assert second.value == "Done."
    assert theatre.results == [("done by hand", False), ("3", False)]
    valid([*history, *second.messages])


@pytest.mark.parametrize("stored", [True, False])
def test_a_user_who_goes_on_leaves_no_call_open(tmp_path: Path, stored: bool) -> None:
    """A second question instead of a decision: the history is valid, and the model reads that the call was not run."""
    theatre = Theatre(Say(parts=[call("order", {"what": "tea"})]), "As you like.")
    agent = Agent(MODEL, tools=[order], confirm=DEFER)
    if stored:
        with playing(theatre, tmp_path / "s.db") as session:
            agent.run_sync("go", session=session)
            run = agent.run_sync("never mind", session=session)
            assert session.store.unanswered_tool_calls("s") == []
            whole = session.messages
    else:
        with client(theatre) as used:
            first = agent.run_sync("go", client=used)
            run = agent.run_sync("never mind", history=first.messages, client=used)
            whole = [*first.messages, *run.messages]

    valid(whole)
    assert run.value == "As you like."
    assert [message.role.value for message in run.messages] == ["tool", "user", "assistant"]
    assert theatre.results == [("was not run: the user continued without a decision about it", True)]


@pytest.mark.parametrize("end", ["cancel", "reject", "second approval", "failure"])
def test_after_every_end_the_history_is_valid_and_is_sent(end: str) -> None:
    theatre = Theatre(Say(parts=["So.", call("order", {"what": "tea"}), call("add", {"a": 1, "b": 2})]))
    agent = Agent(MODEL, tools=[add, order], confirm=DEFER)
    with client(theatre) as used:
        if end == "cancel":
            with agent.stream_sync("go", client=used) as stream:
                for event in stream:
                    if event.type == "tool_start":
                        stream.cancel()
                history = list(stream.result.messages)
        else:
            history = list(agent.run_sync("go", client=used).messages)
            waiting = history[1].tool_calls[0]
            theatre.lines = [Say(fail=(400, "no")) if end == "failure" else Say(parts=["Well."])]
            decision = approve(waiting) if end in ("second approval", "failure") else reject(waiting)
            try:
                history += agent.run_sync(None, history=history, decisions=[decision], client=used).messages
            except il.InterlinguaError as error:
                history += messages_of(error)
            if end == "second approval":
                with pytest.raises(il.CallerError, match="not pending"):
                    agent.run_sync(None, history=history, decisions=[decision], client=used)
        valid(history)
        theatre.lines = [Say(parts=["On."])]
        run = agent.run_sync("go on", history=history, client=used)

    assert run.value == "On."
    valid([*history, *run.messages])
    asked = theatre.asked[-1]["messages"]
    assert sum(len(one.get("calls", ())) for one in asked) == sum(len(one.get("results", ())) for one in asked)


# forced choices, arguments, content


@pytest.mark.parametrize("way", ["session", "async session", "agent", "async agent stream", "session stream"])
@pytest.mark.parametrize("choice", ["required", il.ToolChoice("add")])
def test_a_forced_choice_holds_for_the_first_answer_and_there_is_none_at_the_limit(
    tmp_path: Path, way: str, choice: Any
) -> None:
    again = Say(parts=[call("add", {"a": 1, "b": 1})])
    theatre = Theatre(again, again, "2.")
    play(way, theatre, tmp_path, [add], max_turns=3, options={"tool_choice": choice})

    forced = getattr(choice, "name", choice)
    assert [asked.get("choice") for asked in theatre.asked] == [forced, None, "none"]


def test_a_forced_choice_is_not_made_again_after_an_approval() -> None:
    theatre = Theatre(Say(parts=[call("order", {"what": "tea"})]), "Done.")
    agent = Agent(MODEL, tools=[order], confirm=DEFER, options={"tool_choice": "required"})
    with client(theatre) as used:
        first = agent.run_sync("go", client=used)
        agent.run_sync(None, history=first.messages, decisions=[approve(first.pending[0])], client=used)
    assert [asked.get("choice") for asked in theatre.asked] == ["required", None]


@attrs.frozen
class Item:
    name: str
    tags: list[str]


NESTED = {"item": '{"name": "tea", "tags": "[\\"hot\\"]"}'}


@pytest.mark.parametrize("way", ["session", "agent", "async agent stream"])
def test_an_object_as_json_text_is_refused_with_a_hint_or_read_before_anybody_is_asked(
    tmp_path: Path, way: str
) -> None:
    asked: list[Any] = []
    got: list[Item] = []

    @tool
    def buy(item: Item) -> str:
        """Buy."""
        got.append(item)
        return "bought"

    def confirm(question: Any) -> bool:
        asked.append((question.call.input, question.text))
        return True

    strict = Theatre(Say(parts=[call("buy", NESTED)]), "Sorry.")
    play(way, strict, tmp_path, [buy], confirm=confirm)
    ((text, failed),) = strict.results
    assert failed
    assert "not as strings that contain JSON" in text
    assert (asked, got) == ([], [])

    (tmp_path / "read").mkdir()
    lenient = Theatre(Say(parts=[call("buy", NESTED)]), "Fine.")
    played = play(way, lenient, tmp_path / "read", [buy], confirm=confirm, decode_strings=True)
    assert lenient.results == [("bought", False)]
    assert got == [Item("tea", ["hot"])]
    assert asked[0][0] == {"item": {"name": "tea", "tags": ["hot"]}}
    assert '"tags":["hot"]' in asked[0][1]
    assert played.messages[1].tool_calls[0].input == NESTED  # what the model wrote stays in the history


def test_text_that_looks_like_json_stays_text_where_text_is_wanted(tmp_path: Path) -> None:
    theatre = Theatre(Say(parts=[call("order", {"what": '{"a": 1}'})]), "Fine.")
    play("agent", theatre, tmp_path, [order], confirm=lambda _: True, decode_strings=True)
    assert theatre.results == [('ordered {"a": 1}', False)]


@pytest.mark.parametrize("way", ["agent", "async agent stream", "session"])
def test_content_is_in_no_event_log_or_exception(tmp_path: Path, way: str, caplog: pytest.LogCaptureFixture) -> None:
    """Observers, logs and errors name calls and tools, and never quote messages, arguments or results."""
    canary = "CANARY-7f3a"
    events: list[Any] = []

    class Watching:
        @il.plugins.hookimpl
        def observe(self, event: Any) -> None:
            events.append(event)

    @tool(side_effects="none", timeout=0.05)
    async def slow(secret: str) -> str:
        """Sleep."""
        await asyncio.sleep(5)
        return secret

    @tool(side_effects="none")
    def breaks(secret: str) -> str:
        """Break."""
        raise RuntimeError(secret)

    inner_theatre = Theatre(Say(parts=[canary]))

    @tool(side_effects="none")
    def ask_another(secret: str) -> str:
        """Ask another agent."""
        with client(inner_theatre, Watching()) as used:
            return Agent(MODEL, instructions=canary).run_sync(secret, client=used).value

    tools = [add, order, slow, breaks, ask_another]
    given = {"secret": canary}
    parts = [canary, call("slow", given), call("breaks", given), call("order", {"what": canary}), call("absent", given)]
    theatre = Theatre(Say(parts=[*parts, call("ask_another", given)]), Say(fail=(400, "no")))
    with caplog.at_level(logging.DEBUG):
        played = play(way, theatre, tmp_path, tools, text=canary, plugins=[Watching()])

    assert isinstance(played.error, il.InterlinguaError)
    assert events
    for one in (*events, caplog.text, str(played.error), repr(played.error)):
        assert canary not in str(one)
    assert canary in str(theatre.asked)


# scopes of plugins


@pytest.mark.parametrize("way", WAYS)
def test_plugins_put_scopes_instrument_runs_and_calls(tmp_path: Path, way: str) -> None:
    import contextvars

    current: contextvars.ContextVar[tuple[str, ...]] = contextvars.ContextVar("current", default=())
    begun: list[tuple[str, tuple[str, ...]]] = []
    ended: list[tuple[str, Any, Any, Any]] = []
    inside: list[tuple[str, ...]] = []

    class Scope:
        def __init__(self, kind: str) -> None:
            self.kind = kind

        def __enter__(self) -> None:
            self.token = current.set((*current.get(), self.kind))

        def __exit__(self, *error: object) -> None:
            current.reset(self.token)

        def end(self, result: Any, error: BaseException | None, facts: Any) -> None:
            ended.append((self.kind, result, error, facts))

    class Watching:
        @il.plugins.hookimpl
        def instrument(self, kind: str, facts: Any) -> Scope:
            begun.append((kind, current.get()))
            return Scope(kind)

    @tool(side_effects="none")
    def look() -> str:
        """Look."""
        inside.append(current.get())
        return "seen"

    @tool(side_effects="none")
    async def fail_later() -> str:
        """Fail."""
        inside.append(current.get())
        raise ValueError("no")

    theatre = Theatre(Say(parts=[call("look"), call("fail_later")]), "Done.")
    settings = {"name": "scout", "description": "looks"}
    play(way, theatre, tmp_path, [look, fail_later], plugins=[Watching()], **settings)

    assert [kind for kind, _ in begun] == ["invoke_agent", "chat", "execute_tool", "execute_tool", "chat"]
    assert {outer for kind, outer in begun if kind != "invoke_agent"} == {("invoke_agent",)}
    assert inside == [("invoke_agent", "execute_tool")] * 2
    assert current.get() == ()
    assert sorted(kind for kind, *_ in ended) == sorted(kind for kind, _ in begun)
    (run,) = [one for one in ended if one[0] == "invoke_agent"]
    assert run[1].text == "Done."
    assert (run[2], run[3]["turns"], run[3]["tool_calls"], len(run[3]["usages"])) == (None, 2, 2, 2)
    failed = {type(error).__name__ for kind, _, error, _ in ended if kind == "execute_tool"}
    assert failed == {"NoneType", "ValueError"}


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: Agent(MODEL, tools=add), r"tools must be a list: pass \[add\]"),
        (lambda: Agent(MODEL, tools=[len]), "len is not a tool: decorate it with @tool"),
        (lambda: Agent(MODEL, budget_usd="a dollar"), "budget_usd must be a number of US dollars, not 'a dollar'"),
        (lambda: Agent(MODEL, budget_usd="nan"), "budget_usd must be above 0, not 'nan'"),
        (lambda: Agent(MODEL, budget_usd=-1), "budget_usd must be above 0, not -1"),
        (lambda: Agent(MODEL).run_sync("x", history=[{"role": "user"}]), "history must contain messages, not dict"),
        (lambda: Agent(MODEL).run_sync("x", history="hello"), "history must contain messages, not str"),
    ],
)
def test_a_mistake_is_said_with_what_to_do(make: Any, why: str) -> None:
    with pytest.raises(il.CallerError, match=why):
        make()
