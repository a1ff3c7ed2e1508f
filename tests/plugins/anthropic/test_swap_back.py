"""A -> B -> A: an origin gets its own ids, signed thinking and opaque state back, byte-equal."""

from __future__ import annotations

import json

from interlingua.types.blocks import TextBlock, ToolUseBlock
from interlingua.types.factories import tool_result, user
from tests.plugins.anthropic.asking import OLD, START, STOP, answer, asked, block, body_of, ended, streamed
from tests.plugins.anthropic.checker import plain_elements
from tests.support.adapter import READ

THINKING = {"type": "thinking", "thinking": "Let me see.", "signature": "EqQBCgIYAh/+=="}
REDACTED = {"type": "redacted_thinking", "data": "EmwKAhgB+/=="}
CALL = {
    "type": "tool_use", "id": "toolu_01A", "name": "read_file", "input": {"path": "b", "a": 1},
    "caller": {"type": "direct"},
}  # fmt: skip
SERVER = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
RESULT = {
    "type": "web_search_tool_result", "tool_use_id": "srvtoolu_1",
    "content": [{"type": "web_search_result", "url": "https://e.com", "title": "t", "encrypted_content": "Eo8="}],
}  # fmt: skip


def test_own_state_comes_back_after_another_origin_spoke() -> None:
    own = streamed(
        START,
        *block(
            0,
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "thinking_delta", "thinking": "Let me see."},
            {"type": "signature_delta", "signature": "EqQBCgIYAh/+=="},
        ),
        *block(1, REDACTED),
        *block(2, {**SERVER, "input": {}}, {"type": "input_json_delta", "partial_json": '{"query": "x"}'}),
        *block(3, RESULT),
        *block(4, {**CALL, "input": {}}, {"type": "input_json_delta", "partial_json": '{"path": "b", "a": 1}'}),
        ended("tool_use"),
        STOP,
    )
    other_call = ToolUseBlock(id="tu_b", name="read_file", input={}, provider_id="call_b|fc_1")
    other = answer(TextBlock(text="B speaks"), other_call, provider="openai", api="responses", model="gpt")
    before = [user("q"), own, tool_result(own.tool_calls[0], "r"), user("now you")]
    history = [*before, other, tool_result(other_call, "r2"), user("back to you")]
    then, now = asked(before, [READ]), asked(history, [READ])
    turn = body_of(now)["messages"][1]

    assert turn == {"role": "assistant", "content": [THINKING, REDACTED, SERVER, RESULT, CALL]}
    assert json.dumps(turn["content"]) == json.dumps([THINKING, REDACTED, SERVER, RESULT, CALL])
    earlier = plain_elements(then.body)
    assert plain_elements(now.body)[: len(earlier)] == earlier


def test_another_model_of_the_service_gets_the_ids_but_not_the_thinking() -> None:
    own = streamed(START, *block(0, THINKING), *block(1, CALL), ended("tool_use"), STOP, model="claude-opus-4-5")
    content = body_of(asked([user("q"), own, tool_result(own.tool_calls[0], "r")], [READ], model=OLD))["messages"][1]

    assert content == {"role": "assistant", "content": [CALL]}
