"""The scripted service of the tests with agents: thinking, three parallel calls and text, in three APIs."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from tests.support.loopback import send_bytes

COUNT = "/v1/messages/count_tokens"
SAID = "Both files are read."
SECRETS = {"one.txt": "first secret 4711", "two.txt": "second secret 0815"}
PICTURE = "picture.png"
READERS = ("Read", "read_file", "read", "exec_command", "shell_command")  # an agent's first one is used
VIEWERS = ("view_image", *READERS)
ARGUMENTS = {"file_path": "{}", "filePath": "{}", "path": "{}", "cmd": "cat {}", "command": "cat {}"}


def signature(number: int) -> str:
    """Return the signature of the thinking before the calls of an answer, counted from 0 in a session."""
    return base64.b64encode(f"signed by the service, {number:>3}; ".encode() * 40).decode()


def picture() -> bytes:
    """Return a PNG file of 16 x 16 red pixels (https://www.w3.org/TR/png-3/)."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 16, 16, 8, 2, 0, 0, 0))
    rows = zlib.compress((b"\0" + b"\xff\0\0" * 16) * 16)
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def _calls(tools: Sequence[Mapping[str, Any]], folder: Path) -> list[tuple[str, dict[str, Any]]]:
    listed = tools[0].get("functionDeclarations", tools)  # of generateContent
    facts = {tool["name"]: tool for tool in [tool.get("function", tool) for tool in listed]}

    def call(names: Sequence[str], file: str) -> tuple[str, dict[str, Any]]:
        name = next(name for name in names if name in facts)
        schemas = [facts[name].get(key) for key in ("input_schema", "parameters", "parametersJsonSchema")]
        taken = next(schema for schema in schemas if schema)["properties"]
        argument = next(argument for argument in ARGUMENTS if argument in taken)
        return name, {argument: ARGUMENTS[argument].format(folder / file)}

    return [*(call(READERS, file) for file in SECRETS), call(VIEWERS, PICTURE)]


def parts_since_answer(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the parts after the last answer; a message of role `tool` is one part."""
    parts: list[dict[str, Any]] = []
    for message in reversed(body.get("messages") or body["contents"]):
        if message["role"] in ("assistant", "model"):
            break
        content = message.get("content", message.get("parts"))
        whole = message["role"] == "tool" or isinstance(content, str)
        parts = [*([message] if whole else content), *parts]
    return parts


def is_result(part: Mapping[str, Any]) -> bool:
    """Tell whether a part is the result of a call."""
    return part.get("role") == "tool" or part.get("type") == "tool_result" or "functionResponse" in part


def messages_events(calls: Sequence[tuple[str, Any]], number: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the events of a streamed answer of the Messages API (https://docs.anthropic.com/en/api/messages-streaming).

    Args:
        calls: the names and arguments of its calls; without calls, it is text.
        number: of the answers with calls before it.
    """
    usage = {"input_tokens": 50, "output_tokens": 1}
    message = {"id": "msg_up", "type": "message", "role": "assistant", "model": "up", "content": [], "usage": usage}
    yield {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None}}
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    if calls:
        thinking = [
            {"type": "thinking_delta", "thinking": "I read both."},
            {"type": "signature_delta", "signature": signature(number)},
        ]
        blocks.append(({"type": "thinking", "thinking": "", "signature": ""}, thinking))
    for at, (name, arguments) in enumerate(calls):
        start = {"type": "tool_use", "id": f"toolu_up{at}", "name": name, "input": {}}
        blocks.append((start, [{"type": "input_json_delta", "partial_json": json.dumps(arguments)}]))
    if not calls:
        blocks.append(({"type": "text", "text": ""}, [{"type": "text_delta", "text": SAID}]))
    for index, (start, deltas) in enumerate(blocks):
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    reason = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    yield {"type": "message_delta", "delta": reason, "usage": {"output_tokens": 20}}
    yield {"type": "message_stop"}


def chat_chunks(calls: Sequence[tuple[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the chunks of a streamed answer of Chat Completions."""
    about = {"id": "chatcmpl-up", "object": "chat.completion.chunk", "created": 1, "model": "up"}
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": "" if calls else SAID}]
    if calls:
        deltas.insert(0, {"role": "assistant", "reasoning_content": "I read both."})
    for index, (name, arguments) in enumerate(calls):
        function = {"name": name, "arguments": json.dumps(arguments)}
        deltas.append(
            {"tool_calls": [{"index": index, "id": f"call_up{index}", "type": "function", "function": function}]}
        )
    for delta in deltas:
        yield {**about, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    last = {"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"}
    yield {**about, "choices": [last]}
    yield {**about, "choices": [], "usage": {"prompt_tokens": 50, "completion_tokens": 20, "total_tokens": 70}}


def generate_chunks(calls: Sequence[tuple[str, Any]], number: int) -> Iterator[dict[str, Any]]:
    """Yield the chunks of a streamed answer of generateContent; of parallel calls, the first one has the signature."""
    signed = {"thoughtSignature": signature(number)}
    parts: list[dict[str, Any]] = [{"text": "I read both.", "thought": True}] if calls else [{"text": SAID}]
    for at, (name, arguments) in enumerate(calls):
        parts.append({"functionCall": {"name": name, "args": arguments}, **(signed if at == 0 else {})})
    for part in parts:
        yield {"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}], "modelVersion": "up"}
    usage = {"promptTokenCount": 50, "candidatesTokenCount": 20, "totalTokenCount": 70}
    yield {"candidates": [{"finishReason": "STOP", "index": 0}], "usageMetadata": usage, "modelVersion": "up"}


def play(folder: Path) -> Any:
    """Return the function that answers: calls after a question, text after results, a number if tokens are counted."""
    made = 0

    def answer(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        nonlocal made
        if handler.path == COUNT:
            send_bytes(handler, 200, "application/json", b'{"input_tokens": 50}')
            return
        answered = any(is_result(part) for part in parts_since_answer(body))
        calls = [] if answered or not body.get("tools") else _calls(body["tools"], folder)
        if handler.path.startswith("/v1/messages"):
            lines = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in messages_events(calls, made)]
        elif "contents" in body:
            lines = [f"data: {json.dumps(chunk)}\r\n\r\n" for chunk in generate_chunks(calls, made)]
        else:
            lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chat_chunks(calls)] + ["data: [DONE]\n\n"]
        made += bool(calls)
        send_bytes(handler, 200, "text/event-stream", "".join(lines).encode())

    return answer
