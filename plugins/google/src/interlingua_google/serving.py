"""The serving plugin: the Gemini API, with its paths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from interlingua.errors import InterlinguaError
from interlingua.plugins import WireRequest, WireResponse
from interlingua.types import Message
from interlingua_google import errors, serve_answer, serve_request
from interlingua_google.models import API
from interlingua_serving import InboundRequest, ServeContext, ServedApi, ServedRoute, hookimpl

_ROUTES = tuple(
    route
    for version in ("v1beta", "v1")  # of the older SDKs, of the newer ones
    for route in (
        ServedRoute(path=f"/{version}/models/{{model:path}}:generateContent"),
        ServedRoute(path=f"/{version}/models/{{model:path}}:streamGenerateContent"),
        ServedRoute(path=f"/{version}/models/{{model:path}}:countTokens", kind="count_tokens"),
        ServedRoute(path=f"/{version}/models", kind="models", method="GET"),
        ServedRoute(path=f"/{version}/models/{{model:path}}", kind="model", method="GET"),
    )
)


class _GoogleServing:
    serving_version = 1

    @hookimpl
    def served_apis(self) -> Sequence[ServedApi]:
        api = ServedApi(
            name=API,
            routes=_ROUTES,
            references=("cachedContent",),
            told_apart_by="x-goog-api-key",
            key_headers=("x-goog-api-key",),
            key_parameters=("key",),
        )
        return (api,)

    @hookimpl
    def from_wire_request(self, request: WireRequest, context: ServeContext) -> InboundRequest:
        return serve_request.from_wire_request(request, context)

    @hookimpl
    def to_wire_response(self, message: Message, context: ServeContext) -> WireResponse:
        return serve_answer.to_wire_response(message, context)

    @hookimpl
    def stream_to_wire(self, context: ServeContext) -> serve_answer.ChunkWriter:
        return serve_answer.ChunkWriter(context)

    @hookimpl
    def to_wire_error(self, error: InterlinguaError, context: ServeContext) -> WireResponse:
        return errors.to_wire_error(error, context)

    @hookimpl
    def to_wire_auxiliary(self, kind: str, value: Any, context: ServeContext) -> WireResponse | None:
        return serve_answer.to_wire_auxiliary(kind, value, context)


plugin = _GoogleServing()
