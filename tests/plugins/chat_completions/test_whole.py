"""Whole answers: usage, finish reasons, shapes of content (cases 12, 15, 18, 20, 36, 39)."""

from __future__ import annotations

from typing import Any

import pytest

from interlingua.errors import CapabilityError, ContentRefusedError, MalformedResponseError
from interlingua.types.blocks import (
    AudioBlock,
    ImageBlock,
    OpaqueBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
)
from interlingua.types.messages import StopReason
from tests.plugins.chat_completions.support import body, request, whole


def test_case_18_cached_and_reasoning_are_parts_of_inclusive_totals() -> None:
    usage = whole(body({"content": "x"}, usage={
        "prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150,
        "prompt_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 10},
        "completion_tokens_details": {"reasoning_tokens": 30},
    })).metadata.usage  # fmt: skip
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (100, 50)
    assert tuple(usage.buckets()) == (50, 40, 10, 20, 30)
    assert usage.buckets().total == 150


def test_case_18_reasoning_counted_beside_the_output_is_brought_inside() -> None:
    usage = whole(body({"content": "x"}, usage={
        "prompt_tokens": 435, "completion_tokens": 38, "total_tokens": 660,
        "completion_tokens_details": {"reasoning_tokens": 187},
    })).metadata.usage  # fmt: skip
    assert usage is not None
    assert (usage.output_tokens, usage.reasoning_tokens) == (225, 187)


def test_case_18_hit_and_miss_counts() -> None:
    counts = {"prompt_tokens": 10, "completion_tokens": 1, "prompt_cache_hit_tokens": 8, "prompt_cache_miss_tokens": 2}
    usage = whole(body({"content": "x"}, usage=counts)).metadata.usage
    assert usage is not None
    assert (usage.input_tokens, usage.cached_input_tokens, usage.reasoning_tokens) == (10, 8, None)


@pytest.mark.parametrize(("raw", "reason"), [
    ("stop", StopReason.END_TURN), ("eos", StopReason.END_TURN), ("end", StopReason.END_TURN),
    ("length", StopReason.MAX_TOKENS), ("content_filter", StopReason.REFUSAL), ("sensitive", StopReason.REFUSAL),
    ("model_context_window_exceeded", StopReason.CONTEXT_WINDOW), ("from_the_future", StopReason.OTHER),
    ("", StopReason.OTHER), (None, None),  # not complete: test_unfinished_answers.py
])  # fmt: skip
def test_case_20_every_finish_reason_has_a_class(raw: str | None, reason: StopReason | None) -> None:
    metadata = whole(body({"content": "x"}, raw)).metadata
    assert (metadata.stop_reason, metadata.stop_reason_raw) == (reason, raw)


@pytest.mark.parametrize("raw", ["stop", "tool_calls", "", None])
def test_case_20_calls_stop_for_tools_whatever_the_word(raw: str | None) -> None:
    call = {"id": "x", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    assert whole(body({"tool_calls": [call]}, raw)).metadata.stop_reason is StopReason.TOOL_USE


def test_case_39_reasoning_only_reply() -> None:
    message = whole(body({"role": "assistant", "content": None, "reasoning_content": "hm"}, "length"))
    assert message.content == (ThinkingBlock(text="hm"),)
    assert message.metadata.stop_reason is StopReason.MAX_TOKENS


@pytest.mark.parametrize("content", [None, "", []])
def test_case_12_empty_content_is_an_answer_that_says_nothing(content: Any) -> None:
    message = whole(body({"role": "assistant", "content": content}))
    assert (message.text, message.tool_calls, message.thinking_blocks) == ("", [], [])
    with pytest.raises(CapabilityError, match="nothing of this conversation can be sent"):
        request([message])


def test_message_null_is_a_filtered_answer() -> None:
    message = whole(body(None, "content_filter"))
    assert (message.text, message.metadata.stop_reason) == ("", StopReason.REFUSAL)


def test_case_15_error_object_inside_200() -> None:
    with pytest.raises(ContentRefusedError):
        whole({"error": {"message": "filtered", "code": "content_filter", "type": None}})


def test_case_15_what_came_with_the_error_is_kept() -> None:
    with pytest.raises(ContentRefusedError) as caught:
        whole(body({"content": "half"}, "error", error={"message": "no", "code": "content_filter"}))
    assert caught.value.partial.text == "half"


@pytest.mark.parametrize("raw", [b"", b"<html>", b"[]", b"{}", b'{"choices":[]}', b'{"choices":{}}'])
def test_bodies_that_are_not_this_wire(raw: bytes) -> None:
    with pytest.raises(MalformedResponseError):
        whole(raw)


def test_case_36_citations_are_canonical() -> None:
    cited = {
        "type": "url_citation",
        "url_citation": {"start_index": 0, "end_index": 1, "title": "T", "url": "http://x"},
    }
    message = whole(body({"content": "x", "annotations": [cited]}))
    assert message.content == (TextBlock(text="x", citations=(cited,)),)
    _, made = request([message])
    assert [loss.verdict for loss in made.losses] == ["rewritten"]


def test_content_as_an_object_is_its_json() -> None:
    assert whole(body({"content": {"title": "Apples"}})).text == '{"title":"Apples"}'


def test_content_as_parts() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}], "signature": "s"},
        {"type": "text", "text": "a"}, {"type": "reference", "reference_ids": [1]}, {"type": "text", "text": "b"},
    ]  # fmt: skip
    assert whole(body({"content": parts})).content == (
        ThinkingBlock(text="hm", signature="s"),
        TextBlock(text="ab"),
        OpaqueBlock(provider="compatible", kind="reference", data=parts[2]),
    )


def test_encrypted_reasoning_details_are_redacted_thinking() -> None:
    details = [{"type": "reasoning.encrypted", "data": "gAAA", "format": "openai-responses-v1"}]
    message = whole(body({"content": "x", "reasoning_details": details}))
    assert message.content == (TextBlock(text="x"), RedactedThinkingBlock(data="gAAA"))
    assert message.metadata.provider_raw is not None
    assert message.metadata.provider_raw["replay"]["reasoning_details"] == details


def test_audio_and_images() -> None:
    audio = {"id": "audio_1", "data": "QUJDRA==", "transcript": "Hello", "expires_at": 9}
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    heard, seen = whole(body({"content": None, "audio": audio, "images": [image]})).content
    assert isinstance(heard, AudioBlock)
    assert isinstance(seen, ImageBlock)
    assert (heard.source.data, heard.transcript) == ("QUJDRA==", "Hello")
    assert (seen.source.kind, seen.source.data, seen.media_type) == ("base64", "AAAA", "image/png")


def test_empty_legacy_fields_say_nothing() -> None:
    empty = {"audio": {"data": "", "id": "", "transcript": ""}, "function_call": {"name": "", "arguments": ""}}
    assert whole(body({"content": "x", "refusal": "", **empty})).content == (TextBlock(text="x"),)
