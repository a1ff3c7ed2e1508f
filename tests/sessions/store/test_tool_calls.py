"""Tool calls: found without reading JSON, moved through their life, answered by messages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from interlingua import CallerError
from interlingua.types.blocks import ImageBlock, MediaSource, TextBlock, ToolResultBlock, ToolUseBlock
from interlingua.types.factories import assistant
from interlingua.types.factories import tool_result as result
from interlingua_sessions import Store, ToolCallStatus

START = datetime(2026, 5, 8, 12, tzinfo=UTC)


@pytest.fixture
def asked(store: Store) -> Store:
    """Return a store whose session `s` has an answer with two calls."""
    store.create_session("s")
    calls = [
        ToolUseBlock(id="tu_1", name="read_file", provider_id="call_1"),
        ToolUseBlock(id="tu_2", name="run_it"),
    ]
    store.append(assistant([TextBlock(text="I look."), *calls], session_id="s"))
    return store


def _unanswered(store: Store) -> list[str]:
    return [call.id for call in store.unanswered_tool_calls("s")]


def test_a_call_is_pending_until_it_is_answered(asked: Store) -> None:
    message = asked.last("s")
    assert message is not None
    first = asked.tool_call("tu_1")
    assert (first.message_id, first.name, first.provider_id) == (message.id, "read_file", "call_1")
    assert (first.status, first.created_at, first.completed_at) == ("pending", message.created_at, None)
    assert _unanswered(asked) == ["tu_1", "tu_2"]

    answer = asked.append(result("tu_1", "text", session_id="s"))

    done = asked.tool_call("tu_1")
    assert (done.status, done.result_message_id, done.completed_at) == ("succeeded", answer.id, answer.created_at)
    assert _unanswered(asked) == ["tu_2"]
    assert list(asked.verify()) == []


def test_failed_calls_are_found_and_counted(asked: Store) -> None:
    asked.append(result("tu_1", "no such file", is_error=True, session_id="s"))
    asked.append(result("tu_2", "fine", session_id="s"))
    asked.create_session("other")

    assert [call.id for call in asked.failed_tool_calls("s")] == ["tu_1"]
    assert asked.count_failed_tool_calls() == {"s": 1}


def test_the_life_cycle_of_a_call(asked: Store) -> None:
    asked.update_tool_call("tu_1", started_at=START)
    running = asked.tool_call("tu_1")
    assert (running.status, running.is_running, running.started_at) == ("pending", True, START)

    end = START + timedelta(seconds=3)
    asked.update_tool_call("tu_1", status=ToolCallStatus.FAILED, completed_at=end, error="boom\0")
    failed = asked.tool_call("tu_1")
    assert (failed.is_running, failed.started_at, failed.completed_at) == (False, START, end)
    assert failed.error == "boom\N{REPLACEMENT CHARACTER}"
    assert _unanswered(asked) == ["tu_1", "tu_2"], "the model has not been told yet"

    asked.append(result("tu_1", "boom", is_error=True, session_id="s"))
    assert asked.tool_call("tu_1").completed_at == end


def test_a_call_completed_without_a_time_is_completed_now(asked: Store) -> None:
    before = datetime.now(UTC)
    asked.update_tool_call("tu_1", status=ToolCallStatus.SUCCEEDED)
    done = asked.tool_call("tu_1")

    assert done.completed_at is not None
    assert before <= done.completed_at <= datetime.now(UTC)


def test_a_cancelled_call_stays_cancelled_and_needs_no_answer(asked: Store) -> None:
    asked.update_tool_call("tu_1", status=ToolCallStatus.CANCELLED)
    assert _unanswered(asked) == ["tu_2"]

    asked.append(result("tu_1", "cancelled by the user", is_error=True, session_id="s"))
    assert asked.tool_call("tu_1").status == "cancelled"
    assert asked.failed_tool_calls("s") == []


def test_a_name_no_column_can_hold_is_still_linked(store: Store) -> None:
    store.create_session("s")
    odd = ToolUseBlock(id="tu_\0\ud800", name="ru\0n", provider_id="\ud800")
    store.append(assistant([odd], session_id="s"))

    assert store.tool_call(odd.id).name == "ru\N{REPLACEMENT CHARACTER}n"
    assert {finding.check for finding in store.verify()} <= {"I07"}, "only the name itself is blamed"


def test_only_the_first_answer_counts(asked: Store) -> None:
    first = asked.append(result("tu_1", "one", session_id="s"))
    asked.append(result("tu_1", "two", is_error=True, session_id="s"))

    call = asked.tool_call("tu_1")
    assert (call.result_message_id, call.status) == (first.id, "succeeded")


def test_calls_by_status_and_message(asked: Store) -> None:
    message = asked.last("s")
    assert message is not None
    asked.append(result("tu_2", "fine", session_id="s"))

    assert [call.id for call in asked.tool_calls("s", status=ToolCallStatus.PENDING)] == ["tu_1"]
    assert [call.id for call in asked.tool_calls("s", message_id=message.id)] == ["tu_1", "tu_2"]
    assert asked.tool_calls("s", message_id="other") == []


def test_whole_results_are_kept_beside_what_the_model_saw(asked: Store) -> None:
    picture = ImageBlock(source=MediaSource(kind="base64", data="AAAA"), media_type="image/png")
    whole = ToolResultBlock(tool_use_id="tu_1", content=(TextBlock(text="x" * 100_000), picture), details={"lines": 9})
    asked.keep_result(ToolResultBlock(tool_use_id="tu_1", content="an earlier one"))
    asked.keep_result(whole)

    assert asked.kept_result("tu_1") == whole
    assert asked.kept_result("tu_2") is None


def test_a_call_that_is_not_there_is_named(store: Store) -> None:
    for act in (store.tool_call, store.update_tool_call):
        with pytest.raises(CallerError, match="'tu_9'"):
            act("tu_9")
    with pytest.raises(CallerError, match="'tu_9'"):
        store.keep_result(ToolResultBlock(tool_use_id="tu_9", content="x"))
