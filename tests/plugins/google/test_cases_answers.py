"""Field cases about answers, and the rules of the wire for reading one."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from interlingua._plugins.registry import Registry
from interlingua._pricing import cost_of
from interlingua.types.blocks import (
    AudioBlock,
    ImageBlock,
    MediaSource,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
)
from interlingua.types.factories import user
from interlingua.types.messages import StopReason
from interlingua_google.response import continuation_token
from tests.plugins.google.wire import NEW, body, chunk, parts_of, read, streamed

CALL = {"functionCall": {"name": "read_file", "args": {"path": "a"}}}


def test_case_04_each_signature_stays_on_its_own_part() -> None:
    message = streamed(
        chunk({"text": "I "}),
        chunk({"text": "will "}),
        chunk({"text": "look.", "thoughtSignature": "c2lnMQ=="}),
        chunk({"functionCall": {"name": "read_file", "args": {}}, "thoughtSignature": "c2lnMg=="}),
        chunk({"text": "", "thoughtSignature": "c2lnMw=="}, finish="STOP"),
        model=NEW,
    )

    assert message.content[0] == TextBlock(text="I will ")
    assert message.content[1] == TextBlock(text="look.", signature="c2lnMQ==")
    assert isinstance(message.content[2], ToolUseBlock)
    assert message.content[2].signature == "c2lnMg=="
    assert message.content[3] == TextBlock(text="", signature="c2lnMw==")
    assert len(message.content) == 4


def test_thoughts_become_thinking_and_are_no_text() -> None:
    parts = ({"text": "Hm, ", "thought": True}, {"text": "Red", "thoughtSignature": "cw=="})
    message = read(chunk(*parts, finish="STOP"))

    assert message.content == (ThinkingBlock(text="Hm, "), TextBlock(text="Red", signature="cw=="))


def test_case_13_calls_without_ids_are_kept_apart() -> None:
    message = streamed(chunk(CALL), chunk(CALL, finish="STOP"))
    first, second = message.tool_calls

    assert first.id != second.id
    assert (first.provider_id, second.provider_id) == (None, None)
    assert message.metadata.stop_reason is StopReason.TOOL_USE


def test_case_14_arguments_that_are_no_object_are_kept() -> None:
    (call,) = read(chunk({"functionCall": {"name": "read_file", "args": "{cut"}}, finish="STOP")).tool_calls
    (bare,) = read(chunk({"functionCall": {"name": "read_file"}}, finish="STOP")).tool_calls

    assert (call.raw_input, call.input) == ("{cut", {})
    assert call.parse_error
    assert (bare.input, bare.parse_error) == ({}, None)


def test_whole_numbers_stay_exact() -> None:
    big = {"functionCall": {"name": "read_file", "args": {"n": 2**70}}}
    for message in (read(chunk(big, finish="STOP")), streamed(chunk(big, finish="STOP"))):
        assert message.tool_calls[0].input["n"] == 2**70


def test_arguments_in_pieces_make_one_call() -> None:
    def piece(**call: object) -> dict[str, object]:
        return {"functionCall": call}

    message = streamed(
        chunk(piece(name="write_items", willContinue=True) | {"thoughtSignature": "cw=="}),
        chunk(
            piece(partialArgs=[{"jsonPath": "$.a[0].b", "stringValue": "x", "willContinue": True}], willContinue=True)
        ),
        chunk(piece(partialArgs=[{"jsonPath": "$.a[0].b", "stringValue": "y"}], willContinue=True)),
        chunk(piece(partialArgs=[{"jsonPath": "$.a[1].c", "numberValue": 0.5}], willContinue=True)),
        chunk(piece(partialArgs=[{"jsonPath": "$.d", "boolValue": True}], willContinue=True)),
        chunk(piece()),
        chunk(finish="STOP"),
    )
    (call,) = message.tool_calls

    assert call.input == {"a": [{"b": "xy"}, {"c": 0.5}], "d": True}
    assert call.signature == "cw=="


def test_case_17_unknown_parts_are_kept_whole() -> None:
    parts = (
        {"executableCode": {"language": "PYTHON", "code": "print(1)"}, "thoughtSignature": "cw=="},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n"}},
        {"brandNew": {"x": 1}},
        {"thoughtSignature": "dA=="},
    )
    message = read(chunk(*parts, finish="STOP"))

    assert [block.kind for block in message.content if isinstance(block, OpaqueBlock)] == [
        *("executableCode", "codeExecutionResult", "brandNew", "thoughtSignature")
    ]
    assert [block.data for block in message.content if isinstance(block, OpaqueBlock)] == list(parts)


def test_media_out_is_media() -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
    sound = {"inlineData": {"mimeType": "audio/L16;codec=pcm;rate=24000", "data": "AAAA"}}
    message = read(chunk(image, sound, finish="STOP"))

    assert message.content == (
        ImageBlock(source=MediaSource(kind="base64", data="iVBORw0KGgo="), media_type="image/png"),
        AudioBlock(source=MediaSource(kind="base64", data="AAAA"), media_type="audio/L16;codec=pcm;rate=24000"),
    )


def test_case_18_usage_is_inclusive() -> None:
    """Sheet §6: thoughts are not among the candidates' tokens, tool prompts not among the prompt's."""
    usage = {
        "promptTokenCount": 100, "cachedContentTokenCount": 40, "candidatesTokenCount": 20, "thoughtsTokenCount": 5,
        "toolUsePromptTokenCount": 7, "totalTokenCount": 132, "serviceTier": "standard",
    }  # fmt: skip
    found = read(chunk({"text": "x"}, finish="STOP", usage=usage)).metadata.usage

    assert found is not None
    assert (found.input_tokens, found.output_tokens) == (107, 25)
    assert (found.cached_input_tokens, found.reasoning_tokens, found.service_tier) == (40, 5, "standard")
    assert found.buckets().total == usage["totalTokenCount"]


def test_audio_among_the_input_is_told_and_priced_apart() -> None:
    """Sheet §6: details by modality; PRICES: this model's audio costs 1 USD a million, text 0.3."""
    usage = {
        "promptTokenCount": 1000, "candidatesTokenCount": 0, "totalTokenCount": 1000, "cachedContentTokenCount": 100,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 600}, {"modality": "AUDIO", "tokenCount": 400}],
        "cacheTokensDetails": [{"modality": "AUDIO", "tokenCount": 100}],
    }  # fmt: skip
    found = read(chunk({"text": "x"}, finish="STOP", usage=usage)).metadata.usage

    assert found is not None
    assert (found.audio_input_tokens, found.cached_audio_input_tokens) == (400, 100)
    priced = cost_of(found, Registry().provider("google").model("gemini-2.5-flash"), datetime(2026, 11, 21, tzinfo=UTC))
    assert priced.cost_usd == Decimal("0.00049")  # 600 at 0.3, 300 at 1, 100 cached at 0.1


