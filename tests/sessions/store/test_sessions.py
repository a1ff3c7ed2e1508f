"""Sessions and their session-only entries: made, listed, changed."""

from __future__ import annotations

import pytest

from interlingua import CallerError
from interlingua.types import ImageBlock, MediaSource, TextBlock
from interlingua.types.factories import user
from interlingua_sessions import EntryKind, Store
from interlingua_sessions.store import SessionNotFoundError


def test_a_session_is_what_it_was_made_of(store: Store) -> None:
    made = store.create_session("s", workspace_path="/home/é", active_model="acme:m", routing_policy={"sticky": [1]})

    assert store.session("s") == made
    assert (made.workspace_path, made.active_model, made.routing_policy) == ("/home/é", "acme:m", {"sticky": [1]})
    assert made.created_at == made.updated_at
    assert len(store.create_session().id) == 26


def test_the_latest_used_comes_first(store: Store) -> None:
    for name in ("a", "b", "c"):
        store.create_session(name, workspace_path="/w" if name != "c" else "/v")
    store.append(user("hi", session_id="a"))

    assert [session.id for session in store.sessions()] == ["a", "c", "b"]
    assert [session.id for session in store.sessions(workspace_path="/w")] == ["a", "b"]
    assert [session.id for session in store.sessions(limit=1)] == ["a"]


def test_changing_a_session_changes_only_what_is_given(store: Store) -> None:
    made = store.create_session("s", active_model="acme:m", routing_policy={"a": 1})
    changed = store.update_session("s", workspace_path="/w", routing_policy=None)

    assert (changed.workspace_path, changed.active_model, changed.routing_policy) == ("/w", "acme:m", None)
    assert changed.updated_at > made.updated_at
    assert store.update_session("s", active_model=None).active_model is None


def test_what_a_session_cannot_be(store: Store) -> None:
    store.create_session("s")
    with pytest.raises(CallerError, match="'s' already"):
        store.create_session("s")
    with pytest.raises(CallerError, match="cannot be the id"):
        store.create_session("a\0b")
    with pytest.raises(CallerError, match="no colour to change"):
        store.update_session("s", colour="red")
    for act in (store.session, store.update_session):
        with pytest.raises(SessionNotFoundError, match="'gone'"):
            act("gone")


def test_entries_stand_behind_the_newest_message(store: Store) -> None:
    store.create_session("s")
    before = store.append_entry("s", EntryKind.CUSTOM, custom_type="note", data={"n": [1, None]})
    first, second = store.extend(user(text, session_id="s") for text in "12")
    behind = store.append_entry("s", EntryKind.COMPACTION_SUMMARY, "what was said", data={"covers": 2})
    placed = store.append_entry("s", EntryKind.BRANCH_SUMMARY, "the other branch", after=first.id)

    assert (before.after, behind.after, placed.after) == (None, second.id, first.id)
    assert store.entries("s") == [before, behind, placed]
    assert store.entries("s", EntryKind.CUSTOM) == [before]
    assert (before.custom_type, before.data, behind.text) == ("note", {"n": [1, None]}, "what was said")
    assert [message.id for message in store.messages("s")] == [first.id, second.id], "entries are no messages"


def test_an_entry_of_blocks_comes_back_and_goes_with_its_session(store: Store) -> None:
    picture = ImageBlock(source=MediaSource(kind="base64", data="AAAA"), media_type="image/png")
    blocks = (TextBlock(text="a sketch: "), picture, TextBlock(text="done"))
    store.create_session("s")
    made = store.append_entry("s", EntryKind.CUSTOM, blocks, custom_type="sketch", data={"by": "Ada"})
    plain = store.append_entry("s", EntryKind.CUSTOM, "a note", custom_type="note")
    copy = store.import_lines(store.export_lines("s"), "t")

    assert (made.content, made.text, made.data) == (blocks, "a sketch: done", {"by": "Ada"})
    assert plain.content == ()
    assert store.entries("s") == [made, plain]
    assert [one.content for one in store.entries(copy.id)] == [blocks, ()]


def test_what_an_entry_cannot_be(store: Store) -> None:
    store.create_session("s")
    with pytest.raises(CallerError, match="no message 'm'"):
        store.append_entry("s", EntryKind.CUSTOM, after="m")
    with pytest.raises(CallerError, match="not JSON"):
        store.append_entry("s", EntryKind.CUSTOM, data={"x": object()})
    with pytest.raises(SessionNotFoundError):
        store.append_entry("gone", EntryKind.CUSTOM)
