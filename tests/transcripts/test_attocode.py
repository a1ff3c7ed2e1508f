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
from interlingua_transcripts.formats.attocode import read_chat_response

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


def test_a_chat_response_is_read_and_written_back_equal() -> None:
    given = {
        "content": "Let me read it.",
        "toolCalls": [
            {"id": "call_1", "name": "read_file", "arguments": {"path": "src/main.ts"}},
            {"id": "call_2", "name": "read_file", "arguments": {}, "parseError": "Unexpected end"},
        ],
        "usage": {
            "inputTokens": 9,
            "outputTokens": 3,
            "cacheReadTokens": 4,
            "cacheWriteTokens": 1,
            "cost": 0.5,
        },
        "model": "acme:m",
        "stopReason": "tool_use",
        "thinking": "hm",
    }
    message = read_chat_response(given)

    assert message.metadata.stop_reason is StopReason.TOOL_USE
    assert [call.provider_id for call in message.tool_calls] == ["call_1", "call_2"]
    assert ChatResponse(message).to_json() == given
    assert ChatResponse(read_chat_response({"content": "hi"})).to_json() == {"content": "hi"}
    assert read_chat_response({"content": "hi", "model": "gpt-x"}).metadata.model == "unknown:gpt-x"