def test_case_19_the_last_counts_of_a_stream_count_and_none_is_not_zero() -> None:
    first = {"promptTokenCount": 8, "totalTokenCount": 8}
    last = {"promptTokenCount": 8, "candidatesTokenCount": 3, "totalTokenCount": 11}
    found = streamed(chunk({"text": "a"}, usage=first), chunk({"text": "b"}, finish="STOP", usage=last)).metadata.usage
    none = streamed(chunk({"text": "a"}, finish="STOP")).metadata.usage

    assert found is not None
    assert none is not None
    assert (found.input_tokens, found.output_tokens, found.cached_input_tokens) == (8, 3, None)
    assert (none.input_tokens, none.output_tokens) == (None, None)


@pytest.mark.parametrize(
    ("raw", "stop"),
    [
        ("STOP", StopReason.END_TURN),
        (1, StopReason.END_TURN),  # recorded: enums as numbers
        ("MAX_TOKENS", StopReason.MAX_TOKENS),
        ("SAFETY", StopReason.REFUSAL),
        ("PROHIBITED_CONTENT", StopReason.REFUSAL),
        ("RECITATION", StopReason.REFUSAL),
        ("IMAGE_SAFETY", StopReason.REFUSAL),
        ("CONTINUATION", StopReason.PAUSE_TURN),
        ("BRAND_NEW", StopReason.OTHER),
        (99, StopReason.OTHER),
    ],
)
def test_case_20_every_finish_reason_has_a_stop_reason(raw: object, stop: StopReason) -> None:
    message = read(chunk({"text": "x"}, finish=raw))

    assert (message.metadata.stop_reason, message.metadata.stop_reason_raw) == (stop, str(raw))


