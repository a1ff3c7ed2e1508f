"""An agent's run that is killed anywhere continues in another process, and no write is repeated unasked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from interlingua import Message
from interlingua.testing import ScriptedModel, call
from interlingua_agents import DEFER, Agent, approve, reject, tool
from interlingua_agents.calls import UNKNOWN_EFFECT
from interlingua_sessions import Session, open_store
from tests.support import tree

FULL = os.environ.get("INTERLINGUA_FULL") == "1"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the runs are forked")
def test_killed_at_random_places_a_run_goes_on_and_each_effect_is_there_once(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.sessions.session.surviving", "0", "200" if FULL else "20", str(tmp_path)]
    done = subprocess.run(command, cwd=tree.ROOT, capture_output=True, text=True, check=False, timeout=3000)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "of them never" in done.stdout


def _session_that_died(place: Path, paid: list[str]) -> None:
    """Leave a store with a call that had its effect and has no result."""

    @tool(side_effects="write")
    def pay(to: str) -> str:
        """Pay someone."""
        paid.append(to)
        return "paid"

    model = ScriptedModel([call("pay", to="Ada")])
    with Session.open(place, "s", client=model.client()) as session:
        turn = session.turn("pay Ada")
        answer = turn.ask([pay.definition])
        turn.start_call(answer.tool_calls[0], answer.created_at)
        pay(to="Ada")


def _resume(place: Path, paid: list[str], **settings: object) -> tuple[object, list[Message]]:
    @tool(side_effects="write", side_by_side=True)  # running beside others does not make it harmless
    def pay(to: str) -> str:
        """Pay someone."""
        paid.append(to)
        return "paid"

    decisions = settings.pop("decisions", ())
    agent = Agent(tools=[pay], **settings)  # type: ignore[call-overload]
    model = ScriptedModel(lambda _: "done")
    with Session.open(place, "s", client=model.client()) as session:
        return agent.run_sync(session=session, decisions=decisions), list(session.messages)


def test_with_nobody_to_ask_the_model_is_told_that_the_effect_is_unknown(tmp_path: Path) -> None:
    paid: list[str] = []
    _session_that_died(tmp_path / "s.db", paid)
    result, messages = _resume(tmp_path / "s.db", paid)

    assert paid == ["Ada"]
    assert UNKNOWN_EFFECT in str(messages[-2].tool_results[0].content)
    assert result.value == "done"  # type: ignore[attr-defined]


def test_a_function_that_says_yes_to_everything_repeats_nothing(tmp_path: Path) -> None:
    paid: list[str] = []
    _session_that_died(tmp_path / "s.db", paid)
    _, messages = _resume(tmp_path / "s.db", paid, confirm=lambda _: True)

    assert paid == ["Ada"]
    assert UNKNOWN_EFFECT in str(messages[-2].tool_results[0].content)


def test_deferred_it_waits_for_a_decision_about_this_and_not_for_consent_given_before(tmp_path: Path) -> None:
    paid: list[str] = []
    _session_that_died(tmp_path / "s.db", paid)
    with open_store(tmp_path / "s.db") as store:
        (made,) = [one for message in store.messages("s") for one in message.tool_calls]
    for decisions in ((), [approve(made)]):
        result, _ = _resume(tmp_path / "s.db", paid, confirm=DEFER, decisions=decisions)
        (waiting,) = result.pending  # type: ignore[attr-defined]
        assert waiting.reason == "uncertain"
        assert paid == ["Ada"]

    _, messages = _resume(tmp_path / "s.db", paid, confirm=DEFER, decisions=[reject(waiting, "Ada has the money")])
    assert paid == ["Ada"]
    assert f"{UNKNOWN_EFFECT}: Ada has the money" in str(messages[-2].tool_results[0].content)


def test_deferred_it_runs_again_when_that_is_approved(tmp_path: Path) -> None:
    paid: list[str] = []
    _session_that_died(tmp_path / "s.db", paid)
    result, _ = _resume(tmp_path / "s.db", paid, confirm=DEFER)
    _resume(tmp_path / "s.db", paid, confirm=DEFER, decisions=[approve(result.pending[0])])  # type: ignore[attr-defined]

    assert paid == ["Ada", "Ada"]


def test_a_run_that_was_done_asks_nothing_again(tmp_path: Path) -> None:
    model = ScriptedModel(["done"])
    with Session.open(tmp_path / "s.db", "s", client=model.client()) as session:
        Agent().run_sync("go", session=session)
        again = Agent().run_sync(session=session)

    assert again.value == "done"
    assert again.stop.turns == 0
    assert len(model.requests) == 1
