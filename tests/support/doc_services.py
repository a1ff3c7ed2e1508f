"""A server on this machine that answers as two services do, so that the documents' code runs as a reader would run it.

The answers are written from the services' documentation, minimal, and say nothing of any model.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.support.loopback import loopback, send_bytes

SAID = "Ganymede is the largest."
_USAGE = {"input_tokens": 12, "output_tokens": 6}


_SHAPED = '{"largest": "Ganymede"}'
_INPUT = {"museum": "of the moon"}
_CALLED = ("opening_hours", "order_tickets")


def _call(asked: dict[str, Any]) -> dict[str, Any] | None:
    """Return the call of the one tool that is called here, where it is offered and was not called yet."""
    offered = [tool.get("name") for tool in asked.get("tools", ()) if str(tool.get("name")).endswith(_CALLED)]
    if not offered or any(message["role"] == "assistant" for message in asked["messages"]):
        return None
    return {"type": "tool_use", "id": "toolu_1", "name": offered[0], "input": _INPUT}


def _messages(stream: bool, call: dict[str, Any] | None) -> list[dict[str, Any]]:
    whole = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
             "stop_reason": None, "stop_sequence": None, "usage": _USAGE}  # fmt: skip
    ended = "end_turn" if call is None else "tool_use"
    block = call or {"type": "text", "text": SAID}
    if not stream:
        return [{**whole, "content": [block], "stop_reason": ended}]
    empty = {**call, "input": {}} if call else {"type": "text", "text": ""}
    delta = {"type": "input_json_delta", "partial_json": json.dumps(_INPUT)} if call else {}
    return [
        {"type": "message_start", "message": whole},
        {"type": "content_block_start", "index": 0, "content_block": empty},
        {"type": "content_block_delta", "index": 0, "delta": delta or {"type": "text_delta", "text": SAID}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": ended, "stop_sequence": None}, "usage": _USAGE},
        {"type": "message_stop"},
    ]


def _responses(stream: bool, said: str = SAID) -> list[dict[str, Any]]:
    part = {"type": "output_text", "text": said, "annotations": []}
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
    usage = {**_USAGE, "total_tokens": 18}
    whole = {"id": "resp_1", "object": "response", "status": "completed", "output": [item], "usage": usage}
    if not stream:
        return [whole]
    at = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    return [
        {"type": "response.created", "response": {**whole, "status": "in_progress", "output": [], "usage": None}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        {"type": "response.content_part.added", **at, "part": {**part, "text": ""}},
        {"type": "response.output_text.delta", **at, "delta": said},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    ]


def _answer(handler: BaseHTTPRequestHandler, body: bytes) -> None:
    asked = json.loads(body)
    stream = bool(asked.get("stream"))
    if not handler.path.endswith("/messages"):
        shaped = asked.get("text", {}).get("format", {}).get("type") == "json_schema"
        events = _responses(stream, _SHAPED if shaped else SAID)
    else:
        events = _messages(stream, _call(asked))
    if stream:
        lines = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]
        send_bytes(handler, 200, "text/event-stream", "".join(lines).encode(), connection="close")
    else:
        send_bytes(handler, 200, "application/json", json.dumps(events[0]).encode(), connection="close")


@contextmanager
def documented_services() -> Iterator[dict[str, str]]:
    """Run the server; yield the environment that leads the documents' code to it."""
    with loopback(_answer) as url:
        keys = {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}
        yield {"ANTHROPIC_BASE_URL": url, "OPENAI_BASE_URL": f"{url}/v1", **keys}
