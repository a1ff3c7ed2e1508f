"""Compaction in real sessions: when it acts, what it stores, what is sent from then on, and what core then drops.

Expectations are docs/sessions/compaction.md.
"""

from __future__ import annotations

import asyncio
import json
import logging
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import pytest

import interlingua as il
from interlingua.testing import MemoryTransport
from interlingua.transport import HttpRequest
from interlingua_agents import Agent
from interlingua_agents.loop import AgentLoop
from interlingua_agents.tools import tool
from interlingua_sessions import open_store
from interlingua_sessions.compaction import PRUNING, Compaction, Summary, ToolPruning, build_context
from interlingua_sessions.session import Session
from interlingua_sessions.store import EntryKind
from tests.agents.scripted import CAPABLE, Say, Script, Theatre, call, playing, playing_async

LONG = "word " * 400  # 500 tokens by the script's estimate


@tool(side_effects="read")
def read(name: str) -> str:
    """Read."""
    return f"{name}: {LONG}"


def compacting(limit: int, *policies: Any) -> dict[str, Any]:
    compactor = Compaction(limit=limit, policies=policies or None)
    return {"compactor": compactor, "context": build_context}


def say_all(session: Session, *questions: str) -> None:
    for question in questions:
        session.send(question)


def test_a_context_under_the_limit_is_left_alone(tmp_path: Path) -> None:
    theatre = Theatre("a", "b")
    with playing(theatre, tmp_path / "s.db", **compacting(50_000)) as session:
        say_all(session, "q1", "q2")

        assert session.entries == ()
    assert len(theatre.asked) == 2


def test_over_the_limit_old_results_go_first_and_no_model_is_asked(tmp_path: Path) -> None:
    calls = [Say(parts=[call("read", {"name": str(at)})]) for at in range(3)]
    theatre = Theatre(calls[0], "one", calls[1], "two", calls[2], "three", "four")
    with playing(theatre, tmp_path / "s.db", **compacting(1_400)) as session:
        for question in ("q1", "q2", "q3"):
            session.send(question, tools=AgentLoop([read]))
        before = [il.dumps_message(message) for message in session.store.messages("s")]
        session.send("q4")

        (entry,) = session.entries
        stored = [il.dumps_message(message) for message in session.store.messages("s")]
    assert (entry.kind, entry.custom_type) == (EntryKind.CUSTOM, PRUNING)
    assert stored[: len(before)] == before  # history itself is never rewritten
    assert len(theatre.asked) == 7  # pruning asks nobody
    texts = [one["text"] for message in theatre.asked[-1]["messages"] for one in message.get("results", [])]
    assert texts[0] == "[the result of read was removed to save space]"
    assert texts[-1] == f"2: {LONG}"  # what came last stays


def test_then_the_oldest_part_is_summarised_by_the_turns_own_model(tmp_path: Path) -> None:
    theatre = Theatre(LONG, LONG, LONG, "They talked at length.", "four")
    with playing(theatre, tmp_path / "s.db", system="Be brief.", **compacting(1_500)) as session:
        say_all(session, "q1", "q2", "q3")
        before = [il.dumps_message(message) for message in session.store.messages("s")]
        answer = session.send("q4")

        assert answer.text == "four"
        (entry,) = session.entries
        stored = [il.dumps_message(message) for message in session.store.messages("s")]
    assert (entry.kind, entry.text) == (EntryKind.COMPACTION_SUMMARY, "They talked at length.")
    assert entry.data["model"] == "script:dear"
    assert Decimal(entry.data["cost_usd"]) == Decimal(
        "0.2"
    )  # 1,000 tokens in and 100 out at 100 and 1,000 USD a million
    assert entry.data["tokens_before"] > 1_500
    assert stored[: len(before)] == before
    asked, sent = theatre.asked[-2]["messages"], theatre.asked[-1]["messages"]
    assert asked[0]["role"] == "system"
    assert "[user] q1" in asked[1]["text"]
    assert "Be brief." not in asked[1]["text"]
    assert sent[0] == {"role": "system", "text": "Be brief."}
    assert "They talked at length." in sent[1]["text"]
    assert sent[-1] == {"role": "user", "text": "q4"}
    assert "q1" not in str(sent)


def test_another_machine_builds_the_same_context(tmp_path: Path) -> None:
    theatre = Theatre(LONG, LONG, LONG, "Summary.", "four")
    with playing(theatre, tmp_path / "s.db", **compacting(1_500)) as session:
        say_all(session, "q1", "q2", "q3", "q4")
        here = session.build_request("q5").body
    with playing(Theatre(), tmp_path / "s.db", context=build_context) as resumed:
        there = resumed.build_request("q5").body

    assert json.loads(here) == json.loads(there)
    assert here == there


