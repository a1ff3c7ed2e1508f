"""Streams: usage, ends, errors, odd chunks (cases 15, 16, 17, 19; WIRE.md, Streams)."""

from __future__ import annotations

from typing import Any

import pytest

from interlingua.errors import (
    BadRequestError,
    ContextWindowExceededError,
    OverloadedError,
    ProviderError,
    StreamInterruptedError,
)
from interlingua.types.blocks import OpaqueBlock, TextBlock, ThinkingBlock
from interlingua.types.factories import user
from interlingua.types.messages import MessageStatus, StopReason
from tests.plugins.chat_completions.support import body, chunk, decoded, preset, provider, request, sse, streamed, whole

USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
HI = chunk({"role": "assistant", "content": "Hi"})
STOP = chunk({}, "stop")


def in_choice(usage: dict[str, Any]) -> dict[str, Any]:
    one = chunk({}, "stop")
    one["choices"][0]["usage"] = usage
    return one


@pytest.mark.parametrize(
    "chunks",
    [
        [HI, STOP, chunk(None, usage=USAGE)],
        [HI, chunk({}, "stop", usage=USAGE)],
        [HI, STOP, chunk({}, usage=USAGE)],
        [chunk({"content": "Hi"}, usage={**USAGE, "completion_tokens": 1}), chunk({}, "stop", usage=USAGE)],
        [HI, in_choice(USAGE)],
    ],
    ids=["empty choices", "finish chunk", "empty delta", "many chunks", "in the choice"],
)
def test_case_19_usage_wherever_the_service_puts_it(chunks: list[Any]) -> None:
    usage = streamed(chunks).metadata.usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (7, 3)


def test_case_19_absent_usage_is_none_not_zero() -> None:
    usage = streamed([HI, STOP]).metadata.usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.cached_input_tokens) == (None, None, None)


def test_case_19_include_usage_is_asked_where_it_is_accepted() -> None:
    assert request([user("x")], stream=True)[0]["stream_options"] == {"include_usage": True}
    assert "stream_options" not in request([user("x")], provider("together"), stream=True)[0]
    assert "stream_options" not in request([user("x")])[0]


@pytest.mark.parametrize("noise", [
    chunk(None), {"id": "c1"}, {"choices": None}, {"choices": [None]}, {"object": "ping"}, [], "text", 3,
    b": keep-alive\n\n", b"event: unheard-of\ndata: {}\n\n", chunk({"unheard_of": 1}),
    {"choices": [], "prompt_filter_results": [{"prompt_index": 0}]},
])  # fmt: skip
def test_case_17_unknown_chunks_are_ignored_wherever_they_stand(noise: Any) -> None:
    expected = streamed([HI, STOP])
    assert streamed([noise, HI, noise, STOP, noise]) == expected


def test_case_17_what_is_not_understood_is_kept_in_the_trace() -> None:
    raw = streamed([HI, chunk({}, "stop", x_new={"a": 1})]).metadata.provider_raw
    assert raw is not None
    assert raw["trace"]["x_new"] == {"a": 1}


def test_case_16_cut_stream_is_interrupted_with_its_text() -> None:
    with pytest.raises(StreamInterruptedError) as caught:
        decoded(sse([HI, chunk({"content": " there"})], done=False)).message()
    assert caught.value.partial.text == "Hi there"
    assert caught.value.partial.metadata.status is MessageStatus.ERROR


def test_case_16_finish_reason_without_done_is_complete() -> None:
    message = streamed([HI, STOP], done=False)
    assert (message.metadata.status, message.metadata.stop_reason) == (MessageStatus.COMPLETE, StopReason.END_TURN)


@pytest.mark.parametrize("key", ["compatible", "groq", "openai", "openrouter", "mistral", "zai"])
def test_case_16_done_after_a_null_finish_reason_is_an_interruption(key: str) -> None:
    with pytest.raises(StreamInterruptedError) as caught:
        decoded(sse([HI, chunk({"content": " there"})]), provider(key)).message()
    assert caught.value.partial.text == "Hi there"


@pytest.mark.parametrize("key", ["compatible", "groq", "openai", "openrouter", "mistral", "zai"])
def test_done_after_whole_calls_without_a_finish_reason_is_complete(key: str) -> None:
    """Recorded: Kimi K2 of Novita, through OpenRouter."""
    call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "version", "arguments": "{}"}}
    message = streamed([chunk({"role": "assistant", "tool_calls": [call]})], provider(key))

    assert [one.name for one in message.tool_calls] == ["version"]
    assert (message.metadata.status, message.metadata.stop_reason) == (MessageStatus.COMPLETE, StopReason.TOOL_USE)


