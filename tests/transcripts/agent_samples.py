"""Small sessions of other agents, authored in the form that each one's source documents (see WIRE.md); none is real.

The conversation is the same as far as a format holds it: a question, thinking, a call, its result, an answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

ASKED, THOUGHT, SAID = "Which moon is the largest?", "I look it up in the file.", "Ganymede is the largest moon."
OUTPUT = "Ganymede 5268 km\nTitan 5149 km"
ARGUMENTS = {"path": "moons of planets.txt"}
_AT = "2026-08-01T10:00:0"
_ID = "0198a2b0-1111-7222-8333-44445555666"


def _lines(*values: Any) -> bytes:
    return b"".join([orjson.dumps(value) + b"\n" for value in values])


def _document(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2) + b"\n"


def _messages(result: str | list[dict[str, Any]] = OUTPUT) -> list[dict[str, Any]]:
    """Return the conversation as the Messages API has it."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": ARGUMENTS}
    answer = {"type": "tool_result", "tool_use_id": "toolu_1", "content": result}
    return [
        {"role": "user", "content": [{"type": "text", "text": ASKED}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": THOUGHT, "signature": "c2ln"}, call]},
        {"role": "user", "content": [answer, {"type": "text", "text": "Be brief, please."}]},
        {"role": "assistant", "content": [{"type": "text", "text": SAID}]},
    ]


def _qwen(number: int, kind: str, role: str, parts: Sequence[Mapping[str, Any]], **more: Any) -> dict[str, Any]:
    return {
        "uuid": f"{_ID}{number}",
        "parentUuid": more.pop("parent", f"{_ID}{number - 1}" if number else None),
        "sessionId": f"{_ID}f",
        "timestamp": f"{_AT}{number}.000Z",
        "type": kind,
        "cwd": "/srv/moons",
        "version": "0.24.4",
        **more,
        "message": {"role": role, "parts": parts},
    }


_FUNCTION = {"id": "call_1", "name": "read_file"}
_QWEN = (
    _qwen(0, "user", "user", [{"text": ASKED}]),
    _qwen(1, "assistant", "model", [{"text": "An answer that was taken back."}], model="qwen3-coder"),
    _qwen(2, "assistant", "model",
          [{"text": THOUGHT, "thought": True}, {"functionCall": {**_FUNCTION, "args": ARGUMENTS}}],
          parent=f"{_ID}0", model="qwen3-coder",
          usageMetadata={"promptTokenCount": 40, "candidatesTokenCount": 9, "totalTokenCount": 49}),
    _qwen(3, "tool_result", "user", [{"functionResponse": {**_FUNCTION, "response": {"output": OUTPUT}}}],
          toolCallResult={"callId": "call_1", "status": "success", "resultDisplay": "Read two lines of it"}),
    _qwen(4, "assistant", "model", [{"text": SAID}], model="qwen3-coder"),
)  # fmt: skip


def _goose(role: str, *content: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": None, "role": role, "created": 1785578400, "content": content, **more}


_GOOSE_CALL = {"status": "success", "value": {"name": "developer__read", "arguments": ARGUMENTS}}
_GOOSE_RESULT = {"status": "success", "value": {"content": [{"type": "text", "text": OUTPUT}], "isError": False}}
_GOOSE = [
    _goose("user", {"type": "text", "text": ASKED}, metadata={"userVisible": True, "agentVisible": False}),
    _goose(
        "assistant",
        {"type": "thinking", "thinking": THOUGHT, "signature": "c2ln"},
        {"type": "toolRequest", "id": "call_1", "toolCall": _GOOSE_CALL},
    ),
    _goose("user", {"type": "toolResponse", "id": "call_1", "toolResult": _GOOSE_RESULT}),
    _goose("assistant", {"type": "text", "text": SAID}),
]


def _event(number: int, kind: str, **data: Any) -> dict[str, Any]:
    above = f"e{number - 1}" if number else None
    return {"type": kind, "data": data, "id": f"e{number}", "timestamp": f"{_AT}{number}.000Z", "parentId": above}


_COPILOT = (
    _event(0, "session.start", sessionId=f"{_ID}e", version=1, producer="copilot-agent", copilotVersion="1.0.77",
           startTime=f"{_AT}0.000Z", selectedModel="gpt-5-mini", context={"cwd": "/srv/moons"}),
    _event(1, "user.message", content=ASKED, transformedContent=f"<now>today</now>\n{ASKED}", attachments=[]),
    _event(2, "assistant.message", messageId="m1", content="", reasoningText=THOUGHT, outputTokens=12,
           toolRequests=[{"toolCallId": "call_1", "name": "view", "arguments": ARGUMENTS, "type": "function"}]),
    _event(3, "tool.execution_start", toolCallId="call_1", toolName="view", arguments=ARGUMENTS),
    _event(4, "tool.execution_complete", toolCallId="call_1", success=True, result={"content": OUTPUT}),
    _event(5, "assistant.message", messageId="m2", content="Only the subagent says this.", parentToolCallId="call_9",
           toolRequests=[]),
    _event(6, "assistant.message", messageId="m3", content=SAID, toolRequests=[]),
)  # fmt: skip

_CHAT_CALL = {"id": "call_1", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "moons"}'}}
_KIMI = (
    {"role": "_system_prompt", "content": "You are Kimi."},
    {"role": "_checkpoint", "id": 0},
    {"role": "user", "content": ASKED},
    {"role": "assistant", "content": [{"type": "think", "think": THOUGHT, "encrypted": "c2ln"}],
     "tool_calls": [_CHAT_CALL]},
    {"role": "_usage", "token_count": 90},
    {"role": "tool", "content": OUTPUT, "tool_call_id": "call_1"},
    {"role": "assistant", "content": SAID},
)  # fmt: skip

_STATE = {
    "toolCallId": "call_1", "toolCall": _CHAT_CALL, "status": "done", "parsedArgs": {"path": "moons"},
    "output": [{"content": OUTPUT, "name": "moons", "description": "A file of moons"}],
}  # fmt: skip
_CONTINUE = {
    "sessionId": f"{_ID}d",
    "title": "Moons",
    "workspaceDirectory": "file:///srv/moons",
    "history": [
        {"message": {"role": "user", "content": ASKED},
         "contextItems": [{"content": "A note about Titan.", "name": "note", "description": "A note of mine"}]},
        {"message": {"role": "thinking", "content": THOUGHT, "signature": "c2ln"}, "contextItems": []},
        {"message": {"role": "assistant", "content": "", "toolCalls": [_CHAT_CALL]}, "contextItems": [],
         "toolCallStates": [_STATE]},
        {"message": {"role": "tool", "content": OUTPUT, "toolCallId": "call_1"}, "contextItems": []},
        {"message": {"role": "assistant", "content": SAID}, "contextItems": []},
    ],
}  # fmt: skip

_AIDER = f"""
# aider chat started at 2026-07-01 09:00:00

> Aider v0.86.1
> Model: gpt-5 with diff edit format

#### Hello?

Hello! What shall we do?


# aider chat started at 2026-08-01 10:00:00

#### {ASKED}  
#### And which is second?  

{SAID}

# Second

Titan.

> Tokens: 40 sent, 9 received.

""".encode()  # noqa: W291  aider ends a prompt's lines so

_CALLED = '{"name": "read_file", "arguments": {"path": "moons of planets.txt"}}'
_SHAREGPT = {
    "system": "You know moons.",
    "conversations": [
        {"from": "human", "value": ASKED},
        {"from": "function_call", "value": _CALLED},
        {"from": "observation", "value": OUTPUT},
        {"from": "gpt", "value": SAID},
    ],
}
_HERMES = {
    "conversations": [
        {"from": "system", "value": "You may call functions."},
        {"from": "human", "value": ASKED},
        {"from": "gpt", "value": f"I look it up.\n<tool_call>\n{_CALLED}\n</tool_call>"},
        {"from": "tool", "value": f"<tool_response>\n{OUTPUT}\n</tool_response>"},
        {"from": "gpt", "value": SAID},
    ]
}  # fmt: skip


def _cline() -> list[dict[str, Any]]:
    asked, called, answered, said = _messages()
    asked = {**asked, "content": [{"type": "text", "text": f"<task>\n{ASKED}\n</task>"}]}
    about = {"modelId": "claude-x", "providerId": "anthropic", "mode": "act"}
    spent = {"tokens": {"prompt": 40, "completion": 9, "cached": 8}, "cost": 0.25}
    return [asked, {**called, "modelInfo": about, "metrics": spent, "ts": 1785578401000}, answered, said]


def _roo() -> list[dict[str, Any]]:
    asked, called, answered, said = ({**one, "ts": 1785578400000 + at} for at, one in enumerate(_messages()))
    summary = {"role": "user", "content": [{"type": "text", "text": "A summary of it."}], "isSummary": True,
               "condenseId": "c1", "ts": 1785578405000}  # fmt: skip
    return [{**asked, "condenseParent": "c1"}, called, answered, summary, {**said, "reasoning_content": "I am sure."}]


def _amp() -> dict[str, Any]:
    asked, called, answered, said = _messages()
    result = {"type": "tool_result", "toolUseID": "toolu_1", "run": {"status": "done", "result": OUTPUT}}
    answered = {**answered, "content": [result, answered["content"][1]]}
    usage = {"model": "claude-x", "inputTokens": 40, "outputTokens": 9}
    said = {**said, "usage": usage, "state": {"type": "complete", "stopReason": "end_turn"}}
    thread = {"v": 3, "id": f"T-{_ID}c", "created": 1785578400000, "title": "Moons", "env": {"initial": {"trees": [
        {"displayName": "moons", "uri": "file:///srv/moons"}]}}}  # fmt: skip
    messages = [{**one, "messageId": at} for at, one in enumerate([asked, called, answered, said])]
    return {**thread, "messages": messages}


def _droid() -> list[dict[str, Any]]:
    start = {"type": "session_start", "id": f"{_ID}b", "title": "Moons", "owner": "me", "cwd": "/srv/moons"}
    talk = [
        {"type": "message", "id": f"m{at}", "timestamp": f"{_AT}{at}.000Z", "message": one}
        for at, one in enumerate(_messages())
    ]
    return [start, talk[0], {"type": "todo_state", "id": "t1", "todos": {"todos": "1. Look it up"}}, *talk[1:]]


_WITHOUT_ID = {"type": "tool_use", "name": "Read", "input": ARGUMENTS}
_CURSOR = (
    {"role": "user", "message": {"content": [{"type": "text", "text": ASKED}]}},
    {"role": "assistant", "message": {"content": [{"type": "text", "text": "I look it up."}, _WITHOUT_ID]}},
    {"type": "turn_ended", "status": "success"},
    {"role": "assistant", "message": {"content": [{"type": "text", "text": SAID}]}},
)

# Zed's rows as the reader makes lines of them: a thread of today's form, and one of the form before
_ZED_CALL = {"id": "toolu_1", "name": "read_file", "raw_input": '{"path": "moons of planets.txt"}',
             "input": {"type": "json", "value": ARGUMENTS}, "is_input_complete": True,
             "thought_signature": None}  # fmt: skip
_ZED_RESULT = {"tool_use_id": "toolu_1", "tool_name": "read_file", "is_error": False, "output": None}
_ZED = {
    "title": "Moons",
    "version": "0.3.0",
    "updated_at": f"{_AT}9Z",
    "model": {"provider": "anthropic", "model": "claude-x"},
    "request_token_usage": {"u1": {"input_tokens": 40, "output_tokens": 9, "cache_read_input_tokens": 8}},
    "messages": [
        {"User": {"id": "u1", "content": [
            {"Text": ASKED},
            {"Mention": {"uri": {"File": {"abs_path": "/srv/moons/a.txt"}}, "content": "Five moons, as text"}}]}},
        {"Agent": {"content": [{"Thinking": {"text": THOUGHT, "signature": "c2ln"}}, {"ToolUse": _ZED_CALL}],
                   "tool_results": {"toolu_1": {**_ZED_RESULT, "content": [{"Text": OUTPUT}]}}}},
        "Resume",
        {"Agent": {"content": [{"Text": SAID}], "tool_results": {}}},
    ],
}  # fmt: skip
_ZED_EARLIER = {
    "summary": "Moons",
    "version": "0.2.0",
    "updated_at": f"{_AT}9Z",
    "messages": [
        {"id": 0, "role": "user", "segments": [{"type": "text", "text": ASKED}], "context": "A note about Titan."},
        {"id": 1, "role": "assistant", "segments": [{"type": "thinking", "text": THOUGHT, "signature": "c2ln"}],
         "tool_uses": [{"id": "toolu_2", "name": "read_file", "input": ARGUMENTS}],
         "tool_results": [{"tool_use_id": "toolu_2", "is_error": False, "content": OUTPUT, "output": None}]},
        {"id": 2, "role": "assistant", "segments": [{"type": "text", "text": SAID}]},
    ],
}  # fmt: skip
ZED_ROWS: Sequence[Mapping[str, Any]] = [
    {"id": f"{_ID}{number}", "summary": "Moons", "updated_at": f"{_AT}9Z", "folder_paths": "/srv/moons\n/srv/other",
     "created_at": f"{_AT}0Z", "data": data}
    for number, data in enumerate([_ZED, _ZED_EARLIER])
]  # fmt: skip

# name of the format, or with a word about the file -> the file
SAMPLES: Mapping[str, bytes] = {
    "aider": _AIDER,
    "amp": _document(_amp()),
    "chat-list, of Messages": _document(_messages([{"type": "text", "text": OUTPUT}])),
    "chat-ft, of Messages": _lines({"messages": _messages()}),
    "cline": _document(_cline()),
    "cline, Roo Code": _document(_roo()),
    "continue": _document(_CONTINUE),
    "copilot": _lines(*_COPILOT),
    "cursor": _lines(*_CURSOR),
    "factory-droid": _lines(*_droid()),
    "goose": _document({
        "id": "20260801_1", "working_dir": "/srv/moons", "name": "Moons", "created_at": f"{_AT}0Z",
        "extension_data": {}, "provider_name": "anthropic", "model_config": {"model_name": "claude-x"},
        "conversation": _GOOSE, "message_count": 4,
    }),
    "goose-lines": _lines({"working_dir": "/srv/moons", "description": "Moons", "message_count": 4}, *_GOOSE),
    "kimi": _lines(*_KIMI),
    "qwen-code": _lines(*_QWEN),
    "sharegpt": _lines(_SHAREGPT, _HERMES),
    "sharegpt-list": _document([_HERMES]),
    "zed": _lines(*ZED_ROWS),
}  # fmt: skip


class Facts(NamedTuple):
    """Facts of a sample beside its conversation.

    Attributes:
        signed: how many thoughts have the signature `c2ln`.
        model: of the answers, as a message has it.
        tokens: counted of one answer: input, output, cached input, as the services' own words mean them.
        failed: how many results are marked as failed.
    """

    signed: int = 0
    model: str | None = None
    tokens: tuple[int | None, int | None, int | None] | None = None
    failed: int = 0


# name of a sample -> its facts
FACTS: Mapping[str, Facts] = {
    "amp": Facts(1, "unknown:claude-x", (40, 9, None)),
    "chat-list, of Messages": Facts(1),
    "chat-ft, of Messages": Facts(1),
    "cline": Facts(1, "anthropic:claude-x", (40, 9, 8)),
    "cline, Roo Code": Facts(1),
    "continue": Facts(1),
    "copilot": Facts(0, "copilot:gpt-5-mini", (None, 12, None)),
    "factory-droid": Facts(1),
    "goose": Facts(1, "anthropic:claude-x"),
    "goose-lines": Facts(1),
    "kimi": Facts(1),
    "qwen-code": Facts(0, "unknown:qwen3-coder", (40, 9, None)),
    "zed": Facts(2, "anthropic:claude-x", (48, 9, 8)),  # 40 and the 8 cached
}
