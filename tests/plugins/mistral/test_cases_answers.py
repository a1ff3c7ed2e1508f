"""The field's cases (test_case_NN) about what this service answers, each by its number."""

from __future__ import annotations

import json

import pytest

from interlingua.errors import ProviderError, StreamInterruptedError
from interlingua.types.blocks import TextBlock, ThinkingBlock
from interlingua.types.messages import StopReason
from tests.plugins.mistral.wire import MISTRAL, chunk, completion, context, sse, streamed, whole
from tests.support import driving


def _call(name: str, arguments: str, own: str | None = None) -> dict[str, object]:
    made: dict[str, object] = {"function": {"name": name, "arguments": arguments}}
    return made if own is None else {"id": own, **made}


def test_case_13_whole_calls_without_an_index_are_told_apart_by_id() -> None:
    """The SDK's default index is 0 for all of them."""
    first, second = _call("a", '{"x": 1}', "EscTeQY62"), _call("b", "{}", "GvtRXcOZQ")
    together = streamed(chunk({"tool_calls": [first, second]}, "tool_calls"))
    apart = streamed(chunk({"tool_calls": [first]}), chunk({"tool_calls": [second]}, "tool_calls"))
    zeros = [{**one, "index": 0} for one in (first, second)]

    assert together == apart == streamed(chunk({"tool_calls": zeros}, "tool_calls"))
    assert [(call.name, call.provider_id, call.raw_input) for call in together.tool_calls] == [
        ("a", "EscTeQY62", '{"x": 1}'),
        ("b", "GvtRXcOZQ", "{}"),
    ]
    assert together == whole(completion({"content": "", "tool_calls": [first, second]}, "tool_calls"))


def test_case_13_later_fragments_with_an_empty_name_do_not_overwrite_it() -> None:
    made = streamed(
        chunk({"tool_calls": [{"index": 0, **_call("weather", '{"ci', "call_1")}]}),
        chunk({"tool_calls": [{"index": 0, **_call("", 'ty": 1}')}]}, "tool_calls"),
    )

    assert [(call.name, call.raw_input) for call in made.tool_calls] == [("weather", '{"city": 1}')]


def test_case_14_arguments_as_an_object_are_read_too() -> None:
    entry = {"id": "EscTeQY62", "function": {"name": "f", "arguments": {"x": 1}}}
    made = whole(completion({"tool_calls": [entry]}, "tool_calls"))

    assert dict(made.tool_calls[0].input) == {"x": 1}
    assert made == streamed(chunk({"tool_calls": [entry]}, "tool_calls"))


@pytest.mark.parametrize("error", [{"object": "error", "message": "no"}, {"detail": "no"}, {"detail": [{"msg": "no"}]}])
def test_case_15_both_shapes_of_an_error_inside_a_200(error: dict[str, object]) -> None:
    with pytest.raises(ProviderError, match="no"):
        whole(error)


def test_case_15_an_error_object_in_the_stream_keeps_the_text() -> None:
    raw = sse(chunk({"content": "They "}), {"error": {"message": "gone", "type": "internal_server_error"}})
    with pytest.raises(ProviderError, match="gone") as caught:
        driving.streamed(MISTRAL, raw, context())
    assert caught.value.partial is not None
    assert caught.value.partial.text == "They "


def test_case_16_a_stream_without_an_end_is_interrupted() -> None:
    raw = sse(chunk({"content": "They "})).removesuffix(b"data: [DONE]\n\n")
    with pytest.raises(StreamInterruptedError):
        driving.streamed(MISTRAL, raw, context())


@pytest.mark.parametrize("name", ["num_cached_tokens", "prompt_tokens_details", "prompt_token_details"])
def test_case_18_cached_tokens_under_any_of_three_names(name: str) -> None:
    counts = {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105}
    cached = 64 if name == "num_cached_tokens" else {"cached_tokens": 64}
    usage = whole(completion({"content": "a"}, usage={**counts, name: cached})).metadata.usage

    assert usage is not None
    assert (usage.input_tokens, usage.cached_input_tokens) == (100, 64)


def test_case_18_audio_that_is_counted_beside_the_prompt_is_input() -> None:
    counts = {"prompt_tokens": 11, "completion_tokens": 15, "total_tokens": 401}
    details = {"prompt_tokens_details": {"audio_tokens": 375, "cached_tokens": 9}, "prompt_audio_seconds": 5}
    usage = whole(completion({"content": "a"}, usage={**counts, **details})).metadata.usage

    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (386, 15)


@pytest.mark.parametrize(
    ("finish", "expected"),
    [
        ("stop", StopReason.END_TURN),
        ("length", StopReason.MAX_TOKENS),
        ("model_length", StopReason.CONTEXT_WINDOW),
        ("tool_calls", StopReason.TOOL_USE),
        ("brand_new", StopReason.OTHER),
    ],
)
def test_case_20_every_finish_reason_has_a_stop_reason(finish: str, expected: StopReason) -> None:
    made = whole(completion({"content": "a"}, finish))

    assert (made.metadata.stop_reason, made.metadata.stop_reason_raw) == (expected, finish)
    assert made == streamed(chunk({"content": "a"}, finish))


def test_case_39_a_reply_of_reasoning_only() -> None:
    thought = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]
    made = streamed(chunk({"content": thought}), chunk({"content": ""}, "length"))

    assert made.content == (ThinkingBlock(text="hm"),)


def test_content_changes_from_chunks_to_text_within_a_stream() -> None:
    thought = [{"type": "thinking", "thinking": [{"type": "text", "text": "h"}]}]
    made = streamed(
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": thought}),
        chunk({"content": [{"type": "thinking", "thinking": [], "closed": True}]}),
        chunk({"content": "To"}),
        chunk({"content": [{"type": "text", "text": " go"}]}, "stop"),
    )

    assert made.content == (ThinkingBlock(text="h"), TextBlock(text="To go"))
    assert made == whole(completion({"content": [{**thought[0], "closed": True}, {"type": "text", "text": "To go"}]}))


def test_padding_of_chunks_is_not_kept() -> None:
    made = streamed(chunk({"content": "a"}, "stop", p="abcdefgh"))

    assert "abcdefgh" not in json.dumps(made.metadata.provider_raw)
