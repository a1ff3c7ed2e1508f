"""Stored sessions load: the files in golden/ are the format's examples, written by hand (case 28)."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from interlingua.codec import decode_message, decode_messages, dumps_message, encode_message, read_jsonl
from interlingua.types.blocks import TextBlock, ToolUseBlock, UnknownBlock
from interlingua.types.factories import user
from interlingua.types.messages import MessageStatus, Role, RoutingMode

GOLDEN = Path(__file__).parent / "golden"


def _lines(name: str) -> list[str]:
    return (GOLDEN / name).read_text(encoding="utf-8").splitlines()


def test_a_question_and_its_answer() -> None:
    question, answer = read_jsonl(_lines("question.jsonl"))

    assert (question.id, question.session_id, question.role) == ("01HZ001", "sess_42", Role.USER)
    assert question.content == (TextBlock(text="What's a ULID?"),)
    assert question.created_at == datetime(2026, 5, 8, 10, 0, 0, 123456, tzinfo=UTC)
    metadata = answer.metadata
    assert (metadata.model, metadata.provider) == ("acme:sonnet-4-6", "acme")
    assert metadata.routing is not None
    assert metadata.usage is not None
    assert (metadata.routing.mode, metadata.routing.reason) == (RoutingMode.DEFAULT, "workspace default")
    assert metadata.usage.cost_usd == Decimal("0.000654")
    assert (metadata.usage.input_tokens, metadata.usage.output_tokens) == (8, 42)
    assert (metadata.usage.pricing_version, metadata.usage.latency_ms) == ("2026-05-08", 820)
    assert metadata.status is MessageStatus.COMPLETE


def test_a_tool_turn() -> None:
    messages = list(read_jsonl(_lines("tool_turn.jsonl")))

    assert [message.role for message in messages] == ["user", "assistant", "tool", "assistant"]
    assert messages[1].content[1] == ToolUseBlock(id="tu_01HZ100", name="read_file", input={"path": "README.md"})
    assert messages[2].metadata.parent_tool_use_id == "tu_01HZ100"
    assert messages[2].tool_results[0].tool_use_id == "tu_01HZ100"


@pytest.mark.parametrize("name", ["question.jsonl", "tool_turn.jsonl", "newer.jsonl"])
def test_what_a_golden_file_says_is_written_back_as_it_was(name: str) -> None:
    for line in _lines(name):
        assert json.loads(dumps_message(decode_message(json.loads(line)))) == json.loads(line)


def test_case_28_a_newer_versions_file_is_kept_with_one_record(caplog: pytest.LogCaptureFixture) -> None:
    """Unknown metadata fields and unknown block types are kept, so the log is no warning."""
    with caplog.at_level(logging.INFO, "interlingua"):
        messages = list(read_jsonl(_lines("newer.jsonl")))

    assert [record.levelname for record in caplog.records] == ["INFO"]
    for name in ("hologram", "smell", "schema_version 7"):
        assert name in caplog.text
    assert isinstance(messages[0].content[1], UnknownBlock)
    assert messages[0].schema_version == 7
    assert messages[0].metadata.extra["mood"] == {"valence": 0.5}
    nested = messages[1].tool_results[0].content[0]
    assert isinstance(nested, UnknownBlock)
    assert nested.raw["type"] == "smell"


def test_one_record_per_list(caplog: pytest.LogCaptureFixture) -> None:
    stored = [json.loads(line) for line in _lines("newer.jsonl")]
    with caplog.at_level(logging.INFO, "interlingua"):
        decode_messages(stored * 3)

    assert len(caplog.records) == 1


def test_a_small_message_is_stored_with_the_required_fields_in_order() -> None:
    stored = encode_message(user("hi"))

    # format.md, Messages and Metadata: additive fields are written only where they are not their defaults
    assert list(stored) == ["id", "session_id", "role", "content", "metadata", "created_at", "schema_version"]
    assert set(stored["metadata"]) == {
        "model", "provider", "routing", "usage", "parent_tool_use_id", "status", "provider_raw", "user_id", "team_id",
    }  # fmt: skip
    assert stored["content"] == [{"type": "text", "text": "hi"}]
    assert stored["created_at"].endswith("Z")
    assert len(stored["created_at"]) == len("2026-05-08T10:00:00.123456Z")
