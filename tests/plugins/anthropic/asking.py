"""Short ways to ask the adapter for a request and to read it, for the tests beside this file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from interlingua.plugins import WireRequest
from interlingua.types.messages import Message
from tests.support.adapter import Adapter

OLD = "claude-sonnet-4-5"  # manual thinking, sampling, prefill
NEW = "claude-opus-5-5"  # always thinks, bound to its prefix, no forced choice
ADAPTER = Adapter("anthropic", "messages", OLD)
ANTHROPIC = ADAPTER.provider
asked, body, answer, context, read = ADAPTER.asked, ADAPTER.body, ADAPTER.answer, ADAPTER.context, ADAPTER.read


def body_of(request: WireRequest) -> dict[str, Any]:
    """Return its body, parsed."""
    parsed: dict[str, Any] = json.loads(request.body)
    return parsed


def elements(parsed: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return all content elements in order, whatever turn they stand in."""
    return [element for turn in parsed["messages"] for element in turn["content"]]


def sse(*events: Mapping[str, Any]) -> bytes:
    """Write events as the service frames them."""
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


START: dict[str, Any] = {
    "type": "message_start",
    "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": OLD, "content": [], "stop_reason": None,
        "stop_sequence": None, "usage": {"input_tokens": 10, "output_tokens": 1},
    },
}  # fmt: skip
STOP = {"type": "message_stop"}


def block(index: int, start: Mapping[str, Any], *deltas: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the events of one block."""
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def ended(reason: str | None = "end_turn", **usage: int) -> dict[str, Any]:
    """Return the message_delta that gives the stop reason."""
    counts = {"output_tokens": 5, **usage}
    return {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": counts}


def said(text: str) -> list[dict[str, Any]]:
    """Return the events of a text block 0."""
    return block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": text})


def whole(content: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    """Return a whole answer."""
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": OLD, "content": content,
        "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 10, "output_tokens": 5}, **fields,
    }  # fmt: skip


def streamed(*events: Mapping[str, Any], model: str = OLD) -> Message:
    """Return the message of a stream."""
    return ADAPTER.streamed(sse(*events), model)