@pytest.mark.parametrize("text", ["content", "reasoning"])
def test_only_services_known_for_it_may_end_without_the_member(text: str) -> None:
    """Recorded: Snowflake's Cortex, whose streams have no `finish_reason` at all."""
    pieces = [{"id": "c1", "choices": [{"index": 0, "delta": {text: piece}}]} for piece in ("Hi", " there")]
    message = streamed(pieces)
    assert (message.metadata.status, message.metadata.stop_reason) == (MessageStatus.COMPLETE, StopReason.OTHER)
    assert streamed(pieces, preset(dialect={"finish_optional": True})).content == message.content

    for target in (preset(), provider("groq"), provider("openai")):
        with pytest.raises(StreamInterruptedError):
            decoded(sse(pieces), target).message()


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"message": "busy", "type": "service_unavailable_error", "code": "server_is_overloaded"}, OverloadedError),
        ({"message": "Token limit reached", "code": 400}, BadRequestError),
        ({"message": "too long", "code": "context_length_exceeded"}, ContextWindowExceededError),
        ("just text", ProviderError),
    ],
)
def test_case_15_error_in_a_good_stream(error: Any, kind: type[ProviderError]) -> None:
    decoder = decoded(sse([HI, {"error": error}], done=False))
    with pytest.raises(kind) as caught:
        decoder.message()
    assert caught.value.partial.text == "Hi"
    assert caught.value.retryable is (kind in (OverloadedError, ProviderError))


def test_case_15_error_as_first_chunk_and_as_event() -> None:
    raw = b'event: error\ndata: {"error":{"message":"no","type":"invalid_request_error"}}\n\n'
    decoder = decoded(raw)
    assert isinstance(decoder.failed, BadRequestError)


@pytest.mark.parametrize("sent", [
    [chunk({"content": "a"}), chunk({"content": "b"}, "stop")],
    [chunk({"content": "a"}), chunk({"content": "b"}, "stop"), chunk({"content": ""}, "stop")],
    [chunk({"content": "ab", "role": "assistant", "refusal": None, "tool_calls": None}), STOP],
    [chunk({"content": [{"type": "text", "text": "ab"}]}), STOP],
])  # fmt: skip
def test_finish_chunk_may_carry_content_and_may_be_repeated(sent: list[Any]) -> None:
    assert streamed(sent) == whole(body({"role": "assistant", "content": "ab"}))


def test_thinking_stands_before_text_whatever_order_it_comes_in() -> None:
    message = streamed([chunk({"content": "b"}), chunk({"reasoning": "a"}), STOP])
    assert message.content == (ThinkingBlock(text="a"), TextBlock(text="b"))


def test_repeated_reasoning_fields_are_one_thought() -> None:
    details = [{"type": "reasoning.text", "text": "a", "index": 0, "format": "unknown"}]
    message = streamed([chunk({"reasoning": "a", "reasoning_details": details}), STOP])
    assert message.content == (ThinkingBlock(text="a"),)
    assert message == whole(body({"content": None, "reasoning": "a", "reasoning_details": details}))


def test_refusal_deltas_make_a_refusal() -> None:
    message = streamed([chunk({"refusal": "I "}), chunk({"refusal": "won't"}), STOP])
    assert message == whole(body({"content": None, "refusal": "I won't"}))
    assert message.text == "I won't"
    assert (message.metadata.stop_reason, message.metadata.stop_reason_raw) == (StopReason.REFUSAL, "stop")


def test_other_choices_are_kept() -> None:
    def at(index: int, text: str, finish: str | None = None) -> dict[str, Any]:
        return {"index": index, "delta": {"content": text}, "finish_reason": finish}

    chunks = [chunk(None) | {"choices": [one]} for one in (at(0, "a"), at(1, "x"), at(0, "b"), at(1, "y"))]
    message = streamed([*chunks, chunk(None) | {"choices": [at(1, "", "length"), at(0, "", "stop")]}])
    assert message.text == "ab"
    (other,) = [block for block in message.content if isinstance(block, OpaqueBlock)]
    assert other.kind == "choice"
    assert other.data == {"index": 1, "message": {"content": "xy"}, "finish_reason": "length"}
    first = {"index": 0, "message": {"content": "ab"}, "finish_reason": "stop"}
    second = {"index": 1, "message": {"content": "xy", "refusal": None}, "finish_reason": "length"}
    assert whole(body(None) | {"choices": [first, second]}) == message
