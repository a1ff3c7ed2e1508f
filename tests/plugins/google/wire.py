"""Short ways to ask the adapter for a request and to read it, and the official SDK over ready bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import httpx
from google import genai
from google.genai import types

from interlingua.plugins import WireRequest
from interlingua.types.messages import Message, StopReason
from tests.support import driving
from tests.support.adapter import Adapter

OLD = "gemini-2.5-flash"  # budgets, unsigned calls
NEW = "gemini-3-flash-preview"  # levels, signed calls
ADAPTER = Adapter("google", "generate", OLD)
GOOGLE = ADAPTER.provider
asked, body, answer, context, read = ADAPTER.asked, ADAPTER.body, ADAPTER.answer, ADAPTER.context, ADAPTER.read
STOPS = {"STOP": StopReason.END_TURN, "MAX_TOKENS": StopReason.MAX_TOKENS}


def body_of(request: WireRequest) -> dict[str, Any]:
    """Return its body, parsed."""
    parsed: dict[str, Any] = json.loads(request.body)
    return parsed


def chunk(*parts: Mapping[str, Any], finish: Any = None, usage: Any = None, **fields: Any) -> dict[str, Any]:
    """Return one answer object."""
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    made: dict[str, Any] = {"candidates": [candidate | fields], "modelVersion": OLD, "responseId": "r1"}
    return made | ({"usageMetadata": usage} if usage is not None else {})


def sse(*chunks: Mapping[str, Any]) -> bytes:
    """Write chunks as the service frames them."""
    return b"".join(f"data: {json.dumps(item)}\r\n\r\n".encode() for item in chunks)


def streamed(*chunks: Mapping[str, Any], model: str = OLD, size: int | None = None) -> Message:
    """Return the message of a stream."""
    return driving.streamed(GOOGLE, sse(*chunks), context(model), size)


_READY: list[httpx.Response] = []
_SDK = genai.Client(
    api_key="none",
    http_options=types.HttpOptions(
        httpx_client=httpx.Client(transport=httpx.MockTransport(lambda _request: _READY.pop()))
    ),
)


def sdk(raw: bytes, *, status: int = 200, content_type: str = "application/json") -> genai.Client:
    """Return the official SDK, wired to one answer that is ready; no byte leaves the process."""
    _READY[:] = [httpx.Response(status, headers={"content-type": content_type}, content=raw)]
    return _SDK


def sdk_whole(raw: bytes) -> list[types.GenerateContentResponse]:
    """Return what the SDK makes of a whole body."""
    return [sdk(raw).models.generate_content(model="m", contents="x")]


def sdk_streamed(raw: bytes) -> list[types.GenerateContentResponse]:
    """Return what the SDK makes of a stream."""
    return list(sdk(raw, content_type="text/event-stream").models.generate_content_stream(model="m", contents="x"))


def parts_of(parsed: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return all parts of a request in order, the system's first."""
    system = parsed.get("systemInstruction", {}).get("parts", [])
    return [*system, *(part for content in parsed["contents"] for part in content["parts"])]
