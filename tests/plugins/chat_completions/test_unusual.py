"""Shapes of answers that few services send: what they say is not lost, and what failed is a typed error.

Expected values: the official SDK on the same bytes, the service's own words, or what was put in.
"""

from __future__ import annotations

from typing import Any

import pytest

from interlingua.errors import BadRequestError, OverloadedError, ProviderError, RateLimitError, ServerError
from interlingua.plugins import WireResponse
from interlingua.types.blocks import OpaqueBlock, TextBlock, ThinkingBlock
from interlingua.types.messages import MessageStatus
from tests.plugins.chat_completions.support import (
    body,
    calls_of,
    chunk,
    context,
    decoded,
    provider,
    sdk,
    sse,
    streamed,
    whole,
)

FIELDS = ("reasoning_content", "reasoning", "reasoning_text", "thinking")


def fragment(**function: str) -> dict[str, Any]:
    return {"tool_calls": [{"index": 0, "type": "function", "function": function}]}


def test_a_name_in_pieces_is_what_the_sdk_accumulates() -> None:
    first = {"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": {"name": "get_", "arguments": ""}}]}
    chunks = [chunk(first), chunk(fragment(name="weather", arguments='{"a":1}')), chunk({}, "tool_calls")]
    with sdk(sse(chunks), "text/event-stream").chat.completions.stream(model="m", messages=[]) as stream:
        (expected,) = stream.get_final_completion().choices[0].message.tool_calls

    assert calls_of(streamed(chunks)) == [(expected.function.name, expected.id, expected.function.arguments)]


def test_a_name_said_again_stays() -> None:
    chunks = [chunk(fragment(name="f", arguments="")), chunk(fragment(name="f", arguments="{}")), chunk({}, "stop")]
    assert calls_of(streamed(chunks)) == [("f", None, "{}")]


@pytest.mark.parametrize("key", ["compatible", "deepseek", "xai", "groq"])
@pytest.mark.parametrize("field", FIELDS)
def test_reasoning_is_found_in_whichever_field(key: str, field: str) -> None:
    said = {"role": "assistant", field: "hm", "content": "x"}
    expected = (ThinkingBlock(text="hm"), TextBlock(text="x"))

    assert whole(body(said), provider(key)).content == expected
    assert (
        streamed([chunk({field: "h"}), chunk({field: "m", "content": "x"}, "stop")], provider(key)).content == expected
    )


@pytest.mark.parametrize("value", [{"text": "hm"}, {"content": "hm"}, ["h", "m"], [{"type": "text", "text": "hm"}]])
def test_reasoning_as_parts_is_read(value: Any) -> None:
    assert whole(body({"content": None, "reasoning": value})).content == (ThinkingBlock(text="hm"),)


def test_a_detail_that_the_reasoning_field_does_not_repeat_is_kept() -> None:
    """OpenRouter's details may hold a summary beside the text (its SDK's types); one that repeats is not told twice."""
    summary = {"type": "reasoning.summary", "summary": "In short."}
    said = {"type": "reasoning.text", "text": " hm"}
    answer = {"content": "x", "reasoning": "hm", "reasoning_details": [said, summary]}
    thinking, text, kept = whole(body(answer), provider("openrouter")).content

    assert (thinking, text) == (ThinkingBlock(text="hm"), TextBlock(text="x"))
    assert isinstance(kept, OpaqueBlock)
    assert kept.data == summary


def test_text_where_older_completions_have_it() -> None:
    expected = (TextBlock(text="ab"),)
    choices = [
        {"choices": [{"index": 0, "text": text, "finish_reason": end}]} for text, end in (("a", None), ("b", "stop"))
    ]

    assert whole({"choices": [{"index": 0, "text": "ab", "finish_reason": "stop"}]}).content == expected
    assert streamed(choices).content == expected


def test_text_beside_a_message_is_the_message_again() -> None:
    answer = body({"content": "a"})
    answer["choices"][0]["text"] = "a"
    assert whole(answer).content == (TextBlock(text="a"),)


def test_one_call_without_its_list() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
    assert calls_of(whole(body({"content": None, "tool_calls": call}))) == [("f", "c", '{"a":1}')]


@pytest.mark.parametrize("indexes", [(0, 1), (None, None), (0, 0), (1, 2)])
def test_several_choices_however_numbered_stay_apart(indexes: tuple[int | None, ...]) -> None:
    choices = [
        {"index": index, "message": {"content": text}, "finish_reason": "stop"}
        for index, text in zip(indexes, "ab", strict=True)
    ]
    first, second = whole({"choices": choices}).content

    assert first == TextBlock(text="a")
    assert isinstance(second, OpaqueBlock)
    assert second.data["message"]["content"] == "b"