def test_case_36_citations_say_where_the_text_is_from() -> None:
    web = {"web": {"uri": "https://e.com", "title": "e"}}
    support = {"segment": {"startIndex": 0, "endIndex": 5, "text": "Seoul"}, "groundingChunkIndices": [0]}
    grounding = {"groundingChunks": [web], "groundingSupports": [support], "webSearchQueries": ["q"]}
    recited = {"citations": [{"startIndex": 0, "endIndex": 3, "uri": "https://r.com"}]}
    message = streamed(
        chunk({"text": "Seoul "}),
        chunk({"text": "it is."}, finish="STOP", groundingMetadata=grounding, citationMetadata=recited),
    )
    raw = message.metadata.provider_raw

    assert isinstance(message.content[0], TextBlock)
    assert message.content[0].text == "Seoul it is."
    assert message.content[0].citations == ({**support, "groundingChunks": [web]}, recited["citations"][0])
    assert raw is not None
    assert raw["trace"]["groundingMetadata"] == grounding


def test_case_39_an_answer_of_thoughts_alone_is_a_message() -> None:
    message = streamed(chunk({"text": "Hm.", "thought": True}), chunk(finish="MAX_TOKENS"))

    assert message.content == (ThinkingBlock(text="Hm."),)
    assert message.metadata.stop_reason is StopReason.MAX_TOKENS


def test_an_answer_that_says_nothing_is_complete() -> None:
    """Recorded: content without parts, or null, with STOP and MAX_TOKENS."""
    for content in ({"role": "model"}, None, {}):
        message = read({"candidates": [{"content": content, "finishReason": "STOP", "index": 0}]})
        assert message.text == ""


def test_a_list_of_chunks_is_the_stream_without_sse() -> None:
    chunks = [chunk({"text": "a"}), chunk({"text": "b"}), chunk(CALL, finish="STOP")]

    assert read(chunks) == streamed(*chunks)


def test_other_candidates_are_kept_beside_the_first() -> None:
    def two(first: str, second: str, finish: str | None) -> dict[str, object]:
        made = chunk({"text": first}, finish=finish)
        made["candidates"].append({"index": 1, "content": {"role": "model", "parts": [{"text": second}]}})
        return made

    message = streamed(two("a", "c", None), two("b", "d", "STOP"))

    assert message.content[0] == TextBlock(text="ab")
    assert isinstance(message.content[1], OpaqueBlock)
    assert message.content[1].data["content"]["parts"] == [{"text": "cd"}]
    assert message == read(two("ab", "cd", "STOP"))
    assert parts_of(body([user("q"), message, user("n")])) == [{"text": "q"}, {"text": "ab"}, {"text": "n"}]


def test_an_answer_cut_at_the_cap_of_one_request_says_how_it_goes_on() -> None:
    """Sheet §6: CONTINUATION, the same request again with the token, which stands at the top level (§2)."""
    cut = chunk({"text": "and so"}, finish="CONTINUATION")
    cut["candidates"][0]["continuationToken"] = "tok"

    for found in (read(cut), streamed(cut)):
        assert found.metadata.stop_reason is StopReason.PAUSE_TURN
        assert continuation_token(found) == "tok"
    again = body([user("q")], provider_options={"continuationToken": "tok"})
    assert again["continuationToken"] == "tok"
    assert continuation_token(read(chunk({"text": "x"}, finish="STOP"))) is None
