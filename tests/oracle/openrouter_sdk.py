"""What OpenRouter's official SDK makes of the same bytes: the reader our adapter has to agree with.

It refuses answers without fields its types demand: `Unparsed`.
"""

from __future__ import annotations

from typing import Any

import httpx
from openrouter import OpenRouter
from openrouter.errors import OpenRouterError, ResponseValidationError
from openrouter.utils import serializers
from pydantic import create_model

from tests.oracle.openai_sdk import Unparsed

__all__ = ["ASKED", "OpenRouterError", "Unparsed", "client", "streamed", "whole"]
_made: dict[Any, Any] = {}


def _once(name: str, *, body: Any, **more: Any) -> Any:
    """Make the SDK's one-field model of a type once: it makes the same one anew for each value, at 4 ms."""
    key = (name, body)
    if key not in _made:
        _made[key] = create_model(name, body=body, **more)
    return _made[key]


serializers.create_model = _once
ASKED: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "x"}]}


def client(body: bytes, *, status: int = 200, headers: dict[str, str] | None = None) -> OpenRouter:
    """Return the SDK, wired to an answer that is ready."""

    def answer(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(status, headers=headers or {}, content=body)

    transport = httpx.MockTransport(answer)
    return OpenRouter(
        api_key="none",
        client=httpx.Client(transport=transport),
        async_client=httpx.AsyncClient(transport=transport),  # its own would read the certificates: 80 ms each time
        server_url="http://oracle.invalid/api/v1",
        retry_config=None,
    )


def whole(body: bytes) -> dict[str, Any]:
    """Return the result the SDK makes of a whole body, as JSON."""
    sdk = client(body, headers={"content-type": "application/json"})
    try:
        made: Any = sdk.chat.send(**ASKED)
    except ResponseValidationError as error:
        raise Unparsed(str(error)) from error
    found: dict[str, Any] = made.model_dump(mode="json", by_alias=True)
    return found


def streamed(body: bytes) -> list[dict[str, Any]]:
    """Return the chunks the SDK makes of a stream, as JSON; it has no accumulator."""
    sdk = client(body, headers={"content-type": "text/event-stream"})
    try:
        events: Any = sdk.chat.send(**ASKED, stream=True)
        return [event.model_dump(mode="json", by_alias=True) for event in events]
    except ResponseValidationError as error:
        raise Unparsed(str(error)) from error
