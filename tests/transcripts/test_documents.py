"""The examples of the systems' own documentation: recognised, read, written back equal."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import orjson
import pytest

from interlingua.types import (
    ImageBlock,
    MessageStatus,
    Role,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from interlingua_transcripts import (
    Transcript,
    from_messages,
    measure_fidelity,
    read_transcript,
    with_entries,
    write_transcript,
)

# OpenClaw's runtime: one AgentMessage a line.
COST = {"input": 0.0225, "output": 0.015, "cacheRead": 0, "cacheWrite": 0.028, "total": 0.0655}
SPENT = {"input": 1500, "output": 200, "cacheRead": 0, "cacheWrite": 1500, "totalTokens": 1700, "cost": COST}
MADE = {"api": "anthropic-messages", "provider": "anthropic", "model": "claude-opus-4-6"}
CALL_ID = "toolu_01A09q90qw90lq917835lq9"
ARGUMENTS = {"file_path": "/project/src/index.ts", "offset": 0, "limit": 200}
OPENCLAW: Sequence[dict[str, Any]] = (
    {"role": "user", "content": "Read the file src/index.ts", "timestamp": 1740000000000},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "What's in this screenshot?"},
            {"type": "image", "data": "iVBORw0KGgo...", "mimeType": "image/png"},
        ],
        "timestamp": 1740000000000,
    },
    {
        "role": "assistant",
        "content": [{"type": "text", "text": "Here's the content of the file..."}],
        **MADE,
        "usage": SPENT,
        "stopReason": "stop",
        "timestamp": 1740000001000,
    },
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "I need to read the file first..."},
            {"type": "text", "text": "Let me read that file."},
            {"type": "toolCall", "id": CALL_ID, "name": "read", "arguments": ARGUMENTS},
        ],
        **MADE,
        "usage": SPENT,
        "stopReason": "toolUse",
        "timestamp": 1740000001000,
    },
    {
        "role": "toolResult",
        "toolCallId": CALL_ID,
        "toolName": "read",
        "content": [{"type": "text", "text": "import { createServer } from 'http';\n..."}],
        "details": {"file_path": "/project/src/index.ts", "lines": 200},
        "isError": False,
        "timestamp": 1740000002000,
    },
    {
        "role": "toolResult",
        "toolCallId": CALL_ID,
        "toolName": "exec",
        "content": [{"type": "text", "text": '{"status":"error","tool":"exec","error":"command required"}'}],
        "isError": True,
        "timestamp": 1740000002000,
    },
)
OPENCLAW_FILE = b"""\
{"role":"user","content":"Read the file main.ts","timestamp":1740000000000}
{"role":"assistant","content":[{"type":"text","text":"Let me read that file."},{"type":"toolCall","id":"call_1","name":"read","arguments":{"file_path":"main.ts"}}],"api":"anthropic-messages","provider":"anthropic","model":"claude-opus-4-6","usage":{"input":100,"output":50,"cacheRead":0,"cacheWrite":0,"totalTokens":150,"cost":{"input":0.0015,"output":0.00375,"cacheRead":0,"cacheWrite":0,"total":0.00525}},"stopReason":"toolUse","timestamp":1740000001000}
{"role":"toolResult","toolCallId":"call_1","toolName":"read","content":[{"type":"text","text":"...file contents..."}],"isError":false,"timestamp":1740000002000}
{"role":"assistant","content":[{"type":"text","text":"The file contains..."}],"api":"anthropic-messages","provider":"anthropic","model":"claude-opus-4-6","usage":{"input":200,"output":100,"cacheRead":100,"cacheWrite":0,"totalTokens":300,"cost":{"input":0.003,"output":0.0075,"cacheRead":0.00015,"cacheWrite":0,"total":0.01065}},"stopReason":"stop","timestamp":1740000003000}
"""  # noqa: E501

# Operator-Use: messages of `contents`, every content type and role of its page.
OPERATOR: Sequence[dict[str, Any]] = (
    {"role": "system", "contents": [{"type": "text", "content": "You are a helpful assistant."}]},
    {"role": "user", "contents": [{"type": "text", "content": "hello"}]},
    {
        "role": "user",
        "contents": [
            {"type": "text", "content": "describe this"},
            {"type": "image", "images": ["https://example.com/a.png", "iVBORw0KGgo="]},
            {"type": "audio", "audio": ["file:clip.mp3", "T2dnUw=="]},
        ],
    },
    {
        "role": "assistant",
        "contents": [
            {"type": "thinking", "content": "hm", "signature": "c2ln"},
            {"type": "text", "content": "I look."},
            {"type": "tool_call", "id": "c1", "name": "read", "kind": "read", "args": {"path": "a"}},
        ],
        "usage": {
            "input_tokens": 10,
            "output_tokens": 5,
            "cache_read_tokens": 2,
            "cache_write_tokens": 1,
            "cost": {"input": 0.5, "output": 0.25, "cache_read": 0.125, "cache_write": 0.125, "total": 1.0},
        },
        "stop_reason": "tool_calls",
        "error": "",
    },
    {
        "role": "tool",
        "contents": [
            {
                "type": "tool_result",
                "id": "c1",
                "content": "A",
                "is_error": False,
                "metadata": {"n": 1},
                "terminate": True,
            }
        ],
    },
    {"role": "custom", "custom_type": "note", "contents": [{"type": "text", "content": "for the screen"}]},
    {"role": "branch_summary", "contents": [{"type": "text", "content": "we tried"}]},
    {"role": "compaction_summary", "contents": [{"type": "text", "content": "so far"}]},
)

# Attocode's unified format.
ATTOCODE: Sequence[dict[str, Any]] = (
    {"role": "system", "content": "You are a coding assistant..."},
    {"role": "user", "content": [{"type": "text", "text": "Read the file", "cache_control": {"type": "ephemeral"}}]},
    {
        "role": "assistant",
        "content": "",
        "toolCalls": [{"id": "call_1", "name": "read_file", "arguments": {"path": "src/main.ts"}}],
    },
    {"role": "tool", "content": "file contents here...", "toolCallId": "call_1"},
    {
        "role": "assistant",
        "content": "",
        "toolCalls": [{"id": "call_2", "name": "read_file", "arguments": {}, "parseError": "Unexpected end"}],
        "metadata": {"turn": 2},
    },
    {"role": "tool", "content": "", "toolResults": [{"callId": "call_2", "result": None, "error": "no path"}]},
    {"role": "tool", "content": "", "toolResults": [{"callId": "call_1", "result": {"lines": 3}}]},
)

# Wolo's messages: parts, their statuses, GLM's reasoning.
HELLO = {"path": "hello.py", "contents": "def hello_world():\n    print('Hello, World!')"}
WOLO: Sequence[dict[str, Any]] = (
    {
        "id": "msg_001",
        "role": "user",
        "parts": [{"id": "text_001", "type": "text", "text": "Create a Python file with a hello world function"}],
        "timestamp": 1704067200.0,
        "finished": True,
    },
    {
        "id": "msg_002",
        "role": "assistant",
        "parts": [
            {
                "id": "text_002",
                "type": "text",
                "text": "I'll create a Python file with a hello world function for you.",
            },
            {
                "id": "tool_001",
                "type": "tool",
                "tool": "write",
                "input": HELLO,
                "status": "completed",
                "output": "File written successfully",
            },
        ],
        "timestamp": 1704067201.0,
        "finished": True,
        "finish_reason": "stop",
    },
    {
        "id": "msg_003",
        "role": "assistant",
        "parts": [
            {"id": f"tool_{status}", "type": "tool", "tool": "read", "input": {"path": "config.json"}, "status": status}
            for status in ("pending", "running", "failed")
        ],
        "timestamp": 1704067202.0,
    },
    {
        "id": "msg_004",
        "role": "assistant",
        "parts": [{"id": "text_004", "type": "text", "text": "The configuration looks correct."}],
        "timestamp": 1704067203.0,
        "reasoning_content": "Let me analyze this config file...",
        "metadata": {"display_name": "Wolo"},
    },
)


def lines(values: Sequence[Any]) -> bytes:
    return b"".join([orjson.dumps(value) + b"\n" for value in values])


FILES = {
    "openclaw-lines": lines(OPENCLAW),
    "openclaw-lines, a session": OPENCLAW_FILE,
    "operator-use": lines(OPERATOR),
    "attocode": lines(ATTOCODE),
    "wolo": orjson.dumps({"session": {"id": "s1", "title": "T"}, "messages": WOLO, "todos": []}),
}


def read(name: str) -> Transcript:
    found = read_transcript(FILES[name])
    assert found.system == name.partition(",")[0]
    return found


@pytest.mark.parametrize("name", FILES)
def test_every_example_is_written_back_equal(name: str) -> None:
    found = read(name)
    assert found.notes == ()
    kept = from_messages(with_entries(found))
    assert kept is not None
    written = write_transcript(kept)
    if name == "wolo":
        assert orjson.loads(written) == orjson.loads(FILES[name])
    else:
        assert written == FILES[name]
    report = measure_fidelity(found)
    assert (report.equal, report.total.lost) == (True, 0)


@pytest.mark.parametrize("name", FILES)
def test_each_example_is_read_alone(name: str) -> None:
    """A message makes one of ours, or one and the results it brings; nothing of it is unknown."""
    if name != "wolo":
        for line in FILES[name].splitlines():
            if b'"custom"' in line:  # of the session alone
                continue
            assert read_transcript(line + b"\n", name.partition(",")[0]).messages, line


def test_openclaw_messages_say_what_its_page_says() -> None:
    messages = read("openclaw-lines").messages

    assert [one.role for one in messages] == [
        Role.USER,
        Role.USER,
        Role.ASSISTANT,
        Role.ASSISTANT,
        Role.TOOL,
        Role.TOOL,
    ]
    image = messages[1].content[1]
    assert isinstance(image, ImageBlock)
    assert (image.source.data, image.media_type) == ("iVBORw0KGgo...", "image/png")
    answer = messages[2].metadata
    assert (answer.model, answer.api, answer.stop_reason) == (
        "anthropic:claude-opus-4-6",
        "messages",
        StopReason.END_TURN,
    )
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (3000, 200)  # 1500 plain, 1500 written to a cache
    assert (answer.usage.cache_creation_input_tokens, answer.usage.cost_usd) == (1500, Decimal("0.0655"))
    assert [type(block) for block in messages[3].content] == [ThinkingBlock, TextBlock, ToolUseBlock]
    result, failed = messages[4].content[0], messages[5].content[0]
    assert isinstance(result, ToolResultBlock)
    assert isinstance(failed, ToolResultBlock)
    assert result.details == {"file_path": "/project/src/index.ts", "lines": 200}
    assert (result.is_error, failed.is_error) == (False, True)


def test_operator_messages_say_what_their_page_says() -> None:
    messages = read("operator-use").messages

    media = [(block.source.kind, block.media_type) for block in messages[2].content[1:] if hasattr(block, "source")]
    assert media == [("url", ""), ("base64", "image/png"), ("file_ref", "audio/mpeg"), ("base64", "audio/ogg")]
    thinking, _, call = messages[3].content
    assert isinstance(thinking, ThinkingBlock)
    assert isinstance(call, ToolUseBlock)
    assert (thinking.signature, call.kind) == ("c2ln", "read")
    usage = messages[3].metadata.usage
    assert usage is not None
    assert (usage.input_tokens, usage.cost_usd) == (13, Decimal("1.0"))
    result = messages[4].content[0]
    assert isinstance(result, ToolResultBlock)
    assert (result.terminate, result.metadata) == (True, {"n": 1})


def test_attocode_messages_say_what_their_page_says() -> None:
    messages = read("attocode").messages

    cached = messages[1].content[0]
    assert isinstance(cached, TextBlock)
    assert cached.cache is not None
    broken = messages[4].content[0]
    assert isinstance(broken, ToolUseBlock)
    assert broken.parse_error == "Unexpected end"
    results = [one.tool_results[0] for one in messages if one.role is Role.TOOL]
    assert [one.is_error for one in results] == [False, True, False]
    assert results[2].details == {"lines": 3}


def test_wolo_messages_say_what_its_page_says() -> None:
    messages = read("wolo").messages

    assert [one.role for one in messages] == [
        Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT,
    ]  # fmt: skip
    done, failed = messages[2].tool_results[0], messages[4].tool_results[0]
    assert (done.content, done.is_error) == ((TextBlock(text="File written successfully"),), False)
    assert failed.is_error  # what is pending or running has no result yet
    assert messages[1].metadata.stop_reason is StopReason.END_TURN
    assert messages[1].metadata.status is MessageStatus.COMPLETE
    assert messages[5].content[0] == ThinkingBlock(text="Let me analyze this config file...")
