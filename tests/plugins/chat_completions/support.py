"""What the tests of this wire share: exchanges written as JSON, read by our adapter and by the official SDK."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import httpx as http
import openai

from interlingua._plugins.provider import Provider
from interlingua._plugins.registry import Registry
from interlingua._response.decode import StreamDecoder
from interlingua._response.framing import framer
from interlingua.plugins import RequestContext, WireRequest, WireResponse, build_request
from interlingua.types.messages import Message, Origin
from interlingua.types.options import RequestOptions

REGISTRY = Registry()


def provider(key: str = "compatible") -> Provider:
    return REGISTRY.provider(key)


def preset(key: str = "acme", **table: Any) -> Provider:
    """A user's own preset."""
    return Registry(presets={key: {"base_url": "http://127.0.0.1:1/v1", **table}}).provider(key)


def context(key: str = "compatible", model: str = "m") -> RequestContext:
    numbers = itertools.count()
    return RequestContext(
        origin=Origin(key, "chat", model),
        message_id="0" * 26,
        mint_tool_use_id=lambda: f"tu_{next(numbers):026d}",
        clock=lambda: datetime(2026, 1, 1, tzinfo=UTC),
    )


def body(message: dict[str, Any] | None, finish: str | None = "stop", **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], **more}


def whole(answer: Any, target: Provider | None = None) -> Message:
    target = target or provider()
    raw = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    return target.from_wire_response(WireResponse(body=raw), context(target.key))


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices, **more}


def sse(chunks: Iterable[Any], *, done: bool = True) -> bytes:
    lines = [one if isinstance(one, bytes) else b"data: " + json.dumps(one).encode() + b"\n\n" for one in chunks]
    return b"".join(lines) + (b"data: [DONE]\n\n" if done else b"")


def decoded(raw: bytes, target: Provider | None = None, size: int = 1 << 20) -> StreamDecoder:
    target = target or provider()
    decoder = StreamDecoder(target, framer("sse"), context(target.key))
    for at in range(0, len(raw), size):
        decoder.feed(raw[at : at + size])
    decoder.end()
    return decoder


def streamed(chunks: Iterable[Any], target: Provider | None = None, *, done: bool = True) -> Message:
    """Read a stream at three chunkings, which must agree."""
    raw = sse(chunks, done=done)
    messages = [decoded(raw, target, size).message() for size in (1 << 20, 7, 1)]
    assert messages[0] == messages[1] == messages[2]
    return messages[0]


def sdk(raw: bytes, kind: str) -> Any:
    """The official SDK's client over the same bytes."""

    def reply(_request: Any) -> Any:
        return http.Response(200, headers={"content-type": kind}, content=raw)

    client: Any = http.Client(transport=http.MockTransport(reply))
    return openai.OpenAI(api_key="none", base_url="http://127.0.0.1", http_client=client, max_retries=0)


def request(
    messages: list[Message], target: Provider | None = None, tools: Any = (), **options: Any
) -> tuple[dict[str, Any], WireRequest]:
    target = target or provider()
    made = build_request(target, messages, tools, RequestOptions(model="m", **options))
    return json.loads(made.body), made


def calls_of(message: Message) -> list[tuple[str, str | None, str | None]]:
    return [(call.name, call.provider_id, call.raw_input) for call in message.tool_calls]
