"""An answer as Attocode's flat response object."""

from __future__ import annotations

from decimal import Decimal

from interlingua.types import (
    ContentBlock,
    Message,
    MessageMetadata,
    Role,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
    Usage,
    assistant,
)
from interlingua_transcripts import ChatResponse

CALL = ToolUseBlock(id="tu_1", name="read", input={"path": "a"})


def test_chat_response_is_a_flat_view() -> None:
    calls = [CALL, ToolUseBlock(id="tu_2", name="n", raw_input="{", parse_error="cut")]
    usage = Usage(input_tokens=9, output_tokens=3, cached_input_tokens=4, cost_usd=Decimal("0.5"))
    metadata = MessageMetadata(model="acme:m", usage=usage, stop_reason=StopReason.TOOL_USE)
    content: list[ContentBlock] = [ThinkingBlock(text="hm"), TextBlock(text="hi"), *calls]
    view = ChatResponse(Message(role=Role.ASSISTANT, content=content, metadata=metadata))

    assert (view.content, view.thinking, view.model, view.stop_reason) == ("hi", "hm", "acme:m", "tool_use")
    assert view.tool_calls == [
        {"id": "tu_1", "name": "read", "arguments": {"path": "a"}},
        {"id": "tu_2", "name": "n", "arguments": {}, "parseError": "cut"},
    ]
    assert view.usage == {"inputTokens": 9, "outputTokens": 3, "cacheReadTokens": 4, "cost": 0.5}
    bare = ChatResponse(assistant("hi"))
    assert (bare.tool_calls, bare.usage, bare.model, bare.stop_reason, bare.thinking) == (None,) * 5
