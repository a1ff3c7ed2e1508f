"""Hand-written Responses traffic, by WIRE.md, Responses status, and the ways to read it.

Never copied from recorded traffic.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import count
from typing import Any

from interlingua._plugins.registry import Registry
from interlingua._response.decode import StreamDecoder
from interlingua._response.framing import framer
from interlingua.plugins import RequestContext, WireRequest, WireResponse, build_request
from interlingua.types.messages import Message, Origin
from interlingua.types.options import RequestOptions

PROVIDER = Registry().provider("openai")
MODEL = "gpt-5.5"


def context(model: str = MODEL, api: str = "responses") -> RequestContext:
    """Fixed ids and clock: two readings of one answer are equal."""
    numbers = count()
    return RequestContext(
        origin=Origin("openai", api, model),
        message_id="01MESSAGE",
        mint_tool_use_id=lambda: f"tu_{next(numbers)}",
        clock=lambda: datetime(2026, 11, 21, tzinfo=UTC),
    )


def reasoning(
    text: str = "I should look.", encrypted: str | None = "gAAAA-secret", item_id: str = "rs_1"
) -> dict[str, Any]:
    summary = [{"type": "summary_text", "text": text}] if text else []
    return {"id": item_id, "type": "reasoning", "encrypted_content": encrypted, "summary": summary}


def said(text: str, item_id: str = "msg_1", **more: Any) -> dict[str, Any]:
    part = {"type": "output_text", "annotations": [], "logprobs": [], "text": text}
    return {"id": item_id, "type": "message", "status": "completed", "content": [part], "role": "assistant", **more}


def call(arguments: str, call_id: str = "call_1", name: str = "read_file", item_id: str = "fc_1") -> dict[str, Any]:
    return {"id": item_id, "type": "function_call", "status": "completed", "arguments": arguments, "call_id": call_id,
            "name": name}  # fmt: skip


def response(*output: dict[str, Any], **changes: Any) -> dict[str, Any]:
    usage = {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
        "output_tokens": 50,
        "output_tokens_details": {"reasoning_tokens": 30},
        "total_tokens": 150,
    }
    return {"id": "resp_1", "object": "response", "created_at": 1_790_000_000, "status": "completed", "error": None,
            "incomplete_details": None, "instructions": None, "metadata": {}, "model": MODEL, "output": list(output),
            "parallel_tool_calls": True, "temperature": None, "tool_choice": "auto", "tools": [], "top_p": None,
            "service_tier": "default", "usage": usage} | changes  # fmt: skip


def whole(body: dict[str, Any], status: int = 200, model: str = MODEL) -> Message:
    return PROVIDER.from_wire_response(WireResponse(status=status, body=json.dumps(body).encode()), context(model))


def sse(events: Iterable[dict[str, Any]]) -> bytes:
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


def decoder(data: bytes, size: int | None = None, model: str = MODEL) -> StreamDecoder:
    made = StreamDecoder(PROVIDER, framer("sse"), context(model))
    step = size or max(len(data), 1)
    for at in range(0, len(data), step):
        made.feed(data[at : at + step])
    made.end()
    return made


def streamed(events: Iterable[dict[str, Any]], size: int | None = None) -> Message:
    return decoder(sse(events), size).message()


def events_of(body: dict[str, Any], piece: int = 5) -> list[dict[str, Any]]:
    """Stream a response as WIRE.md, Responses streams, has it: added, parts and deltas, done, terminal."""
    out: list[dict[str, Any]] = [
        {"type": "response.created", "response": body | {"status": "in_progress", "output": [], "usage": None}}
    ]
    for place, item in enumerate(body["output"]):
        out += _item_events(place, item, piece)
    end = "response.incomplete" if body["status"] == "incomplete" else "response.completed"
    out.append({"type": end, "response": body})
    return [{**event, "sequence_number": number} for number, event in enumerate(out)]


def _item_events(place: int, item: dict[str, Any], piece: int) -> Iterable[dict[str, Any]]:
    at = {"output_index": place, "item_id": item["id"]}
    begun: dict[str, dict[str, Any]] = {
        "message": {"content": [], "status": "in_progress"},
        "reasoning": {"summary": [], "encrypted_content": None},
        "function_call": {"arguments": "", "status": "in_progress"},
    }
    empty = begun.get(item["type"], {})
    yield {"type": "response.output_item.added", "output_index": place, "item": item | empty}
    for index, part in enumerate(item.get("content") or () if item["type"] == "message" else ()):
        kind, field = ("refusal", "refusal") if part["type"] == "refusal" else ("output_text", "text")
        here = at | {"content_index": index}
        yield {"type": "response.content_part.added", **here, "part": part | {field: ""}}
        for text in _cut(part[field], piece):
            yield {"type": f"response.{kind}.delta", **here, "delta": text, "logprobs": []}
        yield {"type": f"response.{kind}.done", **here, field: part[field], "logprobs": []}
        yield {"type": "response.content_part.done", **here, "part": part}
    for index, part in enumerate(item.get("summary") or ()):
        for text in _cut(part["text"], piece):
            yield {"type": "response.reasoning_summary_text.delta", **at, "summary_index": index, "delta": text}
    for text in _cut(item["arguments"] if item["type"] == "function_call" else "", piece):
        yield {"type": "response.function_call_arguments.delta", **at, "delta": text}
    yield {"type": "response.output_item.done", "output_index": place, "item": item}


def _cut(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def request(messages: list[Message], *, tools: Any = (), **options: Any) -> WireRequest:
    options = {"model": MODEL, "api": "responses"} | options
    return build_request(PROVIDER, messages, list(tools), RequestOptions(**options))


def body_of(messages: list[Message], **options: Any) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(request(messages, **options).body)
    return body
