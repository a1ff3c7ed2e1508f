"""Conversations to requests (WIRE.md, Request; cases 06, 07, 09, 21, 22, 23, 24, 25, 34)."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest

from interlingua._json import thaw
from interlingua.plugins import estimate_tokens
from interlingua.types.blocks import (  # fmt: skip
    AudioBlock,
    CacheHint,
    DocumentBlock,
    ImageBlock,
    MediaSource,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from interlingua.types.factories import assistant, system, user
from interlingua.types.messages import Message, Role
from interlingua.types.tools import SideEffects, ToolDefinition
from tests.plugins.chat_completions.support import body, preset, provider, request, whole

PNG = ImageBlock(source=MediaSource(kind="base64", data="AAAA"), media_type="image/png")


def call(number: int = 1, **more: Any) -> ToolUseBlock:
    return ToolUseBlock(id=f"tu_{number:026d}", name="f", input={"a": number}, **more)


def result(number: int = 1, content: Any = "ok", **more: Any) -> Message:
    block = ToolResultBlock(tool_use_id=f"tu_{number:026d}", content=content, **more)
    return Message(role=Role.TOOL, content=(block,))


def tool(schema: dict[str, Any], **more: Any) -> ToolDefinition:
    return ToolDefinition(name="f", description="", input_schema=schema, side_effects=SideEffects.NONE, **more)


def roles(sent: dict[str, Any]) -> list[str]:
    return [message["role"] for message in sent["messages"]]


def test_case_07_dangling_call_is_answered_directly_behind_it() -> None:
    sent, _ = request([user("x"), assistant([call()]), user("y")])
    assert roles(sent) == ["user", "assistant", "tool", "user"]
    assert sent["messages"][2]["tool_call_id"] == sent["messages"][1]["tool_calls"][0]["id"]
    again, _ = request([user("x"), assistant([call()]), user("y")])
    assert [m["content"] for m in again["messages"][2:]] == [m["content"] for m in sent["messages"][2:]]


def test_case_09_parallel_results_stand_in_the_order_of_the_calls() -> None:
    sent, _ = request([user("x"), assistant([call(1), call(2)]), result(2, "b"), result(1, "a"), user("y")])
    assert roles(sent) == ["user", "assistant", "tool", "tool", "user"]
    assert [m["content"] for m in sent["messages"][2:4]] == ["a", "b"]


def test_case_06_call_turns_without_reasoning_get_an_empty_field() -> None:
    sent, _ = request([user("x"), assistant([call()]), result(), assistant("done"), user("y")], provider("deepseek"))
    assert sent["messages"][1]["reasoning_content"] == ""
    assert "reasoning_content" not in sent["messages"][3]
    off, _ = request([user("x"), assistant([call()]), result()], provider("deepseek"), thinking=False)
    assert "reasoning_content" not in off["messages"][1]
    assert off["thinking"] == {"type": "disabled"}


def test_case_06_own_reasoning_goes_back_as_it_was() -> None:
    tool_call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{ "a": 1 }'}}
    wire = {"role": "assistant", "content": "hm", "reasoning_content": "real text", "tool_calls": [tool_call]}
    target = provider("deepseek")
    message = whole(body(wire, "tool_calls"), target)
    sent, _ = request([user("x"), message], target)
    assert sent["messages"][1] == wire
    foreign, made = request([user("x"), message], provider("xai"))
    assert "reasoning_content" not in foreign["messages"][1]
    assert any(loss.block_type == "thinking" for loss in made.losses)


def test_case_21_image_of_a_tool_result_follows_in_a_user_message() -> None:
    sent, made = request([user("x"), assistant([call()]), result(content=(TextBlock(text="see"), PNG)), user("y")])
    assert roles(sent) == ["user", "assistant", "tool", "user", "user"]
    assert "see" in sent["messages"][2]["content"]
    assert sent["messages"][3]["content"][-1]["image_url"]["url"] == "data:image/png;base64,AAAA"
    assert made.losses


def test_case_21_image_for_a_model_without_eyes_becomes_a_note() -> None:
    sent, made = request([user("x"), assistant([call()]), result(content=(PNG,))], provider("deepseek"))
    assert "image omitted" in sent["messages"][2]["content"]
    assert made.losses


def test_case_22_lone_surrogates_are_replaced_and_emoji_stay() -> None:
    _, made = request([user("a\ud800b \U0001f600 \x00")])
    text = json.loads(made.body.decode("utf-8"))["messages"][0]["content"]
    assert text == "a\ufffdb \U0001f600 \x00"


def test_case_23_tool_schemas() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    before = thaw(tool(schema).input_schema)
    sent, _ = request([user("x")], tools=[tool(schema)])
    assert sent["tools"] == [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    strict, _ = request([user("x")], preset(dialect={"strict_tools": True}), tools=[tool(schema)])
    assert strict["tools"][0]["function"]["strict"] is True
    assert strict["tools"][0]["function"]["parameters"] == {**schema, "additionalProperties": False}
    assert before == schema


def test_case_23_strict_only_where_it_means_the_same() -> None:
    optional = {"type": "object", "properties": {"a": {"type": "string"}}}
    sent, _ = request([user("x")], preset(dialect={"strict_tools": True}), tools=[tool(optional)])
    assert "strict" not in sent["tools"][0]["function"]
    assert "additionalProperties" not in sent["tools"][0]["function"]["parameters"]


def test_case_24_tool_history_without_tools() -> None:
    sent, _ = request([user("x"), assistant([call()]), result(), user("y")], tool_choice="auto")
    assert not sent.keys() & {"tools", "tool_choice"}
    assert roles(sent) == ["user", "assistant", "tool", "user"]


def test_case_25_system_in_mid_conversation() -> None:
    messages = [system("a"), system("b"), user("x"), assistant("y"), system("late"), user("z")]
    assert roles(request(messages)[0]) == ["system", "system", "user", "assistant", "system", "user"]
    sent, made = request(messages, provider("llamacpp"))
    assert roles(sent) == ["system", "user", "assistant", "user", "user"]
    assert sent["messages"][0]["content"] == "a\n\nb"
    assert "late" in sent["messages"][3]["content"]
    assert made.losses


def test_case_34_arguments_are_a_string() -> None:
    sent, _ = request([user("x"), assistant([call()]), result()])
    assert sent["messages"][1]["tool_calls"][0]["function"]["arguments"] == '{"a":1}'
    assert sent["messages"][1]["content"] is None


def test_tool_error_says_so_in_its_text() -> None:
    sent, made = request([user("x"), assistant([call()]), result(content="no such file", is_error=True)])
    assert sent["messages"][2]["content"] == "Error: no such file"
    assert [loss.verdict for loss in made.losses] == ["rewritten"]


def test_refusal_goes_back_as_a_refusal_where_there_is_one() -> None:
    target = preset(dialect={"refusal_parts": True})
    message = whole(body({"content": None, "refusal": "no"}), target)
    assert request([message], target)[0]["messages"][0]["content"] == [{"type": "refusal", "refusal": "no"}]
    assert request([message])[0]["messages"][0]["content"] == "no"


def test_user_parts() -> None:
    able = preset(capabilities={"supports_images": True, "supports_image_urls": True, "supports_audio": True,
                             "supports_documents": True})  # fmt: skip
    wav = AudioBlock(source=MediaSource(kind="base64", data="BBBB"), media_type="audio/wav")
    pdf = DocumentBlock(source=MediaSource(kind="base64", data="CCCC"), title="a.pdf")
    far = ImageBlock(source=MediaSource(kind="url", data="https://x/y.png"), detail="low")
    sent, made = request([Message(role=Role.USER, content=(TextBlock(text="t"), PNG, far, wav, pdf))], able)
    assert sent["messages"][0]["content"] == [
        {"type": "text", "text": "t"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "low"}},
        {"type": "input_audio", "input_audio": {"data": "BBBB", "format": "wav"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,CCCC"}},
    ]
    assert made.losses == ()


def test_cache_markers_are_all_that_a_hint_changes() -> None:
    target = preset(dialect={"cache_breakpoints": True})
    hinted = user("x")
    hinted = attrs.evolve(hinted, content=(TextBlock(text="x", cache=CacheHint()),))
    with_hint, without = request([hinted], target)[1].body, request([user("x")], target)[1].body
    assert with_hint.replace(b',"prompt_cache_breakpoint":{"mode":"explicit"}', b"") == without
    assert with_hint != without


def test_elements_of_a_turn_are_a_prefix_of_the_next() -> None:
    messages = [system("s"), user("x"), assistant([ThinkingBlock(text="t"), call()]), result(), assistant("y")]
    shorter = request(messages)[1].body
    assert request([*messages, user("z")])[1].body.startswith(shorter[: shorter.rindex(b"]")])


@pytest.mark.parametrize("key", ["compatible", "deepseek", "cerebras"])
def test_estimate_is_in_its_band(key: str) -> None:
    text = "The quick brown fox jumps over the lazy dog. " * 100  # 10 tokens a sentence in common vocabularies
    from interlingua.types.options import RequestOptions

    assert 700 <= estimate_tokens(provider(key), [user(text)], [], RequestOptions(model="m")) <= 1400
