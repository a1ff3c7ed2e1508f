"""A made-up service for replay tests: `{"text": …}` bodies, streams of `{"piece": …}` that end with `{"stop": 1}`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from interlingua._catalogue import ModelInfo
from interlingua.errors import BadRequestError, MalformedResponseError, RateLimitError
from interlingua.plugins import (
    Connection,
    ConnectionSettings,
    Registry,
    RequestContext,
    WireChunk,
    WireRequest,
    WireResponse,
    hookimpl,
)
from interlingua.types import (
    ErrorEvent,
    Message,
    MessageComplete,
    ModelCapabilities,
    OpaqueBlock,
    RequestOptions,
    StopReason,
    StreamEvent,
    TextBlock,
    TextDelta,
    ToolDefinition,
    ToolUseEnd,
    ToolUseStart,
)


class Acme:
    def __init__(self, hosts: tuple[str, ...] = (), endpoint: str = "/say$") -> None:
        self.hosts = hosts
        self.endpoint = endpoint

    @hookimpl
    def capabilities(self, model: str, options: RequestOptions | None) -> ModelCapabilities:
        return ModelCapabilities()

    @hookimpl
    def models(self) -> Sequence[ModelInfo]:
        return ()

    @hookimpl
    def connection(self, settings: ConnectionSettings) -> Connection:
        return Connection(base_url="https://acme.test", hosts=self.hosts, endpoints={"say": self.endpoint})

    @hookimpl
    def to_wire(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions
    ) -> WireRequest:
        return WireRequest(path="/say", body=b"{}", api="say")

    @hookimpl
    def from_wire_response(self, response: WireResponse, context: RequestContext) -> Message:
        body = json.loads(response.body)
        if "error" in body:
            raise RateLimitError(body["error"], retry_after=2.0)
        if "crash" in body:
            raise AssertionError("an adapter's own mistake")
        if "opaque" in body:
            block: Any = OpaqueBlock(provider="acme", kind="odd", data=body["opaque"])
        else:
            block = TextBlock(text=body["text"])
        return context.message([block], stop_reason=StopReason.END_TURN)

    @hookimpl
    async def stream_response(
        self, response_stream: AsyncIterator[WireChunk], context: RequestContext
    ) -> AsyncIterator[StreamEvent]:
        async for chunk in response_stream:
            data = json.loads(chunk.data)
            if "piece" in data:
                yield TextDelta(index=0, text=data["piece"])
            elif "call" in data:
                yield ToolUseStart(index=1, id=context.mint_tool_use_id(), name=data["call"])
                yield ToolUseEnd(index=1)
            elif "error" in data:
                yield ErrorEvent(error=RateLimitError(data["error"]))
                return
            else:
                yield MessageComplete(stop_reason=StopReason.END_TURN)

    @hookimpl
    def from_wire_error(self, response: WireResponse, context: RequestContext) -> Any:
        if response.body == b"nonsense":
            raise MalformedResponseError("cannot be read")
        return BadRequestError("no") if response.status == 400 else None


def registry(**providers: Acme) -> Registry:
    """A registry of these providers and nothing that is installed."""
    return Registry(providers=providers, entry_points=[])


def line(body: str, **fields: Any) -> bytes:
    """A recorded exchange as a line of a recording."""
    entry: Mapping[str, Any] = {
        "id": "acme-say/1",
        "url": "https://api.acme.test/v1/say",
        "request": {"model": "m1"},
        "status": 200,
        "response_headers": {},
        "kind": "json",
        "response_text": body,
        **fields,
    }
    return json.dumps(entry).encode()
