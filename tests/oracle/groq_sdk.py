"""What Groq's official SDK makes of the same bytes: the reader our adapter has to agree with."""

from __future__ import annotations

from typing import Any

import groq
import httpx

ASKED: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "x"}]}


def client(body: bytes, *, status: int = 200, headers: dict[str, str] | None = None) -> groq.Groq:
    """Return the SDK, wired to an answer that is ready."""

    def answer(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(status, headers=headers or {}, content=body)

    made = httpx.Client(transport=httpx.MockTransport(answer))
    return groq.Groq(api_key="none", base_url="http://oracle.invalid", http_client=made, max_retries=0)


def whole(body: bytes) -> dict[str, Any]:
    """Return the completion the SDK makes of a whole body, as JSON."""
    with client(body, headers={"content-type": "application/json"}) as sdk:
        made: Any = sdk.chat.completions.create(**ASKED)
    found: dict[str, Any] = made.to_dict(mode="json")
    return found


def streamed(body: bytes) -> list[dict[str, Any]]:
    """Return the chunks the SDK makes of a stream, as JSON; it has no accumulator."""
    with client(body, headers={"content-type": "text/event-stream"}) as sdk:
        chunks: Any = sdk.chat.completions.create(**ASKED, stream=True)
        return [chunk.to_dict(mode="json") for chunk in chunks]
