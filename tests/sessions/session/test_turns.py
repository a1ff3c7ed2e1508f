"""A turn of a session: what is stored, credited, sent again and refused; over a real connection and a real store."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import attrs
import pytest

import interlingua as il
from interlingua_agents.tools import Toolbox, tool
from interlingua_sessions import EntryKind, SessionRecord, Store, open_store
from interlingua_sessions.compaction import Compaction, Summary
from interlingua_sessions.routing.policy import NoRouteError, RoutingPolicy
from interlingua_sessions.session import AsyncSession, Session
from interlingua_sessions.store import SessionNotFoundError
from interlingua_sessions.turn import SystemPrompt
from tests.sessions.talking import Counting, async_client, client
from tests.support.fake_provider import CAPABLE, Reply, served

BROKEN = Reply(status=500, body=[b"oops"])


def texts(store: Store, session_id: str = "s") -> list[tuple[str, str]]:
    return [(message.role.value, message.text) for message in store.messages(session_id)]


def test_question_and_answer_are_stored_before_send_returns(store: Store) -> None:
    with served() as server, client(server) as c:
        answer = Session.open(store, "s", client=c).send("hi")

    assert texts(store) == [("user", "hi"), ("assistant", "hello")]
    assert store.last("s") == answer
    assert answer.metadata.routing is not None
    assert list(store.verify()) == []


def test_a_session_without_an_id_gets_one(store: Store) -> None:
    with client(None) as c:
        made = Session.open(store, client=c).id
        assert Session.open(store, made, client=c).id == made

    assert len(made) == 26  # a ULID
    assert [record.id for record in store.sessions()] == [made]


def test_two_processes_may_begin_one_session(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both see that it is not there yet; the slower one goes on with what the other made, and says its question."""
    real = store.session
    answers = [SessionNotFoundError("not yet"), *[None] * 9]

    def session(session_id: str) -> SessionRecord:
        if (first := answers.pop(0)) is not None:
            store.create_session(session_id, active_model="fake:known")
            raise first
        return real(session_id)

    monkeypatch.setattr(store, "session", session)
    with served() as server, client(server) as c:
        Session.open(store, "s", client=c, policy=RoutingPolicy(fallbacks=["fake:other"])).send("hi")

    assert texts(store) == [("user", "hi"), ("assistant", "hello")]
    assert real("s").routing_policy == {"fallbacks": ["fake:other"]}


def test_a_place_is_opened_and_closed_with_the_session(tmp_path: Path) -> None:
    with served() as server, client(server) as c, Session.open(tmp_path / "s.db", "s", client=c) as session:
        session.send("hi")
    with open_store(tmp_path / "s.db") as store:
        assert texts(store) == [("user", "hi"), ("assistant", "hello")]


def test_user_and_team_are_on_every_message_and_not_sent(store: Store) -> None:
    with served() as server, client(server) as c:
        session = Session.open(store, "s", client=c, user_id="u_7", team_id="t_3")
        session.send("hi")
        session.send(il.Message(role=il.Role.USER, content="other", metadata=il.types.MessageMetadata(user_id="u_8")))

    credited = [(one.metadata.user_id, one.metadata.team_id) for one in store.messages("s")]
    assert credited == [("u_7", "t_3"), ("u_7", "t_3"), ("u_8", "t_3"), ("u_7", "t_3")]
    assert b"u_7" not in server.got[0].body + str(server.got[0].headers).encode()


def test_a_failure_keeps_the_question_and_none_answers_it(store: Store) -> None:
    with served(BROKEN, Reply()) as server, client(server) as c:
        session = Session.open(store, "s", client=c)
        with pytest.raises(il.errors.ServerError):
            session.send("hi")
        assert texts(store) == [("user", "hi")]
        session.send()

    assert texts(store) == [("user", "hi"), ("assistant", "hello")]
    assert json.loads(server.got[1].body)["texts"] == ["hi"]


def test_the_prompt_is_put_in_front_once_and_stored(store: Store) -> None:
    """Added when there is none."""
    prompt = SystemPrompt(base="You are Wolo, an AI coding agent.", agent="Wolo", display_name="CodeHelper")
    with served() as server, client(server) as c:
        Session.open(store, "s", client=c, system=prompt).send("hi")
        Session.open(store, "s", client=c, system="Something else.").send("more")

    asked = [json.loads(got.body)["texts"] for got in server.got]
    said = "You are CodeHelper, an AI coding agent."
    assert asked == [[said, "hi"], [said, "hi", "hello", "more"]]
    assert texts(store)[0] == ("system", said)


