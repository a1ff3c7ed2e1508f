"""The serving plugin: generateContent and Interactions, with their paths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from interlingua.errors import InterlinguaError
from interlingua.plugins import WireRequest, WireResponse, dumps
from interlingua.types import Message
from interlingua_google import errors, serve_answer, serve_request
from interlingua_google.interactions import serve_answer as interaction
from interlingua_google.interactions import serve_request as interaction_request
from interlingua_google.models import API, INTERACTIONS
from interlingua_serving import (
    InboundRequest,
    ServeContext,
    ServedApi,
    ServedRoute,
    ServiceTool,
    StreamWriter,
    hookimpl,
)

_VERSIONS = ("v1beta", "v1")  # of the older SDKs, of the newer ones
_ROUTES = tuple(
    route
    for version in _VERSIONS
    for route in (
        ServedRoute(path=f"/{version}/models/{{model:path}}:generateContent"),
        ServedRoute(path=f"/{version}/models/{{model:path}}:streamGenerateContent"),
        ServedRoute(path=f"/{version}/models/{{model:path}}:countTokens", kind="count_tokens"),
        ServedRoute(path=f"/{version}/models/{{model:path}}:embedContent", kind="pass"),
        ServedRoute(path=f"/{version}/models/{{model:path}}:batchEmbedContents", kind="pass"),
        ServedRoute(path=f"/{version}/models", kind="models", method="GET"),
        ServedRoute(path=f"/{version}/models/{{model:path}}", kind="model", method="GET"),
    )
)
_INTERACTION_ROUTES = tuple(
    route
    for version in _VERSIONS
    for route in (
        ServedRoute(path=f"/{version}/interactions"),
        ServedRoute(path=f"/{version}/interactions/{{answer}}", kind="answer", method="GET"),
        ServedRoute(path=f"/{version}/interactions/{{answer}}", kind="delete", method="DELETE"),
        ServedRoute(path=f"/{version}/interactions/{{answer}}/cancel", kind="cancel"),
    )
)
_TOOLS = tuple(  # WIRE.md, Usage; what URLs and code bring is charged as tokens
    ServiceTool(name=name, unit=unit)
    for unit, names in {
        "web_search": "googleSearch google_search", "": "urlContext url_context codeExecution code_execution",
    }.items()
    for name in names.split()
)  # fmt: skip
_KEYS: dict[str, Any] = {
    "told_apart_by": "x-goog-api-key", "key_headers": ("x-goog-api-key",), "key_parameters": ("key",),
}  # fmt: skip


class _GoogleServing:
    serving_version = 1

    @hookimpl
    def served_apis(self) -> Sequence[ServedApi]:
        held = ("previous_interaction_id", "continuation_token", "cached_content")
        return (
            ServedApi(
                name=API,
                routes=_ROUTES,
                references=("cachedContent",),
                answer_counts=("generationConfig.candidateCount",),
                tiers=("serviceTier",),
                input_tokens=("usageMetadata.promptTokenCount",),
                unpriced=("tools",),
                service_tools=_TOOLS,
                **_KEYS,
            ),
            ServedApi(
                name=INTERACTIONS,
                routes=_INTERACTION_ROUTES,
                references=held,
                unpriced=("tools", "agent"),
                service_tools=_TOOLS,
                **_KEYS,
            ),
        )

    @hookimpl
    def from_wire_request(self, request: WireRequest, context: ServeContext) -> InboundRequest:
        if context.api == INTERACTIONS:
            return interaction_request.from_wire_request(request, context)
        return serve_request.from_wire_request(request, context)

    @hookimpl
    def continue_request(
        self, request: WireRequest, earlier: bytes, answer: bytes, context: ServeContext
    ) -> WireRequest | None:
        if context.api == INTERACTIONS:
            return interaction_request.continue_request(request, earlier, answer)
        return None

    @hookimpl
    def to_wire_response(self, message: Message, context: ServeContext) -> WireResponse:
        if context.api == INTERACTIONS:
            return interaction.to_wire_response(message, context)
        return serve_answer.to_wire_response(message, context)

    @hookimpl
    def stream_to_wire(self, context: ServeContext) -> StreamWriter:
        if context.api == INTERACTIONS:
            return interaction.InteractionWriter(context)
        return serve_answer.ChunkWriter(context)

    @hookimpl
    def to_wire_error(self, error: InterlinguaError, context: ServeContext) -> WireResponse:
        return errors.to_wire_error(error, context)

    @hookimpl
    def to_wire_auxiliary(self, kind: str, value: Any, context: ServeContext) -> WireResponse | None:
        if context.api != INTERACTIONS:
            return serve_answer.to_wire_auxiliary(kind, value, context)
        if kind != "delete":
            return None
        return WireResponse(headers={"content-type": "application/json; charset=UTF-8"}, body=dumps({}))


plugin = _GoogleServing()
