"""Field cases about what comes back: arguments, failures, truncation, unknown things, usage, stop reasons."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from interlingua.errors import ContextWindowExceededError, OverloadedError, RateLimitError, StreamInterruptedError
from interlingua.plugins import WireResponse
from interlingua.types.blocks import OpaqueBlock, TextBlock, ThinkingBlock
from interlingua.types.messages import MessageStatus, StopReason
from tests.plugins.anthropic.asking import ANTHROPIC, START, STOP, block, context, ended, read, said, streamed, whole

TOOL = {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {}}


def _call(*fragments: str) -> list[dict[str, object]]:
    return block(0, TOOL, *({"type": "input_json_delta", "partial_json": text} for text in fragments))


@pytest.mark.parametrize("fragments", [(), ("",), ("", ""), ("{}",)])
def test_case_14_empty_arguments_are_an_empty_object(fragments: tuple[str, ...]) -> None:
    (call,) = streamed(START, *_call(*fragments), ended("tool_use"), STOP).tool_calls

    assert (call.input, call.parse_error) == ({}, None)


def test_case_14_cut_arguments_are_kept_as_text() -> None:
    (call,) = streamed(START, *_call("", '{"path": "a'), ended("max_tokens"), STOP).tool_calls

    assert call.raw_input == '{"path": "a'
    assert call.parse_error
    assert call.input == {}


def test_arguments_given_at_the_start_survive_empty_fragments() -> None:
    start = {**TOOL, "input": {"path": "a"}}
    fragment = {"type": "input_json_delta", "partial_json": ""}
    (call,) = streamed(START, *block(0, start, fragment), ended("tool_use"), STOP).tool_calls

    assert call.input == {"path": "a"}


def test_case_15_an_error_in_the_stream_keeps_what_came() -> None:
    failed = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "request_id": "req_1"}
    with pytest.raises(OverloadedError) as caught:
        streamed(START, *said("half")[:2], failed)

    assert caught.value.retryable
    assert caught.value.request_id == "req_1"
    assert caught.value.partial.text == "half"
    assert caught.value.partial.metadata.status is MessageStatus.ERROR


def test_case_15_an_error_body_with_status_200_is_an_error() -> None:
    with pytest.raises(OverloadedError):
        read({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})


@pytest.mark.parametrize("end", [(), (ended(),)])
def test_case_16_a_stream_without_its_end_is_interrupted(end: tuple[dict[str, object], ...]) -> None:
    with pytest.raises(StreamInterruptedError) as caught:
        streamed(START, *said("half"), *end)

    assert caught.value.partial.text == "half"
    assert caught.value.partial.metadata.stop_reason is not StopReason.END_TURN


def test_case_17_unknown_events_deltas_and_blocks_are_no_failure() -> None:
    message = streamed(
        {"type": "ping"},
        START,
        {"type": "brand_new_event", "index": 0},
        *block(0, {"type": "brand_new", "x": 1}, {"type": "brand_new_delta", "y": 2}),
        *block(1, {"type": "text", "text": ""}, {"type": "text_delta", "text": "hi"}, {"type": "odd_delta", "z": 3}),
        {"type": "content_block_stop", "index": 7},
        ended(),
        STOP,
    )

    new, text = message.content
    assert isinstance(new, OpaqueBlock)
    assert (new.kind, new.data) == ("brand_new", {"type": "brand_new", "x": 1, "y": 2})
    assert text == TextBlock(text="hi")


def test_case_18_usage_is_inclusive_and_later_counts_replace_earlier_ones() -> None:
    start = {**START, "message": {**START["message"], "usage": {
        "input_tokens": 10, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20, "output_tokens": 1,
        "cache_creation": {"ephemeral_5m_input_tokens": 15, "ephemeral_1h_input_tokens": 5},
    }}}  # fmt: skip
    more = {**ended(output_tokens=30), "usage": {"output_tokens": 30, "output_tokens_details": {"thinking_tokens": 12}}}
    usage = streamed(start, *said("x"), ended(output_tokens=7), more, STOP).metadata.usage

    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens) == (130, 30, 12)
    assert (usage.cached_input_tokens, usage.cache_creation_input_tokens) == (100, 20)
    assert usage.cache_creation_1h_input_tokens == 5
    assert usage.buckets() == (10, 100, 20, 18, 12)


def test_case_18_what_a_proxy_does_not_report_is_unknown() -> None:
    usage = read(whole([{"type": "text", "text": "x"}], usage={"output_tokens": 5})).metadata.usage

    assert usage is not None
    assert (usage.input_tokens, usage.cached_input_tokens, usage.output_tokens) == (None, None, 5)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("end_turn", StopReason.END_TURN),
        ("max_tokens", StopReason.MAX_TOKENS),
        ("stop_sequence", StopReason.STOP_SEQUENCE),
        ("tool_use", StopReason.TOOL_USE),
        ("pause_turn", StopReason.PAUSE_TURN),
        ("refusal", StopReason.REFUSAL),
        ("model_context_window_exceeded", StopReason.CONTEXT_WINDOW),
        ("sensitive", StopReason.OTHER),
        ("brand_new", StopReason.OTHER),
    ],
)
def test_case_20_stop_reasons(raw: str, expected: StopReason) -> None:
    one = read(whole([{"type": "text", "text": "x"}], stop_reason=raw))
    other = streamed(START, *said("x"), ended(raw), STOP)

    for message in (one, other):
        assert (message.metadata.stop_reason, message.metadata.stop_reason_raw) == (expected, raw)


def test_case_20_a_stream_that_ends_without_a_reason_ended_for_an_unknown_one() -> None:
    """A whole answer without one is not complete: test_unfinished_answers.py."""
    message = streamed(START, *said("x"), ended(None), STOP)
    assert (message.metadata.stop_reason, message.metadata.stop_reason_raw) == (StopReason.OTHER, None)


def _limited(**headers: str) -> RateLimitError:
    body = b'{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}'
    error = ANTHROPIC.from_wire_error(WireResponse(status=429, headers=headers, body=body), context())
    assert type(error) is RateLimitError
    return error


def test_case_26_retry_after_in_seconds_milliseconds_and_as_a_date() -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)

    assert _limited(**{"retry-after": "7"}).retry_after == 7
    assert _limited(**{"retry-after-ms": "1500", "retry-after": "7"}).retry_after == 1.5
    assert 80 < (_limited(**{"retry-after": date}).retry_after or 0) <= 90
    assert _limited().retry_after is None


def test_case_26_the_services_own_advice_on_retrying_wins() -> None:
    assert _limited().retryable
    assert not _limited(**{"x-should-retry": "false"}).retryable


@pytest.mark.parametrize("status", [400, 413, 429])
def test_case_26_overflow_is_overflow_whatever_the_status(status: int) -> None:
    words = b"prompt is too long: 9 tokens > 8 maximum"
    body = b'{"type":"error","error":{"type":"invalid_request_error","message":"%b"}}' % words

    error = ANTHROPIC.from_wire_error(WireResponse(status=status, body=body), context())

    assert type(error) is ContextWindowExceededError
    assert not error.retryable


def test_case_03_the_whole_signature_comes_once_and_is_kept() -> None:
    start = {"type": "thinking", "thinking": "", "signature": ""}
    deltas = ({"type": "thinking_delta", "thinking": "hm"}, {"type": "signature_delta", "signature": "EqQB+/=="})
    message = streamed(START, *block(0, start, *deltas), *_call_at_one(), ended("tool_use"), STOP)

    assert message.content[0] == ThinkingBlock(text="hm", signature="EqQB+/==")


def _call_at_one() -> list[dict[str, object]]:
    return block(1, TOOL, {"type": "input_json_delta", "partial_json": '{"path": "a"}'})


def test_case_35_an_interrupted_stream_keeps_ids_and_state() -> None:
    start = {"type": "thinking", "thinking": "", "signature": ""}
    with pytest.raises(StreamInterruptedError) as caught:
        streamed(START, *block(0, start, {"type": "signature_delta", "signature": "s"}), *_call_at_one()[:2])
    partial = caught.value.partial

    assert partial.content[0] == ThinkingBlock(text="", signature="s")
    assert partial.tool_calls[0].provider_id == "toolu_1"
    assert partial.tool_calls[0].parse_error


def test_case_36_citations_are_kept_on_both_roads() -> None:
    cite = {"type": "web_search_result_location", "url": "https://e.com", "encrypted_index": "Eo8=", "cited_text": "x"}
    deltas = ({"type": "citations_delta", "citation": cite}, {"type": "text_delta", "text": "so"})
    one = streamed(START, *block(0, {"type": "text", "text": "", "citations": []}, *deltas), ended(), STOP)
    other = read(whole([{"type": "text", "text": "so", "citations": [cite]}]))

    assert one.content == other.content == (TextBlock(text="so", citations=(cite,)),)
