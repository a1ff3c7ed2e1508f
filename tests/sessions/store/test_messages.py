"""Messages in and out: whole, in order, under ids that only grow; and streamed ones on their way."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Thread

import attrs
import pytest
from hypothesis import HealthCheck, given, settings

from interlingua import CallerError
from interlingua.codec import dumps_message, loads_message
from interlingua.types import new_ulid
from interlingua.types.blocks import TextBlock, ToolUseBlock
from interlingua.types.factories import assistant, user
from interlingua.types.messages import Message, MessageMetadata, MessageStatus, Origin, Role
from interlingua_sessions import Store, open_store
from interlingua_sessions.store import SessionNotFoundError
from tests.support.conversations import histories
from tests.support.counts import examples

PARTIAL = MessageMetadata(status=MessageStatus.PARTIAL)


@pytest.fixture
def said(store: Store) -> Callable[[str], Message]:
    """Append a user's message to session `s`."""
    store.create_session("s")
    return lambda text: store.append(user(text, session_id="s"))


def _texts(store: Store, **asked: object) -> list[str]:
    return [message.text for message in store.messages("s", **asked)]  # type: ignore[arg-type]


def test_what_was_appended_comes_back_equal(store: Store) -> None:
    store.create_session("s")
    kept = MessageMetadata(user_id="u", team_id="t", app={"acme-notes": {"rating": 5}})
    whole = attrs.evolve(user("é\0\U0001f600", session_id="s"), metadata=kept)
    stored = store.append(whole)

    assert stored is whole
    assert store.message(whole.id) == whole == store.last("s")


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(histories(Origin("acme", "chat", "a"), Origin("other", "talk", "b")))
def test_any_conversation_comes_back_as_its_canonical_text(history: list[Message]) -> None:
    with open_store(":memory:") as store:
        store.create_session("default")
        store.import_lines(map(dumps_message, history), "copy")
        stored = list(store.messages("copy"))

    assert len(stored) == len(history)
    for before, after in zip(history, stored, strict=True):
        if not (before.tool_calls or before.tool_results):  # the ids of those may have been taken
            same = attrs.evolve(after, id=before.id, session_id=before.session_id)
            assert dumps_message(same) == dumps_message(loads_message(dumps_message(before)))


NEWER = """{"id":"01K00000000000000000000000","session_id":"s","role":"assistant","content":[
{"type":"hologram","beams":[1,{"x":123456789012345678901234567890}]},
{"type":"text","text":"hi","mood":"calm"}],
"metadata":{"model":null,"provider":null,"routing":null,"usage":null,"parent_tool_use_id":null,"status":"complete",
"user_id":null,"team_id":null,"provider_raw":null,"weather":{"wind":3}},
"created_at":"2026-05-08T12:00:00.123456Z","schema_version":1,"thread":"t-9"}""".replace("\n", "")


