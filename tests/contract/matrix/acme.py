"""A third party's provider with a wire of its own, correct in all that the matrix checks, and ways to make it wrong.

The wire: `{"model": …, "turns": [{"by": role, "parts": [part, …]}]}`; a part is `{"text"}`, `{"thought", "seal"}`,
`{"sealed"}`, `{"call", "tool", "with"}`, `{"picture", "kind"}` or `{"answer", "failed", "parts"}`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from interlingua._catalogue import ModelInfo
from interlingua._json import dumps
from interlingua._plugins.hookspecs import hookimpl
from interlingua._plugins.registry import Registry
from interlingua.plugins import (
    Connection,
    ConnectionSettings,
    Loss,
    RequestContext,
    WireChunk,
    WireRequest,
    WireResponse,
)
from interlingua.types.events import StreamEvent
from interlingua.types.messages import Message
from interlingua.types.options import ModelCapabilities, RequestOptions
from interlingua.types.tools import ToolDefinition

Body = dict[str, Any]
Change = Callable[[Body, list[Loss], Sequence[Message]], None]

CAPABLE = ModelCapabilities(
    supports_thinking=True,
    thinking_scope="model",
    supports_images=True,
    supports_tool_result_images=True,
    supports_tools=True,
    supports_parallel_tool_calls=True,
    supports_system_prompt=True,
    supports_system_messages_in_list=True,
    api="turns",
)


class Acme:
    """The provider; `change` makes its requests wrong."""

    def __init__(
        self, change: Change | None = None, rules: Sequence[str] = (), declared: ModelCapabilities = CAPABLE
    ) -> None:
        self._change = change
        self._declared = declared
        self._rules = rules

    @hookimpl
    def capabilities(self, model: str) -> ModelCapabilities:
        return self._declared

    @hookimpl
    def models(self) -> Sequence[ModelInfo]:
        return [ModelInfo(id="anvil")]

    @hookimpl
    def connection(self, settings: ConnectionSettings) -> Connection:
        return Connection(base_url="http://127.0.0.1:9", endpoints={"turns": "/turns"})

    @hookimpl
    def to_wire(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions
    ) -> WireRequest:
        turns = [{"by": str(message.role), "parts": list(map(part, message.content))} for message in messages]
        body: Body = {"model": options.model, "tools": [tool.name for tool in tools], "turns": turns}
        losses: list[Loss] = []
        if self._change is not None:
            self._change(body, losses, messages)
        return WireRequest(path="/turns", body=dumps(body), api="turns", losses=tuple(losses))

    @hookimpl
    def from_wire_response(self, response: WireResponse, context: RequestContext) -> Message:
        raise NotImplementedError

    @hookimpl
    async def stream_response(
        self, response_stream: AsyncIterator[WireChunk], context: RequestContext
    ) -> AsyncIterator[StreamEvent]:
        raise NotImplementedError
        yield

    @hookimpl
    def wire_rules(self) -> Sequence[str]:
        return self._rules


def part(block: Any) -> Body:
    """Write a block."""
    kind = block.type
    if kind == "text":
        return {"text": block.text}
    if kind == "thinking":
        return {"thought": block.text, "seal": block.signature}
    if kind == "redacted_thinking":
        return {"sealed": block.data}
    if kind == "tool_use":
        return {"call": block.id, "tool": block.name, "with": block.input}
    if kind == "image":
        return {"picture": block.source.data, "kind": block.media_type}
    return {"answer": block.tool_use_id, "failed": block.is_error, "parts": list(map(part, block.content))}


def pair(change: Change | None = None, rules: Sequence[str] = ()) -> Registry:
    """Return a registry with two third parties, the second one wrong."""
    return Registry(providers={"acme": Acme(), "bolt": Acme(change, rules)}, entry_points=[])