def test_a_count_below_zero_is_not_reported() -> None:
    usage = whole(body({"content": "x"}, usage={"prompt_tokens": -1, "completion_tokens": 2})).metadata.usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (None, 2)


# Failures with a good status, in the shapes of gateways: Cloudflare's envelope, FastAPI's, and those of bare servers.
FAILURES: list[tuple[dict[str, Any], type[ProviderError], str]] = [
    ({"success": False, "result": None, "errors": [{"code": 7000, "message": "No route"}]}, ServerError, "No route"),
    ({"detail": "Busy"}, ServerError, "Busy"),
    ({"detail": [{"loc": ["body"], "msg": "Field required", "type": "missing"}]}, ServerError, "Field required"),
    ({"code": 500, "msg": "Broken"}, ServerError, "Broken"),
    ({"choices": None, "message": "Slow down", "code": 429}, RateLimitError, "Slow down"),
    ({"choices": [], "error": {"message": "Bad", "code": 400}}, BadRequestError, "Bad"),
    ({"object": "error", "message": "Bad", "code": 400}, BadRequestError, "Bad"),
]


@pytest.mark.parametrize(("answer", "kind", "words"), FAILURES)
def test_a_failure_in_a_200_is_typed_on_both_roads(answer: Any, kind: type[ProviderError], words: str) -> None:
    with pytest.raises(kind, match=words):
        whole(answer)
    failed = decoded(sse([chunk({"content": "a"}), answer])).failed
    assert type(failed) is kind
    assert words in str(failed)


def test_a_failure_that_older_local_servers_write_as_a_field_of_its_own_is_typed() -> None:
    """llama.cpp of 2024 and the gateways on it: `error: {…}` instead of an event."""
    failed = decoded(
        sse([chunk({"content": "a"}), b'error: {"code": 500, "message": "Broken"}\n\n'], done=False)
    ).failed

    assert type(failed) is ServerError
    assert failed.message == "Broken"


def test_a_failure_without_a_message_says_msg() -> None:
    error = provider().from_wire_error(WireResponse(status=401, body=b'{"code": 1, "msg": "Who?"}'), context())
    assert error.message == "Who?"


def test_a_first_chunk_of_filter_results_is_no_failure() -> None:
    """As Azure sends it (recorded), and a choice without a delta, as its filter results come later."""
    results = {"choices": [], "prompt_filter_results": [{"prompt_index": 0}]}
    late = {"choices": [{"index": 0, "finish_details": None, "content_filter_result": {"error": {"code": "x"}}}]}
    assert streamed([results, chunk({"content": "a"}), late, chunk({}, "stop")]).text == "a"


# As OpenRouter answered when its upstream broke off: a 200, the error inside the choice (review of other suites).
BROKEN_OFF = {"code": 502, "message": "Error processing stream", "metadata": {"error_type": "provider_unavailable"}}


@pytest.mark.parametrize("finish", [None, "error"])
def test_an_error_inside_a_choice_is_an_error_with_the_text_kept(finish: str | None) -> None:
    answer = {"choices": [{"index": 0, "message": {"content": "Half a"}, "finish_reason": finish, "error": BROKEN_OFF}]}
    with pytest.raises(OverloadedError, match="Error processing stream") as caught:
        whole(answer)
    assert caught.value.partial is not None
    assert (caught.value.partial.text, caught.value.partial.metadata.status) == ("Half a", MessageStatus.ERROR)

    last = chunk({"content": " a"})
    last["choices"][0] |= {"error": BROKEN_OFF, "finish_reason": finish}
    with pytest.raises(OverloadedError, match="Error processing stream") as cut:
        decoded(sse([chunk({"content": "Half"}), last])).message()
    assert cut.value.partial is not None
    assert cut.value.partial.text == "Half a"


def test_a_whole_answer_without_a_finish_reason_is_not_complete() -> None:
    """Recorded from OpenRouter, cut at the limit: `finish_reason` and the upstream's own are null."""
    message = whole({"choices": [{"index": 0, "message": {"content": "These pacts"}, "finish_reason": None}]})
    stated = whole({"choices": [{"index": 0, "message": {"content": "All."}, "finish_reason": ""}]})

    assert (message.text, message.metadata.status, message.metadata.stop_reason) == (
        "These pacts",
        MessageStatus.PARTIAL,
        None,
    )
    assert stated.metadata.status is MessageStatus.COMPLETE  # recorded: a proxy with the empty word
