"""Cases about answers: both roads, errors inside a 200, odd streams."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlingua.errors import (
    AuthenticationError,
    ContextWindowExceededError,
    InterlinguaError,
    QuotaExceededError,
    RateLimitError,
    ServerError,
    StreamInterruptedError,
)
from interlingua.plugins import WireResponse
from interlingua.types.blocks import OpaqueBlock, RedactedThinkingBlock, TextBlock, ThinkingBlock, ToolUseBlock
from interlingua.types.messages import Message, MessageStatus, Role, StopReason
from tests.plugins.openai.wire import (
    PROVIDER,
    body_of,
    call,
    context,
    decoder,
    events_of,
    reasoning,
    response,
    said,
    sse,
    streamed,
    whole,
)

SEARCH = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "q"}}
TWO_PARTS = reasoning() | {
    "summary": [{"type": "summary_text", "text": "One."}, {"type": "summary_text", "text": "Two."}]
}
REFUSED = said("x") | {"content": [{"type": "refusal", "refusal": "I cannot."}]}
INCOMPLETE = {"status": "incomplete"}
USER = Message(role=Role.USER, content="go")
ANSWERS = [
    response(said("Hello, wörld 🙂.")),
    response(TWO_PARTS, said("Looking.", phase="commentary"), call('{"path": "a", "n": 12345678901234567890}')),
    response(reasoning(""), SEARCH, said("Found."), said("", "msg_2")),
    response(REFUSED),
    response(call("", "call_a", item_id="fc_a"), call('{"x": ', "call_b", item_id="fc_b")),
    response(reasoning(), status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
]


@pytest.mark.parametrize("body", ANSWERS)
@pytest.mark.parametrize("size", [None, 1, 7])
def test_law_of_two_roads(body: dict[str, Any], size: int | None) -> None:
    one, other = whole(body), streamed(events_of(body), size)
    assert one == other
    assert body_of([USER, one, USER]) == body_of([USER, other, USER])


def test_items_become_blocks_in_their_order() -> None:
    message = whole(
        response(TWO_PARTS, reasoning("", item_id="rs_2"), reasoning("", None, "rs_3"), SEARCH, said("Hi."))
    )
    thinking, redacted, nothing, search, text = message.content
    assert thinking == ThinkingBlock(text="One.\n\nTwo.", signature="gAAAA-secret")
    assert redacted == RedactedThinkingBlock(data="gAAAA-secret")
    assert nothing == ThinkingBlock(text="")
    assert search == OpaqueBlock(provider="openai", kind="web_search_call", data=SEARCH)
    assert text == TextBlock(text="Hi.")


def test_case_14_empty_arguments_are_an_empty_object() -> None:
    for message in (whole(ANSWERS[4]), streamed(events_of(ANSWERS[4]))):
        empty, cut = message.tool_calls
        assert (empty.input, empty.parse_error, empty.raw_input) == ({}, None, "")
        assert cut.parse_error is not None
        assert cut.raw_input == '{"x": '


def test_arguments_keep_their_bytes_and_long_integers() -> None:
    block = whole(ANSWERS[1]).tool_calls[0]
    assert block.raw_input == '{"path": "a", "n": 12345678901234567890}'
    assert block.input["n"] == 12345678901234567890
    assert block.provider_id == "call_1"


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "code": "rate_limit_exceeded", "message": "slow", "param": None},
        {"type": "error", "error": {"type": "tokens", "code": "rate_limit_exceeded", "message": "slow"}},
        {"type": "response.failed", "response": response(status="failed", usage=None,
                                                         error={"code": "rate_limit_exceeded", "message": "slow"})},
    ],
)  # fmt: skip
def test_case_15_an_error_in_the_stream_keeps_what_was_said(event: dict[str, Any]) -> None:
    events = events_of(response(said("Partly said.")))[:5]
    with pytest.raises(RateLimitError) as raised:
        streamed([*events, event])
    assert raised.value.retryable
    assert raised.value.partial.text == "Partly said."[:10]
    assert raised.value.partial.metadata.status is MessageStatus.ERROR


def test_case_15_a_failed_response_is_its_error() -> None:
    body = response(said("Half"), status="failed", error={"code": "server_error", "message": "oops"})
    with pytest.raises(ServerError) as raised:
        whole(body)
    assert raised.value.partial.text == "Half"


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, {"error": {"message": "bad key", "code": "invalid_api_key"}}, AuthenticationError),
        (401, {"detail": "Could not parse your authentication token."}, AuthenticationError),
        (400, {"error": {"message": "too long", "code": "context_length_exceeded"}}, ContextWindowExceededError),
        (429, {"error": {"message": "pay", "type": "insufficient_quota"}}, QuotaExceededError),
        (429, {"error": {"message": "slow", "type": "requests", "code": "rate_limit_exceeded"}}, RateLimitError),
    ],
)
def test_failed_answers_are_typed(status: int, body: dict[str, Any], kind: type[InterlinguaError]) -> None:
    headers = {"x-request-id": "req_1", "retry-after-ms": "1500"}
    error = PROVIDER.from_wire_error(
        WireResponse(status=status, headers=headers, body=json.dumps(body).encode()), context()
    )
    assert type(error) is kind
    assert (error.request_id, error.retry_after) == ("req_1", 1.5)


def test_case_16_a_stream_without_its_end_is_interrupted() -> None:
    with pytest.raises(StreamInterruptedError) as raised:
        streamed(events_of(ANSWERS[1])[:-1])
    assert raised.value.partial.text == "Looking."
    assert raised.value.partial.metadata.provider_raw["replay"]["items"][0]["item"]["id"] == "rs_1"


def test_case_16_incomplete_is_length() -> None:
    message = streamed(events_of(ANSWERS[5]))
    assert (message.metadata.stop_reason, message.metadata.stop_reason_raw) == (
        StopReason.MAX_TOKENS,
        "max_output_tokens",
    )


def test_case_17_unknown_events_and_items_do_no_harm() -> None:
    novel = {"id": "x_1", "type": "dream_call", "status": "completed", "vision": [1]}
    events = events_of(response(novel, said("Awake.")))
    noise: list[dict[str, Any]] = [
        {"type": "keepalive"},
        {"type": "response.dream_call.seeing", "output_index": 0, "delta": "…"},
    ]
    data = (
        sse([*events[:2], *noise, *events[2:]]).replace(b"event: response.output_text.delta\n", b"")
        + b"data: [DONE]\n\n"
    )
    message = decoder(data, 3).message()
    assert message.content == (OpaqueBlock(provider="openai", kind="dream_call", data=novel), TextBlock(text="Awake."))


def test_case_17_item_ids_that_change_with_each_event() -> None:
    def renamed(event: dict[str, Any], number: int) -> dict[str, Any]:
        text = json.dumps(event).replace('"msg_1"', f'"a{number}"').replace('"rs_1"', f'"b{number}"')
        return json.loads(text)  # type: ignore[no-any-return]

    events = [renamed(event, number) for number, event in enumerate(events_of(response(reasoning(), said("Once."))))]
    message = streamed(events)
    assert [block.type for block in message.content] == ["thinking", "text"]
    assert message.text == "Once."


def test_events_without_output_index_are_told_apart_by_item_id() -> None:
    events = events_of(ANSWERS[1])
    bare = [{name: value for name, value in event.items() if name not in ("output_index", "content_index")}
            for event in events]  # fmt: skip
    assert streamed(bare) == whole(ANSWERS[1])


def test_a_terminal_event_without_output_keeps_what_streamed() -> None:
    events = events_of(ANSWERS[1])
    events[-1] = {"type": "response.completed", "response": ANSWERS[1] | {"output": []}}
    message = streamed(events)
    assert message == whole(ANSWERS[1])
    assert message.metadata.stop_reason is StopReason.TOOL_USE


def test_items_only_in_the_terminal_event_are_taken() -> None:
    body = ANSWERS[1]
    assert streamed([{"type": "response.completed", "response": body}]) == whole(body)


def test_deltas_without_done_and_done_without_deltas() -> None:
    events = events_of(ANSWERS[0])
    without_done = [event for event in events if not event["type"].endswith(".done")]
    without_deltas = [event for event in events if not event["type"].endswith(".delta")]
    for some in (without_done, without_deltas):
        assert streamed(some) == whole(ANSWERS[0])


def test_case_18_counts_are_inclusive_and_split_without_overlap() -> None:
    usage = whole(ANSWERS[0]).metadata.usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.service_tier) == (100, 50, "default")
    assert usage.buckets() == (30, 60, 10, 20, 30)
    assert usage.buckets().total == 150


def test_a_negative_or_absent_count_is_not_reported() -> None:
    usage = whole(response(said("x"), usage={"input_tokens": 0, "output_tokens": -9})).metadata.usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.cached_input_tokens) == (0, None, None)
    assert whole(response(said("x"), usage=None)).metadata.usage.input_tokens is None  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"status": "queued"}, (StopReason.PAUSE_TURN, "queued")),
        ({"status": "dreaming"}, (StopReason.OTHER, "dreaming")),
        (INCOMPLETE | {"incomplete_details": {"reason": "steered"}}, (StopReason.OTHER, "steered")),
        (INCOMPLETE | {"incomplete_details": {"reason": "content_filter"}}, (StopReason.REFUSAL, "content_filter")),
        ({}, (StopReason.END_TURN, "completed")),
        ({"output": [REFUSED]}, (StopReason.REFUSAL, "completed")),
        ({"output": [call("{}")]}, (StopReason.TOOL_USE, "completed")),
    ],
)  # fmt: skip
def test_case_20_stop_reasons(changes: dict[str, Any], expected: tuple[StopReason, str]) -> None:
    metadata = whole(response(said("x")) | changes).metadata
    assert (metadata.stop_reason, metadata.stop_reason_raw) == expected


def test_case_39_reasoning_alone_is_a_message() -> None:
    message = whole(ANSWERS[5])
    assert [block.type for block in message.content] == ["thinking"]
    assert isinstance(whole(response(call("{}"))).content[0], ToolUseBlock)
