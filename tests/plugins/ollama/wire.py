"""Short ways to ask the adapter for a request and to read it, and the official SDK over the same bytes."""

from __future__ import annotations

import json
from typing import Any

import httpx as http
import ollama

from interlingua.types.messages import Message
from tests.support.adapter import Adapter

API = "chat-native"
MODEL = "qwen3:4b"
ADAPTER = Adapter("ollama", API, MODEL)
OLLAMA = ADAPTER.provider
asked, body, answer, context, whole = ADAPTER.asked, ADAPTER.body, ADAPTER.answer, ADAPTER.context, ADAPTER.read


def line(message: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Return one line of a stream."""
    said = {"role": "assistant", "content": "", **(message or {})}
    return {"model": MODEL, "created_at": "2026-11-21T00:00:00Z", "message": said, "done": False, **more}


def done(reason: str | None = "stop", message: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Return the last line."""
    ended = {} if reason is None else {"done_reason": reason}
    return line(message, **{"done": True, **ended, **more})


def call(name: str, arguments: Any, own: str | None = None) -> dict[str, Any]:
    """Return one entry of `tool_calls`."""
    made = {"function": {"name": name, "arguments": arguments}}
    return made if own is None else {"id": own, **made}


def ndjson(*lines: dict[str, Any]) -> bytes:
    """Write lines."""
    return b"".join(json.dumps(one, ensure_ascii=False).encode() + b"\n" for one in lines)


def streamed(*lines: dict[str, Any]) -> Message:
    """Read a stream at three chunkings, which must agree."""
    return ADAPTER.streamed(ndjson(*lines))


def sdk(raw: bytes, *, status: int = 200) -> ollama.Client:
    """Return the official SDK, wired to an answer that is ready."""
    return ollama.Client("http://127.0.0.1", transport=http.MockTransport(lambda _: http.Response(status, content=raw)))