@pytest.mark.parametrize("way", ["added", "imported"])
def test_the_prompt_is_put_in_front_of_a_history_that_has_none(store: Store, way: str) -> None:
    history = [il.user("one", session_id="s"), il.assistant("two", session_id="s")]
    with served() as server, client(server) as c:
        if way == "imported":
            store.import_lines([il.codec.dumps_message(message) for message in history], session_id="s")
        session = Session.open(store, "s", client=c, system="Be brief.")
        for message in history if way == "added" else []:
            session.add(message)
        preview = session.build_request("three")
        session.send("three")
        here = [one.text for one in session.messages]
        Session.open(store, "s", client=c, system="Be long.").send("four")

    asked = [json.loads(got.body)["texts"] for got in server.got]
    whole = ["Be brief.", "one", "two", "three", "hello"]
    assert asked == [whole[:4], [*whole, "four"]]
    assert preview.body == server.got[0].body
    assert here == whole
    assert [text for _, text in texts(store)][:5] == whole
    ids = [message.id for message in store.messages("s")]
    assert ids == sorted(ids)
    assert list(store.verify()) == []


def test_a_session_that_others_gave_a_prompt_meanwhile_takes_it_in(store: Store) -> None:
    with served() as server, client(server) as c:
        session = Session.open(store, "s", client=c, system="Be brief.")
        session.add(il.user("one"))
        session.add(il.assistant("two"))
        Session.open(store, "s", client=c, system="Be long.").send("three")
        session.send("four")

    assert [json.loads(got.body)["texts"] for got in server.got] == [
        ["Be long.", "one", "two", "three"],
        ["Be long.", "one", "two", "three", "hello", "four"],
    ]
    assert [one.text for one in session.messages] == [text for _, text in texts(store)]


CALLS = [il.ToolUseBlock(id=f"tu_{at}", name="look", input={"at": at}) for at in (1, 2)]
ANSWERED = (
    il.types.ToolResultBlock(tool_use_id="tu_1", content="one"),
    il.TextBlock(text="and now?"),
    il.types.ToolResultBlock(tool_use_id="tu_2", content="two"),
)


@pytest.mark.parametrize("way", ["sent", "added", "imported"])
def test_tool_results_inside_a_users_message_become_messages_of_their_own(store: Store, way: str) -> None:
    """Some APIs and their transcripts have them there; left there, every later request would be refused."""
    made = [il.user("go", session_id="s"), il.assistant(CALLS, session_id="s"), il.user(ANSWERED, session_id="s")]
    *history, mixed = [attrs.evolve(one, id=f"01HZ00000000000000000000{at}0") for at, one in enumerate(made)]
    with served() as server, client(server) as c:
        if way == "imported":
            store.import_lines([il.codec.dumps_message(one) for one in [*history, mixed]], session_id="s")
        session = Session.open(store, "s", client=c)
        for message in [] if way == "imported" else history if way == "sent" else [*history, mixed]:
            session.add(message)
        preview = session.build_request(mixed if way == "sent" else None)
        session.send(mixed if way == "sent" else None)

    stored = list(store.messages("s"))
    assert [one.role.value for one in stored] == ["user", "assistant", "tool", "tool", "user", "assistant"]
    assert [one.metadata.parent_tool_use_id for one in stored[2:5]] == ["tu_1", "tu_2", None]
    assert stored[4].text == "and now?"
    assert [one.result_message_id for one in store.tool_calls("s")] == [stored[2].id, stored[3].id]
    assert list(store.verify()) == []
    assert preview.body == server.got[0].body
    if way == "imported":
        assert [stored[0].id, stored[1].id, stored[4].id] == [history[0].id, history[1].id, mixed.id]


def test_a_conversation_with_a_system_message_gets_no_other(store: Store) -> None:
    with served() as server, client(server) as c:
        session = Session.open(store, "s", client=c, system="Be brief.")
        session.add(il.system("Be long."))
        session.send("hi")

    assert json.loads(server.got[0].body)["texts"] == ["Be long.", "hi"]


def test_a_prompt_is_composed_of_its_parts() -> None:
    prompt = SystemPrompt(
        base="Wolo helps. ", sections={"Memory": "Wolo likes tea.", "Skills": " ", "Workspace": "Wolos dir"},
        agent="Wolo", display_name=r"\1",
    )  # fmt: skip

    assert prompt.text() == "\\1 helps.\n\n# Memory\n\n\\1 likes tea.\n\n# Workspace\n\nWolos dir"
    assert SystemPrompt(base=" ").message("s") is None


def test_resumed_elsewhere_the_wire_is_the_same_bytes(store: Store, tmp_path: Path) -> None:
    with served() as server, client(server) as c:
        session = Session.open(store, "s", client=c, system="Be brief.")
        session.send("one")
        session.send("two")
        here = session.build_request("three")
        store.export_jsonl("s", tmp_path / "s.jsonl")
        with open_store(tmp_path / "other.db") as other, client(server) as fresh:
            other.import_jsonl(tmp_path / "s.jsonl")
            there = Session.open(other, "s", client=fresh).build_request("three")

    assert there.body == here.body
    assert store.count_messages("s") == 5  # a preview stores nothing


