"""The serving plugin: the Messages API, with its paths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from interlingua.errors import InterlinguaError
from interlingua.plugins import WireRequest, WireResponse
from interlingua.types import Message
from interlingua_anthropic import errors, serve_answer, serve_request
from interlingua_anthropic.models import API
from interlingua_anthropic.serve_stream import MessagesWriter
from interlingua_serving import InboundRequest, ServeContext, ServedApi, ServedRoute, ServiceTool, hookimpl

_PASSED = tuple(
    ServedRoute(path=f"/v1/{path}", kind="pass", method=method, free=f"{method} {path}" != "POST messages/batches")
    for path, methods in {
        "messages/batches": "GET POST", "messages/batches/{id}": "GET DELETE",
        "messages/batches/{id}/cancel": "POST", "messages/batches/{id}/results": "GET",
        "files": "GET POST", "files/{id}": "GET DELETE", "files/{id}/content": "GET",
    }.items()
    for method in methods.split()
)  # fmt: skip


_TOOLS = (  # WIRE.md, Usage: a fetch costs its tokens
    ServiceTool(name="web_search_*", unit="web_search", uses="max_uses"),
    ServiceTool(name="web_fetch_*", uses="max_uses"),
    ServiceTool(name="tool_search_tool_*"),
)


class _AnthropicServing:
    serving_version = 1

    @hookimpl
    def served_apis(self) -> Sequence[ServedApi]:
        routes = (
            ServedRoute(path="/v1/messages"),
            ServedRoute(path="/v1/messages/count_tokens", kind="count_tokens"),
            *_PASSED,
            ServedRoute(path="/v1/models", kind="models", method="GET"),
            ServedRoute(path="/v1/models/{model:path}", kind="model", method="GET"),
        )
        api = ServedApi(
            name=API,
            routes=routes,
            references=("container",),
            other_models=("fallbacks",),
            tiers=("service_tier", "speed"),
            unpriced=("tools", "mcp_servers", "inference_geo"),
            service_tools=_TOOLS,
            told_apart_by="anthropic-version",
            key_headers=("x-api-key",),
        )
        return (api,)

    @hookimpl
    def from_wire_request(self, request: WireRequest, context: ServeContext) -> InboundRequest:
        return serve_request.from_wire_request(request, context)

    @hookimpl
    def to_wire_response(self, message: Message, context: ServeContext) -> WireResponse:
        return serve_answer.to_wire_response(message, context)

    @hookimpl
    def stream_to_wire(self, context: ServeContext) -> MessagesWriter:
        return MessagesWriter(context)

    @hookimpl
    def to_wire_error(self, error: InterlinguaError, context: ServeContext) -> WireResponse:
        return errors.to_wire_error(error, context)

    @hookimpl
    def to_wire_auxiliary(self, kind: str, value: Any, context: ServeContext) -> WireResponse | None:
        return serve_answer.to_wire_auxiliary(kind, value, context)


plugin = _AnthropicServing()