def test_unknown_fields_and_blocks_survive(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    store.create_session("s")
    store.append(loads_message(NEWER))
    with caplog.at_level(logging.INFO, logger="interlingua"):
        (stored,) = store.messages("s")

    assert dumps_message(stored) == NEWER
    assert "hologram" in caplog.text


def test_an_id_that_would_not_stand_last_is_minted_anew(store: Store, said: Callable[[str], Message]) -> None:
    first, second = said("one"), said("two")
    late = attrs.evolve(first, content="three")

    stored = store.append(late)

    assert stored.id > second.id
    assert stored == attrs.evolve(late, id=stored.id)
    assert _texts(store) == ["one", "two", "three"]


def test_ids_follow_a_clock_that_was_wrong(store: Store, said: Callable[[str], Message]) -> None:
    store.create_session("early")
    future = store.append(attrs.evolve(user("1", session_id="early"), id="7ZZZZZZZZZ0000000000000000"))

    assert future.id == "7ZZZZZZZZZ0000000000000000"
    assert store.append(user("2", session_id="early")).id == "7ZZZZZZZZZ0000000000000001"
    assert said("another session").id < future.id


@pytest.mark.parametrize(("foreign", "kept"), [("01HZ001", True), ("msg_001", False), ("01HZ\x00", False)])
def test_an_id_that_is_no_ulid_is_kept_where_later_ones_fit_behind(store: Store, foreign: str, kept: bool) -> None:
    store.create_session("s")
    stored = store.append(attrs.evolve(user("1", session_id="s"), id=foreign))

    assert (stored.id == foreign) is kept
    assert store.append(user("2", session_id="s")).id > stored.id


def test_a_copy_in_another_session_gets_an_id_of_its_own(store: Store, said: Callable[[str], Message]) -> None:
    store.create_session("branch")
    original = said("one")
    copy = store.append(attrs.evolve(original, session_id="branch"))

    assert copy.id != original.id
    assert [message.id for message in store.messages("branch")] == [copy.id]


def test_pages_bounds_and_order(store: Store) -> None:
    store.create_session("s")
    made = store.extend(user(str(number), session_id="s") for number in range(1203))
    texts = [str(number) for number in range(1203)]

    assert _texts(store) == texts
    assert _texts(store, newest_first=True) == texts[::-1]
    assert _texts(store, after=made[1].id, before=made[1100].id) == texts[2:1100]
    assert _texts(store, newest_first=True, before=made[700].id, limit=501) == texts[199:700][::-1]
    assert _texts(store, limit=0) == []
    assert store.count_messages("s") == 1203


def test_a_replay_reads_as_it_goes(store: Store, said: Callable[[str], Message]) -> None:
    store.extend(user("old", session_id="s") for _ in range(600))
    replay = store.messages("s")
    next(replay)
    said("appended meanwhile")

    assert [message.text for message in replay][-1] == "appended meanwhile"


def test_extend_stores_all_or_none(store: Store, said: Callable[[str], Message]) -> None:
    call = assistant([ToolUseBlock(id="tu_1", name="read")], session_id="s")
    with pytest.raises(CallerError, match="tu_1"):
        store.extend([user("1", session_id="s"), call, attrs.evolve(call, id=new_ulid())])

    assert _texts(store) == []


def test_a_missing_session_or_message_is_named(store: Store) -> None:
    with pytest.raises(SessionNotFoundError, match="'gone'"):
        store.append(user("1", session_id="gone"))
    with pytest.raises(SessionNotFoundError, match="'gone'"):
        store.messages("gone")
    with pytest.raises(CallerError, match="'m'"):
        store.message("m")


def test_a_streamed_message_grows_under_one_id_and_is_finished(store: Store, said: Callable[[str], Message]) -> None:
    said("question")
    stored = store.save_partial(Message(role=Role.ASSISTANT, content="he", session_id="s", metadata=PARTIAL))
    assert store.save_partial(attrs.evolve(stored, content="hello")).id == stored.id
    assert _texts(store) == ["question", "hello"]
    assert list(store.verify()) == []

    call = ToolUseBlock(id="tu_1", name="read", provider_id="call_1")
    whole = attrs.evolve(stored, content=(TextBlock(text="hello."), call), metadata=MessageMetadata())
    assert store.finish(whole) is whole
    assert list(store.messages("s"))[1] == whole
    assert [each.id for each in store.unanswered_tool_calls("s")] == ["tu_1"]
    assert list(store.verify()) == []


def test_a_message_finished_at_once_is_appended(store: Store, said: Callable[[str], Message]) -> None:
    said("question")
    store.finish(assistant("answer", session_id="s"))

    assert _texts(store) == ["question", "answer"]


def test_what_others_append_meanwhile_stands_behind(store: Store, said: Callable[[str], Message]) -> None:
    partial = store.save_partial(Message(role=Role.ASSISTANT, content="a", session_id="s", metadata=PARTIAL))
    said("behind")
    store.finish(attrs.evolve(partial, content="answer", metadata=MessageMetadata()))

    assert _texts(store) == ["answer", "behind"]


def test_the_calls_of_an_answer_that_was_cut_are_nobodys_to_run(store: Store, said: Callable[[str], Message]) -> None:
    cut = assistant([ToolUseBlock(id="tu_1", name="read")], session_id="s")
    store.finish(attrs.evolve(cut, metadata=MessageMetadata(status=MessageStatus.CANCELLED)))

    assert store.tool_call("tu_1").status == "cancelled"
    assert store.unanswered_tool_calls("s") == []
    assert list(store.verify()) == []


def test_partial_and_finished_are_told_apart(store: Store, said: Callable[[str], Message]) -> None:
    with pytest.raises(CallerError, match="finish it"):
        store.save_partial(assistant("whole", session_id="s"))
    with pytest.raises(CallerError, match="still partial"):
        store.finish(Message(role=Role.ASSISTANT, content="he", session_id="s", metadata=PARTIAL))


def test_threads_may_share_a_store(store: Store, said: Callable[[str], Message]) -> None:
    threads = [Thread(target=lambda: [said("x") for _ in range(50)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert store.count_messages("s") == 200
    assert list(store.verify()) == []
