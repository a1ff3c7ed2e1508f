"""A session as lines of JSON, out and in again: elsewhere byte for byte, beside its original under new ids."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import pytest

from interlingua import CallerError
from interlingua._catalogue import ModelInfo, Price
from interlingua.codec import dumps_message
from interlingua.errors import DecodeError
from interlingua.types.blocks import ToolResultBlock, ToolUseBlock
from interlingua.types.factories import assistant, tool_result, user
from interlingua.types.messages import MessageMetadata, RoutingDecision, RoutingMode, Usage
from interlingua_sessions import EntryKind, Store, open_store
from interlingua_sessions.store import SessionNotFoundError
from tests.sessions.store.test_messages import NEWER


@pytest.fixture
def full(store: Store) -> Store:
    """Return a store whose session `s` has something of everything."""
    store.create_session("s", workspace_path="/w", active_model="acme:m", routing_policy={"n": 1})
    store.append(user("question", session_id="s"))
    call = ToolUseBlock(id="tu_1", name="read", provider_id="call_1", raw_input='{"n": 1.0}')
    routing = RoutingDecision(mode=RoutingMode.DEFAULT, chosen_model="acme:m", reason="the default")
    usage = Usage(input_tokens=10, output_tokens=1)
    notes = {"acme-notes": {"rating": 5}}
    metadata = MessageMetadata(model="acme:m", provider="acme", routing=routing, usage=usage, app=notes)
    asked = store.append(attrs.evolve(assistant([call], session_id="s"), metadata=metadata))
    store.update_tool_call("tu_1", started_at=datetime(2026, 5, 8, tzinfo=UTC), error="slow")
    store.append(tool_result(call, "cut…", is_error=True, session_id="s"))
    store.keep_result(ToolResultBlock(tool_use_id="tu_1", content="whole"))
    store.append_entry("s", EntryKind.COMPACTION_SUMMARY, "summary", data={"big": 2**53}, after=asked.id)
    price = Price(input_per_mtok_usd=Decimal(3), output_per_mtok_usd=Decimal(15))
    model = ModelInfo(id="m", prices=(price,), pricing_version="v1")
    assert len(list(store.reprice(lambda _: model))) == 1
    return store


def test_elsewhere_it_is_the_same_session(full: Store, tmp_path: Path) -> None:
    count = full.export_jsonl("s", tmp_path / "s.jsonl")
    with open_store(tmp_path / "other.db") as other:
        session = other.import_jsonl(tmp_path / "s.jsonl")

        assert session == full.session("s")
        assert list(other.export_lines("s")) == list(full.export_lines("s"))
        assert list(other.messages("s")) == list(full.messages("s"))
        assert other.tool_calls("s") == full.tool_calls("s")
        assert other.entries("s") == full.entries("s")
        assert other.price_history("s") == full.price_history("s")
        assert other.kept_result("tu_1") == full.kept_result("tu_1")
        assert list(other.verify()) == []
    assert count == len((tmp_path / "s.jsonl").read_text().splitlines()) == 8


def test_beside_its_original_it_has_ids_of_its_own(full: Store) -> None:
    full.import_lines(full.export_lines("s"), "copy")

    assert list(full.verify()) == []
    for before, after in zip(full.messages("s"), full.messages("copy"), strict=True):
        assert after.id != before.id
        assert [call.provider_id for call in after.tool_calls] == [call.provider_id for call in before.tool_calls]
    (call,) = full.tool_calls("copy")
    (original,) = full.tool_calls("s")
    assert call.id != original.id
    assert (call.status, call.started_at, call.error) == (original.status, original.started_at, original.error)
    assert full.kept_result(call.id) == ToolResultBlock(tool_use_id=call.id, content="whole")
    (entry,) = full.entries("copy")
    assert (entry.after, entry.text) == (call.message_id, "summary")
    assert [each.new for each in full.price_history("copy")] == [each.new for each in full.price_history("s")]


def test_lines_that_are_messages_only_make_a_session(store: Store) -> None:
    first, call = assistant([ToolUseBlock(id="call_1", name="a")]), ToolUseBlock(id="call_1", name="b")
    history = [user("1"), first, tool_result("call_1", "A"), user("2"), assistant([call]), tool_result("call_1", "B")]
    session = store.import_lines(["", *map(dumps_message, history)])

    messages = list(store.messages(session.id))
    assert [message.text for message in messages] == ["1", "", "", "2", "", ""]
    asked = [message.tool_calls[0].id for message in messages if message.tool_calls]
    answered = [message.tool_results[0].tool_use_id for message in messages if message.tool_results]
    assert asked == answered
    assert len(set(asked)) == 2, "an id used twice names two calls"
    assert [message.metadata.parent_tool_use_id for message in messages if message.tool_results] == asked
    assert list(store.verify()) == []


def test_what_a_newer_version_wrote_survives(store: Store) -> None:
    store.import_lines([NEWER], "s")

    assert list(store.export_lines("s"))[1] == NEWER


HEADER: dict[str, Any] = {"type": "session", "id": "n"}


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([], "nothing to import"),
        ([HEADER, "{"], "line 2: "),
        ([HEADER, [1]], "line 2: expected a JSON object"),
        ([HEADER, {"role": "user"}], "line 2: missing"),
        ([HEADER, {"type": "hologram"}], "update interlingua-sessions"),
        ([HEADER, {"type": "tool_call", "id": "tu_1", "status": "pending"}], "no message before this line"),
        ([HEADER, {"type": "tool_call", "id": "tu_1"}], "line 2: no 'status'"),
        ([HEADER, {"type": "repricing", "message_id": "m", "old": {}, "new": {}}], "line 2: "),
    ],
)
def test_a_wrong_line_is_named_and_nothing_is_taken(store: Store, lines: list[Any], told: str) -> None:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    with pytest.raises(DecodeError, match=told):
        store.import_lines(texts)

    assert list(store.sessions()) == []


def test_files_and_sessions_that_are_not_there_are_named(full: Store, tmp_path: Path) -> None:
    with pytest.raises(SessionNotFoundError, match="'gone'"):
        full.export_jsonl("gone", tmp_path / "x.jsonl")
    with pytest.raises(CallerError, match=r"none\.jsonl cannot be read"):
        full.import_jsonl(tmp_path / "none.jsonl")
    with pytest.raises(CallerError, match="cannot be written"):
        full.export_jsonl("s", tmp_path / "nowhere" / "x.jsonl")
    with pytest.raises(CallerError, match="'s' already"):
        full.import_lines(full.export_lines("s"))
    assert list(tmp_path.glob("*.jsonl")) == []