class Talkative(Theatre):
    """Talks without end, and numbers the summaries it is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.summaries: list[str] = []

    def answer(self, body: bytes) -> tuple[int, str, bytes]:
        asked = json.loads(body)["messages"]
        wanted = "memory of a conversation" in asked[0].get("text", "")
        if wanted:
            self.summaries.append(asked[1]["text"])
        self.lines = [Say(parts=[f"Summary {len(self.summaries)}." if wanted else LONG])]
        return super().answer(body)


def test_a_second_summary_takes_in_the_first(tmp_path: Path) -> None:
    model = Talkative()
    with playing(model, tmp_path / "s.db", **compacting(1_800, Summary())) as session:
        say_all(session, *(f"q{at}." for at in range(9)))

        assert [entry.text for entry in session.entries] == ["Summary 1.", "Summary 2."]
        assert list(session.store.verify("s")) == []
    first, second = model.summaries
    assert "q0." in first
    assert "Summary 1." in second
    assert "q0." not in second
    assert "Summary 1." not in str(model.asked[-1])


def test_what_is_too_long_for_one_request_is_summarised_in_pieces(tmp_path: Path) -> None:
    """A long session of another model comes to one with a small window."""
    model = Talkative()
    small = Script(attrs.evolve(CAPABLE, max_context_tokens=2_000))
    with playing(model, tmp_path / "s.db", script=small, **compacting(1_500, Summary())) as session:
        for at in range(6):
            session.add(il.user(f"q{at}."))
            session.add(il.assistant(LONG))
        session.send("go on")

        (entry,) = session.entries
    assert 2 <= len(model.summaries) <= 3
    assert entry.text == f"Summary {len(model.summaries)}."
    assert "Summary 1." in model.summaries[1]
    assert all(len(asked) // 4 <= 2_000 for asked in model.summaries)
    assert [f"q{at}." in "".join(model.summaries) for at in range(5)] == [True] * 5


@pytest.mark.parametrize("answer", [Say(fail=(500, "down")), Say(parts=["   "]), Say(fail=(400, "no"))])
def test_without_a_summary_the_turn_goes_on(tmp_path: Path, answer: Say, caplog: pytest.LogCaptureFixture) -> None:
    theatre = Theatre(LONG, LONG, LONG, answer, "four")
    with caplog.at_level(logging.WARNING), playing(theatre, tmp_path / "s.db", **compacting(1_500)) as session:
        say_all(session, "q1", "q2", "q3")
        last = session.send("q4")

        assert session.entries == ()
    assert last.text == "four"
    assert "summary" in caplog.text
    assert "q1" in str(theatre.asked[-1])


def test_case_08_a_cut_never_parts_a_call_from_its_result(tmp_path: Path) -> None:
    calls = [Say(parts=[call("read", {"name": str(at)})]) for at in range(4)]
    theatre = Theatre(*calls, "done", "Summary.", "next")
    with playing(theatre, tmp_path / "s.db", **compacting(1_700, Summary())) as session:
        session.send("one long turn", tools=AgentLoop([read]))
        session.send("go on")
        losses = session.build_request("more").losses
        covers = session.entries[0].data["covers"]
        kept = session.messages[covers]

    assert kept.role in (il.Role.USER, il.Role.ASSISTANT)
    assert losses == ()  # no orphan had to be dropped, no result filled in
    sent = theatre.asked[-1]["messages"]
    calls_sent = sum(len(message.get("calls", [])) for message in sent)
    assert calls_sent == sum(len(message.get("results", [])) for message in sent)


@pytest.mark.parametrize("limit", [300, 700, 1_300, 2_500, 6_000])
def test_a_cut_at_any_limit_is_at_a_message_that_may_stand_first(limit: int) -> None:
    history: list[il.Message] = [il.system("s")]
    for at in range(6):
        uses = [il.ToolUseBlock(id=f"tu_{at}_{n}", name="read", input={}) for n in range(3)]
        history += [il.user(f"q{at}"), il.assistant(uses), *(il.tool_result(use, LONG) for use in uses)]
        history.append(il.assistant(LONG))
    covers = Summary().cut(history, 0, limit)

    assert 0 < covers < len(history)
    assert history[covers].role in (il.Role.USER, il.Role.ASSISTANT)
    last_question = max(at for at, message in enumerate(history) if message.role is il.Role.USER)
    if limit >= 6_000:
        assert covers <= last_question


def test_results_the_model_has_not_read_yet_are_never_pruned() -> None:
    uses = [il.ToolUseBlock(id=f"tu_{n}", name="read", input={}) for n in range(4)]
    results = [il.tool_result(use, LONG) for use in uses]
    unread = [il.user("q"), il.assistant(uses), *results]

    assert ToolPruning(keep=0).choose(unread, 0, 100) == []
    assert ToolPruning(keep=0).choose([*unread, il.assistant("read")], 0, 100) == [5, 4, 3, 2]


@pytest.mark.parametrize("way", ["session", "agent", "agent stream"])
def test_the_loop_compacts_between_its_turns(tmp_path: Path, way: str) -> None:
    calls = [Say(parts=[call("read", {"name": str(at)})]) for at in range(6)]
    theatre = Theatre(*calls, "done")
    compactor = Compaction(limit=1_900, policies=[ToolPruning()])
    with playing(theatre, tmp_path / "s.db", context=build_context) as session:
        if way == "session":
            session.send("go", tools=AgentLoop([read], compactor=compactor))
        elif way == "agent":
            Agent(tools=[read], compactor=compactor).run_sync("go", session=session)
        else:
            with Agent(tools=[read], compactor=compactor).stream_sync("go", session=session) as stream:
                assert stream.result.stop.turns == 7

        assert session.entries != ()
    assert "removed to save space" in str(theatre.asked[-1])
    assert len(json.dumps(theatre.asked[-1])) / 4 < 1_900


def test_asynchronous_sessions_compact_as_well(tmp_path: Path) -> None:
    theatre = Theatre(LONG, LONG, LONG, "Summary.", "four")

    async def play() -> list[str]:
        async with playing_async(theatre, tmp_path / "s.db", **compacting(1_500)) as session:
            for question in ("q1", "q2", "q3", "q4"):
                await session.send(question)
            return [entry.text for entry in session.entries]

    assert asyncio.run(play()) == ["Summary."]


def _facts(reported: int | None, *entries: Any, window: int = 0, provider: str = "ollama") -> Any:
    """Return the facts of a turn whose last answer's service reported so many input tokens."""
    usage = None if reported is None else il.types.Usage(input_tokens=reported, output_tokens=10)
    known = il.types.MessageMetadata(provider=provider, model=f"{provider}:m", usage=usage)
    messages = [il.user("Hi"), attrs.evolve(il.assistant("Hello"), metadata=known), il.user("word " * 40)]

    class Facts:
        model = "ollama:m"

        def context(self) -> list[il.Message]:
            return messages

        def estimate(self, *_: Any) -> int:
            return 30

    found: Any = Facts()
    found.window, found.entries, found.messages = window, entries, messages
    return found


