"""Verifying, pricing again, trimming: the store looked after."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import attrs
import pytest

from interlingua._catalogue import ModelInfo, Price
from interlingua.types.blocks import TextBlock, ToolUseBlock
from interlingua.types.factories import assistant, tool_result, user
from interlingua.types.messages import Message, MessageMetadata, MessageStatus, Usage
from interlingua_sessions import Store
from interlingua_sessions.store import SessionNotFoundError
from tests.support import raw_sql


@pytest.fixture
def talk(store: Store) -> list[Message]:
    """Fill session `s`: a question, an answer with a call, its result, and another answer."""
    store.create_session("s")
    call = ToolUseBlock(id="tu_1", name="read", provider_id="call_1")
    return store.extend([
        user("question", session_id="s"),
        assistant([TextBlock(text="I look."), call], session_id="s"),
        tool_result(call, "found", session_id="s"),
        assistant("answer", session_id="s"),
    ])  # fmt: skip


BREAKS: dict[str, tuple[str, str]] = {
    "links, no row": ("DELETE FROM tool_calls", "no row among the tool calls"),
    "links, wrong message": ("UPDATE tool_calls SET message_id = result_message_id", "holds it"),
    "links, no answer": ("UPDATE tool_calls SET result_message_id = NULL", "the messages say"),
    "links, other tool": ("UPDATE tool_calls SET name = 'write'", "names tool 'write'"),
    "links, other id": ("UPDATE tool_calls SET provider_id = 'x'", "provider's id 'x'"),
    "links, status": ("UPDATE tool_calls SET status = 'pending'", "still pending"),
    "links, call of nobody": (
        """INSERT INTO tool_calls SELECT 'tu_9', session_id, message_id, NULL, name, 'pending', NULL, NULL, 0, NULL
        FROM tool_calls""",
        "no message of the session holds it",
    ),
    "links, partial": ("INSERT INTO partial_messages SELECT min(id) FROM messages", "noted as partial and is not"),
    "links, status in JSON": (
        """UPDATE messages SET metadata_json = replace(metadata_json, '"complete"', '"partial"')
        WHERE id = (SELECT max(id) FROM messages)""",
        "is partial and not noted",
    ),
    "reading, not JSON": ("UPDATE messages SET content_json = '[' WHERE role = 'user'", "cannot be read"),
    "I01": ("UPDATE messages SET content_json = '[]' WHERE role = 'user'", "holds nothing"),
}


@pytest.mark.parametrize("name", BREAKS)
def test_verify_finds_what_was_broken(store: Store, place: str, talk: list[Message], name: str) -> None:
    assert list(store.verify()) == []
    sql, told = BREAKS[name]
    raw_sql.rows(place, sql)

    findings = list(store.verify("s"))
    assert told in " ".join(finding.message for finding in findings)
    assert name.partition(",")[0] in {finding.check for finding in findings}


def test_verify_finds_a_commit_out_of_order(store: Store, place: str, talk: list[Message]) -> None:
    if place.startswith("postgresql:"):
        pytest.skip("PostgreSQL keeps no order of commits in its rows")
    raw_sql.rows(place, "UPDATE messages SET rowid = 99 WHERE role = 'user'")

    assert [(finding.check, finding.message_id) for finding in store.verify("s")] == [("ids", talk[0].id)]


def test_verify_finds_damage_of_the_file(store: Store, place: str, talk: list[Message]) -> None:
    if place.startswith("postgresql:"):
        pytest.skip("PostgreSQL keeps its references itself")
    raw_sql.rows(place, "UPDATE tool_calls SET session_id = 'gone'")

    assert "database" in {finding.check for finding in store.verify()}


def test_verify_names_a_session_that_is_not_there(store: Store) -> None:
    with pytest.raises(SessionNotFoundError, match="'gone'"):
        list(store.verify("gone"))


OLD = Price(input_per_mtok_usd=Decimal(3), output_per_mtok_usd=Decimal(15))
NEW = attrs.evolve(OLD, input_per_mtok_usd=Decimal(1))
USED = Usage(input_tokens=1_000_000, output_tokens=1_000_000, latency_ms=5)


def _lookup(price: Price, version: str) -> Callable[[str], ModelInfo | None]:
    model = ModelInfo(id="m", prices=(price,), pricing_version=version)
    return lambda name: model if name == "acme:m" else None


def _priced(usage: Usage | None) -> tuple[Decimal | None, str | None]:
    assert usage is not None
    return usage.cost_usd, usage.pricing_version


def test_repricing_keeps_what_it_cost_before(store: Store, talk: list[Message]) -> None:
    metadata = MessageMetadata(model="acme:m", provider="acme", usage=USED)
    answer = store.append(attrs.evolve(assistant("1", session_id="s"), metadata=metadata))
    partial = attrs.evolve(metadata, status=MessageStatus.PARTIAL)
    store.save_partial(attrs.evolve(assistant("2", session_id="s"), metadata=partial))
    used = store.session("s").updated_at

    (first,) = store.reprice(_lookup(OLD, "v1"))
    assert (_priced(first.old), _priced(first.new)) == ((None, None), (Decimal(18), "v1"))
    (second,) = store.reprice(_lookup(NEW, "v2"), session_id="s")
    assert (_priced(second.old), _priced(second.new)) == ((Decimal(18), "v1"), (Decimal(16), "v2"))
    assert list(store.reprice(_lookup(NEW, "v2"))) == []

    assert _priced(store.message(answer.id).metadata.usage) == (Decimal(16), "v2")
    assert store.price_history("s") == [first, second]
    assert {each.message_id for each in store.price_history("s")} == {answer.id}
    assert store.session("s").updated_at == used, "care is no use"


def test_trimming_takes_the_trace_and_leaves_what_a_replay_needs(store: Store) -> None:
    store.create_session("s")
    raw = {"origin": ["acme", "chat", "m"], "replay": {"sig": "x" * 500}, "trace": {"headers": "y" * 500}}
    metadata = MessageMetadata(provider_raw=raw)
    made = [attrs.evolve(assistant(text, session_id="s"), metadata=metadata) for text in "12"]
    old = attrs.evolve(made[0], created_at=datetime.now(UTC) - timedelta(days=40))
    old, new = store.extend([old, made[1]])

    assert store.trim_raw() == 0, "within core's own limit"
    assert store.trim_raw(before=datetime.now(UTC) - timedelta(days=30)) == 1
    trim_trace = store.message(old.id).metadata.provider_raw
    assert trim_trace is not None
    assert trim_trace["replay"] == raw["replay"]
    assert trim_trace["origin"] == raw["origin"]
    assert "headers" not in trim_trace["trace"]
    assert store.message(new.id).metadata.provider_raw == raw
    assert store.trim_raw(limit=100, session_id="s") == 1
