"""Short ways to ask the adapter for a request and to read it, and the official SDK over the same bytes.

Nothing here decides what is right, and no byte leaves the process.
"""

from __future__ import annotations

import json
from typing import Any

import httpx2
from mistralai.client import Mistral

from interlingua.types.messages import Message
from tests.support.adapter import Adapter

API = "chat"
MODEL = "mistral-large-latest"
ADAPTER = Adapter("mistral", API, MODEL)
MISTRAL = ADAPTER.provider
asked, body, answer, context, whole = ADAPTER.asked, ADAPTER.body, ADAPTER.answer, ADAPTER.context, ADAPTER.read
ASKED: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "x"}]}


def completion(message: dict[str, Any], finish: str = "stop", **more: Any) -> dict[str, Any]:
    """Return a whole answer."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion", "created": 1, "model": MODEL, "choices": [choice], **more}


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    """Return one chunk of a stream."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": MODEL, "choices": [choice], **more}


def sse(*chunks: dict[str, Any]) -> bytes:
    """Write chunks, and the sentinel."""
    lines = [b"data: " + json.dumps(one, ensure_ascii=False).encode() + b"\n\n" for one in chunks]
    return b"".join(lines) + b"data: [DONE]\n\n"


def streamed(*chunks: dict[str, Any]) -> Message:
    """Read a stream at three chunkings, which must agree."""
    return ADAPTER.streamed(sse(*chunks))


def sdk(raw: bytes, kind: str = "application/json", *, status: int = 200) -> Mistral:
    """Return the official SDK, wired to an answer that is ready."""

    def reply(_request: Any) -> Any:
        return httpx2.Response(status, headers={"content-type": kind}, content=raw)

    return Mistral(api_key="none", client=httpx2.Client(transport=httpx2.MockTransport(reply)))


def sdk_whole(raw: bytes) -> dict[str, Any]:
    """Return the SDK's reading of a whole answer, as JSON."""
    found: dict[str, Any] = sdk(raw).chat.complete(**ASKED).model_dump(mode="json", by_alias=True)
    return found


def sdk_streamed(raw: bytes) -> list[dict[str, Any]]:
    """Return the SDK's reading of each chunk, as JSON."""
    events = sdk(raw, "text/event-stream").chat.stream(**ASKED)
    return [event.data.model_dump(mode="json", by_alias=True) for event in events]
