"""What Z.ai's official SDK makes of the same bytes: the reader our adapter has to agree with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
from zai import ZaiClient

ASKED: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "x"}]}


def client(
    body: bytes,
    *,
    status: int = 200,
    headers: dict[str, str] | None = None,
    seen: Callable[[httpx.Request], object] = id,
) -> ZaiClient:
    """Return the SDK, wired to an answer that is ready; `seen` gets each request it makes."""

    def answer(request: httpx.Request) -> httpx.Response:
        seen(request)
        return httpx.Response(status, headers=headers or {}, content=body)

    base = "http://oracle.invalid/api/paas/v4"
    made = httpx.Client(transport=httpx.MockTransport(answer), base_url=base)
    return ZaiClient(api_key="a.b", base_url=base, http_client=made, max_retries=0)


def whole(body: bytes) -> dict[str, Any]:
    """Return the completion the SDK makes of a whole body, as JSON."""
    made: Any = client(body, headers={"content-type": "application/json"}).chat.completions.create(**ASKED)
    found: dict[str, Any] = made.model_dump(mode="json")
    return found


def streamed(body: bytes) -> list[dict[str, Any]]:
    """Return the chunks the SDK makes of a stream, as JSON; it has no accumulator."""
    headers = {"content-type": "text/event-stream"}
    chunks: Any = client(body, headers=headers).chat.completions.create(**ASKED, stream=True)
    return [chunk.model_dump(mode="json") for chunk in chunks]
