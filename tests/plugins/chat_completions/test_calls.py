"""Tool calls, however a service labels their fragments (cases 13, 14; WIRE.md, Streams)."""

from __future__ import annotations

from typing import Any

import pytest

from interlingua.errors import StreamInterruptedError
from interlingua.types.blocks import ToolUseBlock
from interlingua.types.messages import StopReason
from tests.plugins.chat_completions.support import (
    body,
    calls_of,
    chunk,
    decoded,
    provider,
    request,
    sse,
    streamed,
    whole,
)


def fragment(arguments: str | None, name: str | None = None, **keys: Any) -> dict[str, Any]:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {**keys, "function": function}


def read(*deltas: list[dict[str, Any]], finish: str = "tool_calls") -> list[tuple[str, str | None, str | None]]:
    chunks = [chunk({"tool_calls": delta}) for delta in deltas]
    return calls_of(streamed([*chunks, chunk({}, finish)]))


def test_case_13a_one_index_for_all_calls_with_different_ids() -> None:
    assert read([fragment('{"a":1}', "f", index=0, id="x")], [fragment('{"b":2}', "g", index=0, id="y")]) == [
        ("f", "x", '{"a":1}'),
        ("g", "y", '{"b":2}'),
    ]


def test_case_13b_no_index() -> None:
    assert read([fragment('{"a"', "f", id="x")], [fragment(":1}", id="x")], [fragment("{}", "g", id="y")]) == [
        ("f", "x", '{"a":1}'),
        ("g", "y", "{}"),
    ]


def test_case_13b_neither_index_nor_id_goes_by_position() -> None:
    assert read([fragment("{", "f"), fragment("[", "g")], [fragment("}"), fragment("]")]) == [
        ("f", None, "{}"),
        ("g", None, "[]"),
    ]


def test_case_13c_id_only_in_the_first_fragment() -> None:
    assert read([fragment("", "f", index=0, id="x")], [fragment('{"a"', index=0)], [fragment(":1}", index=0)]) == [
        ("f", "x", '{"a":1}')
    ]


def test_case_13d_interleaved() -> None:
    assert read(
        [fragment("", "f", index=0, id="x"), fragment("", "g", index=1, id="y")],
        [fragment('{"b"', index=1)], [fragment('{"a"', index=0)],
        [fragment(":2}", index=1), fragment(":1}", index=0)],
    ) == [("f", "x", '{"a":1}'), ("g", "y", '{"b":2}')]  # fmt: skip


def test_case_13e_id_and_name_repeated_in_each_fragment() -> None:
    assert read([fragment('{"a"', "f", index=0, id="x")], [fragment(":1}", "f", index=0, id="x")]) == [
        ("f", "x", '{"a":1}')
    ]


def test_case_13_later_name_and_id_empty() -> None:
    assert read([fragment("{", "f", index=0, id="x")], [fragment("}", "", index=0, id="")]) == [("f", "x", "{}")]


def test_case_13_id_and_name_that_come_late() -> None:
    assert read([fragment("{", index=0, id="")], [fragment("}", "f", index=0, id="x")]) == [("f", "x", "{}")]


def test_case_13_whole_calls_under_one_index_without_ids() -> None:
    assert read([fragment('{"a":1}', "f", index=0)], [fragment('{"a":2}', "f", index=0)]) == [
        ("f", None, '{"a":1}'),
        ("f", None, '{"a":2}'),
    ]


def test_case_13_calls_are_final_only_at_the_end() -> None:
    decoder = decoded(sse([chunk({"tool_calls": [fragment("{}", "f", index=0, id="x")]})], done=False))
    with pytest.raises(StreamInterruptedError) as caught:
        decoder.message()
    (call,) = caught.value.partial.tool_calls
    assert call.parse_error is not None


@pytest.mark.parametrize(("arguments", "value"), [("", {}), (None, {}), ("null", {}), ('{"a":0}', {"a": 0})])
def test_case_14_empty_arguments(arguments: str | None, value: dict[str, Any]) -> None:
    call = {"id": "x", "type": "function", "function": {"name": "f", "arguments": arguments}}
    (block,) = whole(body({"content": None, "tool_calls": [call]}, "tool_calls")).tool_calls
    assert (block.input, block.parse_error) == (value, None)


def test_case_14_empty_arguments_go_back_as_an_object() -> None:
    call = {"id": "x", "type": "function", "function": {"name": "f", "arguments": ""}}
    sent, _ = request([whole(body({"content": None, "tool_calls": [call]}, "tool_calls"))])
    assert sent["messages"][0]["tool_calls"][0]["function"]["arguments"] == "{}"


@pytest.mark.parametrize("raw", ['{"note": "The', '{"a":1} trailing', "[1]"])
def test_case_14_bad_arguments_are_kept_and_sent_back_to_their_origin(raw: str) -> None:
    call = {"id": "x", "type": "function", "function": {"name": "f", "arguments": raw}}
    message = whole(body({"content": None, "tool_calls": [call]}, "length"))
    (block,) = message.tool_calls
    assert block.parse_error is not None
    assert block.raw_input == raw
    sent, _ = request([message])
    assert sent["messages"][0]["tool_calls"][0]["function"]["arguments"] == raw


def test_case_14_bad_arguments_reach_another_provider_inside_an_object() -> None:
    call = {"id": "x", "type": "function", "function": {"name": "f", "arguments": '{"cut'}}
    message = whole(body({"content": None, "tool_calls": [call]}, "length"))
    sent, made = request([message], provider("groq"))
    assert sent["messages"][0]["tool_calls"][0]["function"]["arguments"] == '{"invalid_arguments":"{\\"cut"}'
    assert [loss.verdict for loss in made.losses if loss.block_type == "tool_use" and "JSON" in loss.reason]


def test_arguments_as_an_object_have_no_raw_text() -> None:
    call = {"id": "x", "type": "function", "function": {"name": "f", "arguments": {"a": 1}}}
    (block,) = whole(body({"tool_calls": [call]}, "tool_calls")).tool_calls
    assert (block.input, block.raw_input) == ({"a": 1}, None)


def test_deprecated_function_call_is_a_call_without_provider_id() -> None:
    call = {"name": "f", "arguments": '{"a":1}'}
    message = whole(body({"content": None, "function_call": call}, "function_call"))
    assert calls_of(message) == [("f", None, '{"a":1}')]
    assert message.metadata.stop_reason is StopReason.TOOL_USE
    pieces = [{"name": "f", "arguments": '{"a"'}, {"arguments": ":1}"}]
    assert streamed([*[chunk({"function_call": one}) for one in pieces], chunk({}, "function_call")]) == message


def test_custom_call_goes_back_as_it_came() -> None:
    call = {"id": "x", "type": "custom", "custom": {"name": "math_exp", "input": "4 + 4"}}
    message = whole(body({"content": None, "tool_calls": [call]}, "tool_calls"))
    (block,) = message.content
    assert isinstance(block, ToolUseBlock)
    assert (block.input, block.raw_input, block.parse_error) == ({"input": "4 + 4"}, None, None)
    sent, _ = request([message])
    assert sent["messages"][0]["tool_calls"] == [call]