def test_a_turn_shows_its_next_request_as_it_will_be_sent(store: Store) -> None:
    with served() as server, client(server) as c:
        turn = Session.open(store, "s", client=c).turn("one")
        shown = turn.build_request().body
        turn.ask()

    assert server.got[0].body == shown
    assert texts(store) == [("user", "one"), ("assistant", "hello")]


def test_what_another_process_added_is_taken_in(store: Store) -> None:
    with served() as server, client(server) as c:
        mine, other = Session.open(store, "s", client=c), Session.open(store, "s", client=c)
        mine.send("one")
        other.send("two")
        mine.switch("fake:known")
        other.send("three")

    assert json.loads(server.got[2].body)["texts"] == ["one", "hello", "two", "hello", "three"]
    assert other.active_model == "fake:known"
    assert [message.id for message in other.messages] == [message.id for message in store.messages("s")]


def test_what_came_in_between_stands_in_between(store: Store) -> None:
    with served() as server, client(server) as c:
        session = Session.open(store, "s", client=c)
        turn = session.turn("one")
        turn.start()
        store.append(il.user("from elsewhere", session_id="s"))
        turn.ask()

    assert texts(store) == [("user", "one"), ("user", "from elsewhere"), ("assistant", "hello")]
    assert [message.id for message in session.messages] == [message.id for message in store.messages("s")]


def test_a_turn_may_ask_aside_and_add_entries(store: Store) -> None:
    with served() as server, client(server) as c:
        turn = Session.open(store, "s", client=c).turn("one")
        turn.start()
        assert turn.complete([il.user("sum up")]).text == "hello"
        entry = turn.add_entry(EntryKind.COMPACTION_SUMMARY, "short")

    assert texts(store) == [("user", "one")]
    assert store.entries("s") == [entry] == list(turn.entries)


def test_asynchronous_sessions_do_the_same(store: Store) -> None:
    async def talk() -> tuple[str, bytes]:
        async with async_client(server) as c, AsyncSession.open(store, "s", client=c, system="Be brief.") as session:
            await session.send("one")
            async with session.stream("two") as stream:
                said = (await stream.message).text
            return said, (await session.build_request("three")).body

    stream = [b'data: {"t": "two!"}\n\n', b'data: {"end": "end_turn"}\n\n']
    with served(Reply(), Reply(body=stream)) as server, client(server) as c:
        said, wire = asyncio.run(talk())
        assert Session.open(store, "s", client=c).build_request("three").body == wire

    assert said == "two!"
    assert texts(store) == [
        ("system", "Be brief."), ("user", "one"), ("assistant", "hello"), ("user", "two"), ("assistant", "two!"),
    ]  # fmt: skip


def test_a_toolbox_is_run_and_its_calls_are_stored(store: Store) -> None:
    looked: list[str] = []

    @tool(side_effects="read")
    def look(where: str) -> str:
        """Look somewhere."""
        looked.append(where)
        return f"nothing in the {where}"

    calling = json.dumps({"say": "", "calls": [["c1", "look", {"where": "cellar"}]], "end": "tool_use"}).encode()
    with served(Reply(body=[calling]), Reply()) as server, client(server) as c:
        answer = Session.open(store, "s", client=c).send("look!", tools=Toolbox([look]))

    assert looked == ["cellar"]
    assert answer.text == "hello"
    messages = list(store.messages("s"))
    assert [message.role.value for message in messages] == ["user", "assistant", "tool", "assistant"]
    (call,) = store.tool_calls("s")
    assert (call.status, call.provider_id, call.result_message_id) == ("succeeded", "c1", messages[2].id)


def test_none_is_no_list_of_tools(store: Store) -> None:
    with client(None) as c, pytest.raises(il.CallerError, match="sequence of ToolDefinition values, not None"):
        Session.open(store, "s", client=c).send("hi", tools=None)  # type: ignore[arg-type]
    assert texts(store) == []


def test_a_compaction_is_heeded_and_the_size_judged_after_it(store: Store) -> None:
    """Too long for the model's window before, not after: the turn is answered, and history stays whole."""
    small = attrs.evolve(CAPABLE, max_context_tokens=120)
    found = il.Registry(providers={"fake": Counting(small)}, entry_points=[])
    with served() as server, client(server, found) as c:
        compaction = Compaction(limit=100, policies=[Summary(keep=0.1)])
        session = Session.open(store, "s", client=c, compactor=compaction)
        for _ in range(3):
            session.add(il.user("x" * 40))
            session.add(il.assistant("y" * 40))
        with pytest.raises(NoRouteError, match="this model's context holds 120"):
            Session.open(store, "s", client=c).build_request("more")
        session.send("more")

    assert store.count_messages("s") == 8
    assert [entry.kind for entry in store.entries("s")] == [EntryKind.COMPACTION_SUMMARY]
    assert "<summary>\nhello\n</summary>" in json.loads(server.got[-1].body)["texts"][0]
