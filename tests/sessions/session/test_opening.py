"""A system prompt is stored once, whoever begins the conversation; and what a stream does not do, it says."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import interlingua as il
from interlingua_agents.loop import AgentLoop
from interlingua_agents.tools import Toolbox, tool
from interlingua_sessions import (
    Compaction,
    NoRouteError,
    RouteCondition,
    RoutingPolicy,
    RoutingRule,
    Store,
    SystemPrompt,
    open_store,
)
from interlingua_sessions.session import AsyncSession, Session
from tests.sessions.talking import client
from tests.support import tree
from tests.support.terminal import limited

BEGINS = """
import sys
from interlingua_sessions.session import Session
from interlingua_sessions.turn import SessionState
from tests.sessions.talking import client

place, number = sys.argv[1:]
read = SessionState.refresh

def read_and_wait(core):
    read(core)
    print("read", flush=True)
    sys.stdin.readline()

with client(None) as c, Session.open(place, "s", client=c, system="Be brief.") as session:
    SessionState.refresh = read_and_wait
    session.turn(f"question {number}").start()
    print(*[message.role.value for message in session.messages], flush=True)
"""


def test_two_processes_that_begin_at_once_store_one_system_prompt(place: str) -> None:
    """Both have seen an empty conversation before either writes."""
    command = [sys.executable, "-c", BEGINS, place]
    both = [
        subprocess.Popen([*command, number], cwd=tree.ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for number in "12"
    ]
    with limited(both[0]), limited(both[1]):
        assert [one.stdout.readline() for one in both if one.stdout] == ["read\n"] * 2
    saw = sorted(one.communicate("\n", timeout=60)[0].split() for one in both)

    with open_store(place) as store:
        messages = list(store.messages("s"))
        assert list(store.verify()) == []
    assert [message.role.value for message in messages] == ["system", "user", "user"]
    assert {message.text for message in messages} == {"Be brief.", "question 1", "question 2"}
    assert saw[-1] == ["system", "user", "user"]  # the slower one has taken in what the other said
    assert saw[0] in (["system", "user"], ["system", "user", "user"])


def test_an_opening_is_stored_where_there_is_none_of_its_role(store: Store) -> None:
    store.create_session("s")
    prompt, other = il.system("a", session_id="s"), il.system("b", session_id="s")

    assert [one.text for one in store.extend([il.user("1", session_id="s")], opening=prompt)] == ["a", "1"]
    assert [one.text for one in store.extend([il.user("2", session_id="s")], opening=other)] == ["2"]
    assert store.extend([], opening=other) == []
    assert [message.text for message in store.messages("s")] == ["a", "1", "2"]


@tool(side_effects="read")
def look(name: str) -> str:
    """Look something up."""
    return name


@pytest.mark.parametrize("tools", [Toolbox([look]), AgentLoop([look])], ids=["toolbox", "loop"])
def test_a_turn_says_that_it_offers_definitions(store: Store, tools: Any) -> None:
    with client(None) as c:
        session = Session.open(store, "s", client=c)
        with pytest.raises(il.CallerError, match=r"definitions.*Agent with session="):
            session.turn("hi", tools=tools)

    assert session.messages == ()


@pytest.mark.parametrize("opened", [Session, AsyncSession])
@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("max_tokens", r"it is an option of the turns: options=\{'max_tokens': …\}"),
        ("tools", r"pass it to a turn: session.send\(…, tools=…\)"),
        ("api_key", r"pass a client: client=Client\(…, api_key=…\)"),
        ("budget_usd", r"use an Agent\(…, budget_usd=…\) and its run\(session=…\)"),
        ("modle", r"did you mean model\?"),
    ],
)
def test_an_argument_of_another_place_is_named(opened: Any, name: str, hint: str) -> None:
    with pytest.raises(TypeError, match=rf"^{opened.__name__}.open\(\) has no argument '{name}': {hint}$"):
        opened.open(":memory:", "moons", **{name: 1})


@pytest.mark.parametrize(
    ("made", "name", "hint"),
    [
        (RoutingPolicy, "fallback", r"did you mean fallbacks\?"),
        (RoutingPolicy, "model", r"pass it to the session: Session.open\(…, model=…\)"),
        (RoutingPolicy, "rest", r"pass it to the client: Client\(…, fallback=Fallback\(rest=…\)\)"),
        (RoutingRule, "nam", r"did you mean name\?"),
        (RouteCondition, "image", r"did you mean images\?"),
        (SystemPrompt, "section", r"did you mean sections\?"),
        (Compaction, "max_tokens", "use limit=…, in tokens, or share=…"),
        (Compaction, "keep", r"pass it to a policy: Compaction\(policies=\[Summary\(keep=…\)\]\)"),
    ],
)
def test_what_sessions_are_opened_with_names_the_right_argument(made: Any, name: str, hint: str) -> None:
    with pytest.raises(TypeError, match=rf"^{made.__name__}\(\) has no argument '{name}': {hint}$"):
        made(**{name: 1})


@pytest.mark.parametrize(
    ("method", "name", "hint"),
    [
        ("branch", "message", "there are: at, session_id"),
        ("undo", "sesion_id", r"did you mean session_id\?"),
        ("switch", "reasons", r"did you mean reason\?"),
        ("compact", "share", r"open the session with Session.open\(…, compactor=Compaction\(share=…\)\)"),
    ],
)
def test_a_method_of_a_session_names_the_right_argument(store: Store, method: str, name: str, hint: str) -> None:
    said = rf"^Session\.{method}\(\) has no argument '{name}': {hint}$"
    with client(None) as c, Session.open(store, "s", client=c) as session, pytest.raises(TypeError, match=said):
        getattr(session, method)(**{name: 1})


def test_a_session_without_a_model_says_where_to_pass_one() -> None:
    with (
        Session.open(":memory:", "moons") as session,
        pytest.raises(NoRouteError, match=r"pass model= to Session.open"),
    ):
        session.send("Hello")
