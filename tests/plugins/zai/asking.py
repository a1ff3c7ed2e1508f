"""Short ways to ask the adapter for a request and to read an answer, for the tests beside this file.

Nothing here decides what is right.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from interlingua.types.messages import Message
from tests.support.adapter import Adapter

MODEL = "glm-4.7"
ADAPTER = Adapter("zai", "chat", MODEL)
ZAI = ADAPTER.provider
asked, body, context, read = ADAPTER.asked, ADAPTER.body, ADAPTER.context, ADAPTER.read


def answer(message: Mapping[str, Any], finish: str = "stop", **more: Any) -> dict[str, Any]:
    """Return a whole answer."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return {"id": "2026-1", "request_id": "2026-1", "created": 1, "model": MODEL, "choices": [choice], **more}


def chunk(delta: Mapping[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    """Return a chunk as this service sends it: with the role each time, without `object`."""
    choice = {"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": finish}
    return {"id": "2026-1", "created": 1, "model": MODEL, "choices": [choice], **more}


def sse(chunks: Iterable[Mapping[str, Any]], *, done: bool = True) -> bytes:
    """Write chunks as the service frames them."""
    text = b"".join([b"data: %s\n\n" % json.dumps(one).encode() for one in chunks])
    return text + (b"data: [DONE]\n\n" if done else b"")


def streamed(*chunks: Mapping[str, Any], model: str = MODEL) -> Message:
    """Return the message of a stream, read at three chunkings that must agree."""
    return ADAPTER.streamed(sse(chunks), model)
