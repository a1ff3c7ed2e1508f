"""The serving plugin: Chat Completions and Responses, with their paths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from interlingua.plugins import WireRequest, WireResponse, dumps
from interlingua.types import Message
from interlingua_chat_completions.serving import ChatServing
from interlingua_openai.chat import dialect_of
from interlingua_openai.responses import serve_answer, serve_request
from interlingua_serving import (
    InboundRequest,
    ServeContext,
    ServedApi,
    ServedRoute,
    ServiceTool,
    StreamWriter,
    hookimpl,
)

_RESPONSES = "responses"
_FREE = ("moderations", "files", "batches/")  # https://developers.openai.com/api/docs/pricing


def _passed(path: str, method: str) -> ServedRoute:
    free = path.startswith(_FREE) or (path, method) == ("batches", "GET")  # a batch costs what its requests do
    return ServedRoute(path=f"/v1/{path}", kind="pass", method=method, free=free)


_PASSED = tuple(
    _passed(path, method)
    for path, methods in {
        "embeddings": "POST", "moderations": "POST", "completions": "POST",
        "images/{action}": "POST", "audio/{action}": "POST",
        "files": "GET POST", "files/{id}": "GET DELETE", "files/{id}/content": "GET",
        "batches": "GET POST", "batches/{id}": "GET", "batches/{id}/cancel": "POST",
    }.items()
    for method in methods.split()
)  # fmt: skip
_TOOLS = (  # WIRE.md, Responses status; the preview of the web search has other prices
    ServiceTool(name="web_search", unit="web_search"),
    ServiceTool(name="web_search_2*", unit="web_search"),
    ServiceTool(name="file_search", unit="file_search"),
)
_OTHER_MODELS = ("models", "preset")  # of hosts of these APIs that pass requests to several services


class _OpenAIServing(ChatServing):
    @hookimpl
    def served_apis(self) -> Sequence[ServedApi]:
        chat = (
            ServedRoute(path="/v1/chat/completions"),
            ServedRoute(path="/v1/models", kind="models", method="GET"),
            ServedRoute(path="/v1/models/{model:path}", kind="model", method="GET"),
            *_PASSED,
        )
        responses = (
            ServedRoute(path="/v1/responses"),
            ServedRoute(path="/v1/responses/input_tokens", kind="count_tokens"),
            ServedRoute(path="/v1/responses/{answer}", kind="answer", method="GET"),
            ServedRoute(path="/v1/responses/{answer}", kind="delete", method="DELETE"),
            ServedRoute(path="/v1/responses/{answer}/cancel", kind="cancel"),
        )
        references = ("previous_response_id", "conversation", "prompt")
        return (
            ServedApi(
                name="chat",
                routes=chat,
                other_models=_OTHER_MODELS,
                answer_counts=("n",),
                tiers=("service_tier",),
                unpriced=("tools", "web_search_options", "plugins"),
                input_tokens=("usage.prompt_tokens", "usage.input_tokens"),
                output_tokens=("usage.completion_tokens", "usage.output_tokens"),
            ),
            ServedApi(
                name=_RESPONSES,
                routes=responses,
                references=references,
                other_models=_OTHER_MODELS,
                tiers=("service_tier",),
                unpriced=("tools", "plugins"),
                service_tools=_TOOLS,
                tool_blocks=("additional_tools",),
                tool_uses="max_tool_calls",
            ),
        )

    @hookimpl
    def from_wire_request(self, request: WireRequest, context: ServeContext) -> InboundRequest:
        if context.api == _RESPONSES:
            return serve_request.from_wire_request(request, context)
        return super().from_wire_request(request, context)

    @hookimpl
    def continue_request(
        self, request: WireRequest, earlier: bytes, answer: bytes, context: ServeContext
    ) -> WireRequest | None:
        if context.api == _RESPONSES:
            return serve_request.continue_request(request, earlier, answer)
        return None

    @hookimpl
    def to_wire_response(self, message: Message, context: ServeContext) -> WireResponse:
        if context.api == _RESPONSES:
            return serve_answer.to_wire_response(message, context)
        return super().to_wire_response(message, context)

    @hookimpl
    def stream_to_wire(self, context: ServeContext) -> StreamWriter:
        if context.api == _RESPONSES:
            return serve_answer.ResponseWriter(context)
        return super().stream_to_wire(context)

    @hookimpl
    def to_wire_auxiliary(self, kind: str, value: Any, context: ServeContext) -> WireResponse | None:
        if kind == "count_tokens" and context.api == _RESPONSES:
            body = dumps({"object": "response.input_tokens", "input_tokens": value})
            return WireResponse(headers={"content-type": "application/json"}, body=body)
        if kind == "delete" and context.api == _RESPONSES:
            body = dumps({"id": value, "object": "response", "deleted": True})
            return WireResponse(headers={"content-type": "application/json"}, body=body)
        return super().to_wire_auxiliary(kind, value, context)


plugin = _OpenAIServing(dialect_of)
