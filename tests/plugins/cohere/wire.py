"""Short ways to ask the adapter for a request and to read it, and the official SDK over the same bytes."""

from __future__ import annotations

import json
from typing import Any

import cohere
import httpx as http

from interlingua.types.messages import Message
from tests.support.adapter import Adapter

API = "chat-v2"
MODEL = "command-a-03-2025"
ADAPTER = Adapter("cohere", API, MODEL)
COHERE = ADAPTER.provider
asked, body, answer, context, whole = ADAPTER.asked, ADAPTER.body, ADAPTER.answer, ADAPTER.context, ADAPTER.read


def sse(*events: dict[str, Any]) -> bytes:
    """Write events as the service frames them."""
    framed = [f"event: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n" for event in events]
    return "".join(framed).encode() + b"data: [DONE]\n\n"


def event(kind: str, index: int | None = None, **message: Any) -> dict[str, Any]:
    """Return one event of a stream."""
    at = {} if index is None else {"index": index}
    return {"type": kind, **at, **({"delta": {"message": message}} if message else {})}


def end(reason: str | None = "COMPLETE", **more: Any) -> dict[str, Any]:
    """Return the last event."""
    return {"type": "message-end", "delta": {"finish_reason": reason, **more}}


def streamed(*events: dict[str, Any]) -> Message:
    """Read a stream at three chunkings, which must agree."""
    return ADAPTER.streamed(sse(*events))


def sdk(raw: bytes, *, status: int = 200, stream: bool = False) -> cohere.ClientV2:
    """Return the official SDK, wired to an answer that is ready."""
    kind = "text/event-stream" if stream else "application/json"
    transport = http.MockTransport(lambda _: http.Response(status, content=raw, headers={"content-type": kind}))
    return cohere.ClientV2(
        api_key="none-real", base_url="http://127.0.0.1", httpx_client=http.Client(transport=transport)
    )


def parts(raw: bytes, *, stream: bool) -> list[dict[str, Any]]:
    """Return what the official SDK reads of an answer: its events, or the one body, as plain values."""
    client = sdk(raw, stream=stream)
    read: Any = client.chat_stream(model="m", messages=[]) if stream else [client.chat(model="m", messages=[])]
    return [json.loads(part.json()) for part in read]
