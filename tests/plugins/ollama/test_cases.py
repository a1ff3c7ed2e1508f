"""Field cases that this wire can show, each by its number."""

from __future__ import annotations

from typing import Any

import pytest

from interlingua.errors import ModelNotFoundError, OverloadedError, ServerError, StreamInterruptedError
from interlingua.types.blocks import ImageBlock, MediaSource, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from interlingua.types.factories import tool_result, user
from interlingua.types.messages import Message, MessageMetadata, Role, StopReason
from interlingua.types.tools import SideEffects, ToolDefinition
from tests.plugins.ollama.wire import OLLAMA, answer, asked, body, call, context, done, line, streamed, whole
from tests.support import driving
from tests.support.adapter import READ

PIXEL = "iVBORw0KGgo="


def test_case_02_foreign_thinking_is_not_sent_as_text() -> None:
    foreign = answer(ThinkingBlock(text="secret", signature="s"), TextBlock(text="hi"), provider="elsewhere")

    assert b"secret" not in asked([user("q"), foreign, user("n")]).body


def test_case_03_own_thinking_goes_back_in_its_field() -> None:
    own = answer(ThinkingBlock(text="hm"), TextBlock(text="hi"))
    sent = body([user("q"), own, user("n")])["messages"][1]

    assert sent == {"role": "assistant", "content": "hi", "thinking": "hm"}


def test_case_07_a_dangling_call_is_answered() -> None:
    own = answer(ToolUseBlock(id="tu_1", name="read_file", input={"path": "a"}))
    sent = body([user("q"), own, user("n")], [READ])["messages"]

    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "user"]
    assert sent[2]["tool_name"] == "read_file"


def test_case_09_results_stand_in_the_order_of_the_calls() -> None:
    own = answer(ToolUseBlock(id="a", name="read_file"), ToolUseBlock(id="b", name="read_file"))
    first, second = own.tool_calls
    sent = body([user("q"), own, tool_result(second, "2"), tool_result(first, "1")])["messages"]

    assert [(message["tool_call_id"], message["content"]) for message in sent[2:]] == [("a", "1"), ("b", "2")]


def test_case_10_a_call_without_an_id_gets_ours_and_so_does_its_result() -> None:
    made = streamed(line({"tool_calls": [call("read_file", {"path": "a"})]}), done())
    (found,) = made.tool_calls
    sent = body([user("q"), made, tool_result(found, "r")])["messages"]

    assert found.provider_id is None
    assert sent[1]["tool_calls"][0]["id"] == sent[2]["tool_call_id"] == found.id


def test_case_13_whole_calls_on_several_lines_all_without_or_with_index_0() -> None:
    calls = [call("weather", {"city": "Detroit"}, "call_a"), call("search", {"q": "x"}, "call_b")]
    for entry in calls:
        entry["function"]["index"] = 0
    made = streamed(*[line({"tool_calls": [entry]}) for entry in calls], done())

    assert [(found.name, dict(found.input), found.provider_id) for found in made.tool_calls] == [
        ("weather", {"city": "Detroit"}, "call_a"),
        ("search", {"q": "x"}, "call_b"),
    ]


def test_case_14_arguments_that_are_no_object_are_kept() -> None:
    text = whole(done(message={"tool_calls": [call("f", '{"a": ')]}))
    (found,) = text.tool_calls

    assert (found.raw_input, bool(found.parse_error)) == ('{"a": ', True)
    sent = body([user("q"), text, tool_result(found, "r")])["messages"][1]["tool_calls"][0]
    assert sent["function"]["arguments"] == {"invalid_arguments": '{"a": '}


def test_case_15_an_error_line_keeps_the_text_before_it() -> None:
    with pytest.raises(ServerError, match="exploded") as caught:
        streamed(line({"content": "They "}), {"error": "the runner exploded"})
    assert caught.value.partial is not None
    assert caught.value.partial.text == "They "
    with pytest.raises(OverloadedError):
        streamed({"error": "try again", "status": 503})
    with pytest.raises(ModelNotFoundError):
        whole({"error": "model 'x' not found"})


def test_case_16_a_stream_without_its_last_line_is_interrupted() -> None:
    with pytest.raises(StreamInterruptedError) as caught:
        streamed(line({"content": "They "}))
    assert caught.value.partial is not None
    assert caught.value.partial.metadata.stop_reason is StopReason.ERROR


def test_case_17_unknown_members_and_lines_are_no_failure() -> None:
    made = streamed({"ping": 1}, line({"content": "a", "new": 1}, newer={"x": 1}), done())

    assert made.text == "a"
    assert made.metadata.provider_raw is not None
    assert made.metadata.provider_raw["trace"]["newer"] == {"x": 1}


def test_case_19_counts_that_are_absent_are_unknown() -> None:
    usage = streamed(line({"content": "a"}), done(eval_count=3)).metadata.usage

    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (None, 3)