def test_without_a_known_window_a_default_is_taken_and_named(caplog: pytest.LogCaptureFixture) -> None:
    compaction = Compaction()
    assert compaction.over(_facts(None)) == 0
    assert compaction.over(_facts(200_000)) == 200_010 + 54 - 25_600
    assert [record.message for record in caplog.records] == [
        "the context window of ollama:m is unknown; it is taken as 32000: pass limit= if it is another"
    ]


def test_the_tokens_that_a_service_reported_count() -> None:
    compaction = Compaction(limit=1_000)
    assert compaction.over(_facts(2_000, window=9)) == 1_064  # the answer's, and the question after it
    assert compaction.over(_facts(2_000, provider="openai")) == 0  # another service counted
    assert compaction.over(_facts(None)) == 0
    later = attrs.make_class("Entry", {"after": attrs.field()})("7ZZZZZZZZZZZZZZZZZZZZZZZZZ")
    assert compaction.over(_facts(2_000, later)) == 0  # the context was made smaller since


class Thinking:
    """Answers in the Messages wire with signed thinking."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def __call__(self, request: HttpRequest) -> bytes:
        self.asked.append(json.loads(request.body))
        at = len(self.asked)
        said = {
            "id": f"msg_{at}", "type": "message", "role": "assistant", "model": "claude-opus-5-5",
            "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 10, "output_tokens": 10},
            "content": [
                {"type": "thinking", "thinking": "", "signature": f"sig{at}"},
                {"type": "text", "text": f"{at} {LONG}"},
            ],
        }  # fmt: skip
        return json.dumps(said).encode()

    def signatures(self) -> list[str]:
        content = [block for message in self.asked[-1]["messages"] for block in message["content"]]
        return [block["signature"] for block in content if block["type"] == "thinking"]


def test_case_03_thinking_bound_to_its_prefix_goes_after_compaction_and_new_thinking_stays(tmp_path: Path) -> None:
    """Dropped with a Loss instead of a 400; what answers the compacted context is whole again."""
    model = Thinking()
    client = il.Client(
        "anthropic:claude-opus-5-5", transport=MemoryTransport(model), retry=0,
        settings={"anthropic": {"api_key": "k"}},
    )  # fmt: skip
    with client, open_store(tmp_path / "s.db") as store:
        session = Session.open(store, "s", client=client, context=build_context)
        say_all(session, "q1", "q2", "q3")
        assert model.signatures() == ["sig1", "sig2"]

        store.append_entry("s", EntryKind.COMPACTION_SUMMARY, "Two questions.", data={"covers": 2})
        session.refresh()
        losses = session.build_request("q4").losses
        session.send("q4")
        assert model.signatures() == []
        session.send("q5")
        assert model.signatures() == ["sig4"]

    assert [(loss.block_type, loss.verdict) for loss in losses] == [("thinking", "dropped")] * 2
    assert all(message.thinking_blocks for message in session.messages if message.role is il.Role.ASSISTANT)
