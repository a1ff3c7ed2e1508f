"""A -> B -> A: each wire gets its own ids, reasoning and arguments back, byte-equal."""

from __future__ import annotations

import pytest

from interlingua.plugins import build_request
from interlingua.types.blocks import TextBlock, ToolUseBlock
from interlingua.types.factories import tool_result, user
from interlingua.types.messages import Message, MessageMetadata, Provenance, Role, Usage
from interlingua.types.options import RequestOptions
from tests.plugins.chat_completions.checker import elements
from tests.plugins.openai.wire import PROVIDER, context
from tests.support import driving
from tests.support.adapter import READ
from tests.support.cassettes import load_exchanges

CASES = {
    "chat": ("chat_parallel_calls", "gpt-4.1", "messages"),
    "responses": ("responses_reasoning", "gpt-5.5", "input"),
}


def _other() -> tuple[Message, Message]:
    call = ToolUseBlock(id="tu_b", name="read_file", input={}, provider_id="toolu_01|x")
    metadata = MessageMetadata(
        model="anthropic:claude-opus-4-6", provider="anthropic", api="messages", provenance=Provenance.GENERATED,
        usage=Usage(),
    )  # fmt: skip
    answer = Message(role=Role.ASSISTANT, content=(TextBlock(text="B speaks"), call), metadata=metadata)
    return answer, tool_result(call, "r2")


@pytest.mark.parametrize("api", CASES)
def test_own_state_comes_back_after_another_origin_spoke(api: str) -> None:
    name, model, place = CASES[api]
    found = load_exchanges(f"openai/{name}.yaml")[0]
    own = driving.streamed(PROVIDER, found.body, context(model, api))
    options = RequestOptions(model=model, api=api)
    before = [user("q"), own, *(tool_result(call, "r") for call in own.tool_calls), user("now you")]
    then = build_request(PROVIDER, before, [READ], options).body
    now = build_request(PROVIDER, [*before, *_other(), user("back to you")], [READ], options).body
    earlier = elements(then, place)

    assert elements(now, place)[: len(earlier)] == earlier
    for call in own.tool_calls:
        assert f'"{call.provider_id}"'.encode() in now
        assert (call.raw_input or "").replace('"', '\\"').encode() in now
    if api == "responses":
        assert b'"rs_1"' in now
        assert b"gAAAAABauthored" in now
