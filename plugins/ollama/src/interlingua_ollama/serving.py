"""The serving plugin: Ollama's own API, with its paths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from interlingua.errors import InterlinguaError
from interlingua.plugins import WireRequest, WireResponse
from interlingua.types import Message
from interlingua_ollama import serve_answer, serve_request
from interlingua_ollama.messages import API
from interlingua_serving import InboundRequest, ServeContext, ServedApi, ServedRoute, hookimpl


class _OllamaServing:
    serving_version = 1

    @hookimpl
    def served_apis(self) -> Sequence[ServedApi]:
        routes = (
            ServedRoute(path="/api/chat"),
            ServedRoute(path="/api/generate"),
            ServedRoute(path="/api/tags", kind="models", method="GET"),
            ServedRoute(path="/api/show", kind="model"),
            ServedRoute(path="/api/version", kind="version", method="GET"),
            ServedRoute(path="/api/embed", kind="pass"),
            ServedRoute(path="/api/embeddings", kind="pass"),
        )
        return (ServedApi(name=API, routes=routes, input_tokens=("prompt_eval_count",)),)

    @hookimpl
    def from_wire_request(self, request: WireRequest, context: ServeContext) -> InboundRequest:
        return serve_request.from_wire_request(request, context)

    @hookimpl
    def to_wire_response(self, message: Message, context: ServeContext) -> WireResponse:
        return serve_answer.to_wire_response(message, context)

    @hookimpl
    def stream_to_wire(self, context: ServeContext) -> serve_answer.LineWriter:
        return serve_answer.LineWriter(context)

    @hookimpl
    def to_wire_error(self, error: InterlinguaError, context: ServeContext) -> WireResponse:
        return serve_answer.to_wire_error(error, context)

    @hookimpl
    def to_wire_auxiliary(self, kind: str, value: Any, context: ServeContext) -> WireResponse | None:
        return serve_answer.to_wire_auxiliary(kind, value, context)


plugin = _OllamaServing()