@pytest.mark.parametrize(
    ("reason", "calls", "expected"),
    [
        ("stop", [], StopReason.END_TURN),
        ("stop", [call("f", {})], StopReason.TOOL_USE),
        ("length", [], StopReason.MAX_TOKENS),
        ("length", [call("f", {})], StopReason.MAX_TOKENS),
        ("load", [], StopReason.PAUSE_TURN),
        ("unload", [], StopReason.OTHER),
        ("brand_new", [], StopReason.OTHER),
        (None, [], StopReason.OTHER),
    ],
)
def test_case_20_every_done_reason_has_a_stop_reason(reason: str | None, calls: list[object], expected: str) -> None:
    message = {"content": "x", "tool_calls": calls}
    made = streamed(done(reason, message))

    assert made == whole(done(reason, message))
    assert (made.metadata.stop_reason, made.metadata.stop_reason_raw) == (expected, reason)


def test_case_21_an_image_of_a_result_follows_in_a_user_message() -> None:
    own = answer(ToolUseBlock(id="a", name="shot"))
    image = ImageBlock(source=MediaSource(kind="base64", data=PIXEL), media_type="image/png")
    block = ToolResultBlock(tool_use_id="a", content=(image,), tool_name="shot")
    result = Message(role=Role.TOOL, content=(block,), metadata=MessageMetadata(parent_tool_use_id="a"))
    sent = body([user("q"), own, result])["messages"]

    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "user"]
    assert sent[3]["images"] == [PIXEL]


def test_case_23_a_schema_is_pruned_as_the_server_would_and_the_input_is_not_touched() -> None:
    schema = {
        "type": "object",
        "description": "all of it",
        "additionalProperties": False,
        "properties": {
            "when": {"type": "string", "format": "date", "description": "which day"},
            "tags": {"type": "array", "items": {"type": "string", "format": "uri"}},
            "inner": {"type": "object", "properties": {"x": {"type": "string", "format": "uuid"}}},
        },
        "required": ["when"],
    }
    tool = ToolDefinition(name="t", description="", input_schema=schema, side_effects=SideEffects.READ)
    request = asked([user("q")], [tool])
    sent = body([user("q")], [tool])["tools"][0]["function"]["parameters"]

    assert sent == {
        "type": "object",
        "properties": {
            "when": {"type": "string", "description": "which day"},
            "tags": {"type": "array", "items": {"type": "string", "format": "uri"}},
            "inner": {"type": "object", "properties": {"x": {"type": "string"}}},
        },
        "required": ["when"],
    }
    assert [loss.path for loss in request.losses] == [
        "tools[0].input_schema.description",
        "tools[0].input_schema.additionalProperties",
        "tools[0].input_schema.properties.when.format",
        "tools[0].input_schema.properties.inner.properties.x.format",
    ]
    assert tool.input_schema == schema


def test_case_25_a_later_system_message_stays_where_it_is() -> None:
    sent = body([user("a"), answer(TextBlock(text="b")), Message(role=Role.SYSTEM, content=(TextBlock(text="c"),))])

    assert [message["role"] for message in sent["messages"]] == ["user", "assistant", "system"]


def test_case_29_no_price_is_not_a_price_of_0() -> None:
    assert OLLAMA.model("qwen3:4b") is None


def test_case_32_zero_is_a_value() -> None:
    sent = body([user("q")], temperature=0, top_p=0, top_k=0, seed=0)

    assert sent["options"] == {"temperature": 0, "top_p": 0, "top_k": 0, "seed": 0}


def test_case_34_the_window_is_asked_for_and_arguments_are_objects_both_ways() -> None:
    made = whole(done(message={"tool_calls": [call("f", {"n": 2**70})]}))
    (found,) = made.tool_calls
    sent = body([user("q"), made, tool_result(found, "r")], provider_options={"num_ctx": 16384})

    assert (found.raw_input, dict(found.input)) == (None, {"n": 2**70})
    assert sent["messages"][1]["tool_calls"][0]["function"]["arguments"] == {"n": 2**70}
    assert sent["options"] == {"num_ctx": 16384}
    assert sent["truncate"] is False  # a history that does not fit is an error, not a silent cut


def test_case_39_a_reply_of_reasoning_only() -> None:
    made = streamed(line({"thinking": "hm"}), line({"thinking": "m"}), done("length"))

    assert made.content == (ThinkingBlock(text="hmm"),)
    assert made.metadata.stop_reason is StopReason.MAX_TOKENS


def test_the_older_generate_api_is_read_as_text() -> None:
    base: dict[str, Any] = {"model": "llama3", "created_at": "2026-11-21T00:00:00Z"}
    raw: list[dict[str, Any]] = [
        {**base, "response": "A"},
        {**base, "response": "B", "thinking": "t"},
        {**base, "done": True, "response": ""},
    ]

    made = streamed(*raw)
    assert (made.text, made.content[0]) == ("AB", ThinkingBlock(text="t"))


def test_an_image_in_an_answer_is_kept() -> None:
    made = driving.whole(
        OLLAMA, b'{"message":{"role":"assistant","content":"x","images":["aGk="]},"done":true}', context()
    )

    assert made.content[1] == ImageBlock(source=MediaSource(kind="base64", data="aGk="))
