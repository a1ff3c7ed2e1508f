"""Cases that touch this wire, and what WIRE.md has of answers."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from interlingua._json import thaw
from interlingua.errors import BadRequestError, OverloadedError
from interlingua.plugins import WireResponse
from interlingua.types.blocks import (
    ImageBlock,
    MediaSource,
    OpaqueBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
)
from interlingua.types.factories import assistant, tool_result, user
from interlingua.types.messages import Message, StopReason
from interlingua_openrouter.costs import generation_id, reported_cost
from tests.plugins.openrouter.asking import MODEL, OPENROUTER, answer, asked, body, chunk, context, read, sse, streamed
from tests.support import driving

DETAILS = [
    {"type": "reasoning.text", "text": "Two files.", "signature": "sig==", "format": "anthropic-claude-v1", "index": 0},
    {"type": "reasoning.encrypted", "data": "b3BhcXVl", "id": "rs_1", "format": "openai-responses-v1", "index": 1},
]
CALL = {"id": "toolu_01", "type": "function", "function": {"name": "read_file", "arguments": '{ "path":"a" }'}}
THOUGHT = {"content": "I look.", "reasoning": "Two files.", "reasoning_details": DETAILS, "tool_calls": [CALL]}


def next_turn(message: Message, **options: Any) -> dict[str, Any]:
    results = [tool_result(call, "r") for call in message.tool_calls]
    found: dict[str, Any] = body([user("q"), message, *results], **options)["messages"][1]
    return found


def test_case_03_own_reasoning_goes_back_verbatim_and_in_order() -> None:
    message = read(answer(THOUGHT, "tool_calls"))

    assert message.content[0] == ThinkingBlock(text="Two files.")
    sent = next_turn(message)
    assert sent["reasoning_details"] == DETAILS
    assert "reasoning" not in sent
    assert sent["tool_calls"] == [CALL]


def test_case_03_deltas_of_details_are_merged_by_index() -> None:
    pieces: list[dict[str, Any]] = [
        {"type": "reasoning.text", "text": "Two ", "format": "anthropic-claude-v1", "index": 0},
        {"type": "reasoning.text", "text": "files.", "format": "anthropic-claude-v1", "index": 0},
        {"type": "reasoning.text", "signature": "old", "format": "anthropic-claude-v1", "index": 0},
        {"type": "reasoning.text", "signature": "sig==", "format": "anthropic-claude-v1", "index": 0},
        {"type": "reasoning.encrypted", "data": "b3Bh", "id": "rs_1", "format": "openai-responses-v1", "index": 1},
        {"type": "reasoning.encrypted", "data": "cXVl", "id": "rs_1", "format": "openai-responses-v1", "index": 1},
    ]
    chunks = [chunk({"reasoning": one.get("text"), "reasoning_details": [one]}) for one in pieces]
    calls = chunk({"tool_calls": [{"index": 0, **CALL}]})
    message = streamed(*chunks, chunk({"content": "I look."}), calls, chunk({}, "tool_calls"))

    assert message == read(answer(THOUGHT, "tool_calls"))
    assert next_turn(message)["reasoning_details"] == DETAILS


def test_case_01_other_models_do_not_get_the_reasoning() -> None:
    message = read(answer(THOUGHT, "tool_calls"))
    other = asked([user("q"), message, tool_result(message.tool_calls[0], "r")], model="openai/gpt-5.5")

    assert b"reasoning" not in other.body
    assert {loss.block_type for loss in other.losses} >= {"thinking", "redacted_thinking"}


def test_case_02_reasoning_is_not_text() -> None:
    message = read(answer(THOUGHT, "tool_calls"))

    assert message.text == "I look."
    assert next_turn(message, model="openai/gpt-5.5")["content"] == "I look."


def test_plain_reasoning_goes_back_where_there_are_no_details() -> None:
    assert next_turn(read(answer({"content": "Hi", "reasoning": "Plain."})))["reasoning"] == "Plain."


def test_a_call_that_a_server_made_while_reasoning_is_kept_and_goes_back() -> None:
    made = {"type": "reasoning.server_tool_call", "tool_name": "web", "arguments": "{}", "result": "r", "index": 0}
    message = read(answer({"content": "Hi", "reasoning_details": [made]}))

    assert OpaqueBlock(provider="openrouter", kind="reasoning.server_tool_call", data=made) in message.content
    assert next_turn(message)["reasoning_details"] == [made]


def test_case_39_a_reply_of_reasoning_only() -> None:
    message = read(answer({"content": None, "reasoning": "Hm", "reasoning_details": DETAILS[1:]}, "length"))

    assert message.content == (ThinkingBlock(text="Hm"), RedactedThinkingBlock(data="b3BhcXVl"))
    assert message.metadata.stop_reason is StopReason.MAX_TOKENS


def test_case_13_a_later_empty_id_is_no_new_call() -> None:
    first = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "read_file", "arguments": ""}}
    later = {"index": 0, "id": "", "type": "function", "function": {"arguments": '{"path":"a"}'}}
    message = streamed(chunk({"tool_calls": [first]}), chunk({"tool_calls": [later]}), chunk({}, "tool_calls"))

    assert [(call.provider_id, thaw(call.input)) for call in message.tool_calls] == [("call_1", {"path": "a"})]


def test_case_15_an_error_in_the_stream_keeps_the_text() -> None:
    error = {"code": 502, "message": "Gone", "metadata": {"error_type": "provider_overloaded", "provider_code": "x"}}
    raw = sse([chunk({"content": "They are "}), chunk({}, "error", error=error)], done=False)
    with pytest.raises(OverloadedError) as caught:
        driving.streamed(OPENROUTER, raw, context())

    assert caught.value.retryable
    assert caught.value.partial.text == "They are "


def test_case_15_an_error_in_a_200() -> None:
    with pytest.raises(BadRequestError, match="Token limit"):
        read({"error": {"code": 400, "message": "Token limit reached"}})


def test_case_18_and_cost_is_kept_beside_ours() -> None:
    usage = {
        "prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050, "cost": 0.00123, "is_byok": False,
        "prompt_tokens_details": {"cached_tokens": 800, "cache_write_tokens": 100},
        "completion_tokens_details": {"reasoning_tokens": 30},
    }  # fmt: skip
    message = read(answer({"content": "Hi"}, usage=usage))
    found = message.metadata.usage

    assert found is not None
    assert (found.input_tokens, found.output_tokens, found.reasoning_tokens) == (1000, 50, 30)
    assert (found.cached_input_tokens, found.cache_creation_input_tokens) == (800, 100)
    assert found.cost_usd is None  # core's, from the price table
    assert reported_cost(message) == Decimal("0.00123")
    assert generation_id(message) == "gen-1"
    assert streamed(chunk({"content": "Hi"}), chunk({}, "stop"), chunk({}, usage=usage)) == message


def test_nothing_reported_is_no_cost() -> None:
    assert reported_cost(read(answer({"content": "Hi"}))) is None
    assert reported_cost(assistant("Hi")) is None


def test_the_generation_endpoint_is_asked_for_a_cost() -> None:
    message = read(answer({"content": "Hi"}))
    request = OPENROUTER.auxiliary_request("generation_cost", {"message": message})
    answered = json.dumps({"data": {"id": "gen-1", "total_cost": 0.0042}}).encode()

    assert (request.method, request.path) == ("GET", "/generation?id=gen-1")
    assert OPENROUTER.auxiliary_request("generation_cost", {"id": "a b"}).path == "/generation?id=a%20b"
    assert OPENROUTER.from_wire_auxiliary("generation_cost", WireResponse(body=answered)) == Decimal("0.0042")


def test_case_20_the_upstreams_finish_reason_is_in_the_trace() -> None:
    whole = answer({"content": "Hi"}, provider="Anthropic")
    whole["choices"][0]["native_finish_reason"] = "end_turn"
    raw = read(whole).metadata.provider_raw

    assert raw is not None
    assert (raw["trace"]["native_finish_reason"], raw["trace"]["provider"]) == ("end_turn", "Anthropic")


def test_case_36_citations_stand_on_the_text() -> None:
    cited = {"type": "url_citation", "url_citation": {"url": "https://example.com", "title": "t"}}
    message = read(answer({"content": "Hi", "annotations": [cited]}))

    assert message.content == (TextBlock(text="Hi", citations=(cited,)),)
    assert streamed(chunk({"content": "Hi"}), chunk({"annotations": [cited]}), chunk({}, "stop")) == message


def test_images_out() -> None:
    url = "data:image/png;base64,iVBORw0KGgo="
    message = read(answer({"content": "", "images": [{"type": "image_url", "image_url": {"url": url}}]}))

    source = MediaSource(kind="base64", data="iVBORw0KGgo=")
    assert message.content == (ImageBlock(source=source, media_type="image/png"),)


def test_case_26_a_402_is_worth_another_try_only_when_it_says_when() -> None:
    raw = b'{"error":{"code":402,"message":"Budget"}}'
    without = OPENROUTER.from_wire_error(WireResponse(status=402, body=raw), context())
    headers = {"retry-after": "30", "x-generation-id": "gen-9"}
    with_it = OPENROUTER.from_wire_error(WireResponse(status=402, headers=headers, body=raw), context())

    assert (without.retryable, with_it.retryable, with_it.retry_after) == (False, True, 30)
    assert with_it.request_id == "gen-9"


def test_case_10_ids_follow_the_upstream() -> None:
    made = [CALL | {"id": "functions.read_file:0"}]
    message = read(answer({"content": None, "tool_calls": made}, "tool_calls"), model="moonshotai/kimi-k3")
    results = [tool_result(message.tool_calls[0], "r")]

    def sent(model: str) -> str:
        found: str = body([user("q"), message, *results], model=model)["messages"][1]["tool_calls"][0]["id"]
        return found

    assert sent("moonshotai/kimi-k3") == "functions.read_file:0"
    assert set(sent(MODEL)) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
    assert len(sent("mistralai/mistral-large-2512")) == 9
