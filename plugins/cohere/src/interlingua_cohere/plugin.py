"""The provider object: its hooks, how to reach the service, and the cost of answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from decimal import Decimal
from importlib.resources import files
from typing import Any

from interlingua.errors import ProviderError
from interlingua.plugins import (
    Connection,
    ConnectionSettings,
    ModelInfo,
    RequestContext,
    WireChunk,
    WireRequest,
    WireResponse,
    bearer_auth,
    hookimpl,
)
from interlingua.types import (
    CostParts,
    Message,
    ModelCapabilities,
    RequestOptions,
    StreamEvent,
    ToolDefinition,
)
from interlingua_cohere.errors import from_wire_error
from interlingua_cohere.models import API, capabilities_of, models
from interlingua_cohere.request import auxiliary_request, estimate_input_tokens, to_wire
from interlingua_cohere.response import from_wire_auxiliary, from_wire_response
from interlingua_cohere.stream import BILLED_INPUT, BILLED_OUTPUT, stream_response

BASE_URL = "https://api.cohere.com"
_VERSIONS = ("/v1", "/v2")
_PER_MTOK = Decimal("0.000001")
_NOTHING = Decimal(0)


class _Cohere:
    contract_version = 1

    @hookimpl
    def capabilities(self, model: str) -> ModelCapabilities:
        return capabilities_of(model)

    @hookimpl
    def models(self) -> Sequence[ModelInfo]:
        return models()

    @hookimpl
    def connection(self, settings: ConnectionSettings) -> Connection:
        return connection(settings)

    @hookimpl
    def to_wire(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions
    ) -> WireRequest:
        return to_wire(messages, tools, options)

    @hookimpl
    def estimate_input_tokens(self, messages: Sequence[Message], tools: Sequence[ToolDefinition]) -> int:
        return estimate_input_tokens(messages, tools)

    @hookimpl
    def from_wire_response(self, response: WireResponse, context: RequestContext) -> Message:
        return from_wire_response(response, context)

    @hookimpl
    def stream_response(
        self, response_stream: AsyncIterator[WireChunk], context: RequestContext
    ) -> AsyncIterator[StreamEvent]:
        return stream_response(response_stream, context)

    @hookimpl
    def from_wire_error(self, response: WireResponse, context: RequestContext) -> ProviderError:
        return from_wire_error(response)

    @hookimpl
    def cost_of(self, message: Message, model: ModelInfo | None) -> CostParts | None:
        return cost_of(message, model)

    @hookimpl
    def auxiliary_request(self, kind: str, arguments: Mapping[str, Any]) -> WireRequest | None:
        return auxiliary_request(kind, arguments)

    @hookimpl
    def from_wire_auxiliary(self, kind: str, response: WireResponse) -> Any:
        return from_wire_auxiliary(kind, response)

    @hookimpl
    def wire_rules(self) -> Sequence[str]:
        return [files("interlingua_cohere").joinpath("lint.toml").read_text("utf-8")]


def connection(settings: ConnectionSettings) -> Connection:
    """Return the connection (WIRE.md, Connection); the option `client_name` is the name of the calling project."""
    environ = settings.environ
    key = settings.api_key or environ.get("CO_API_KEY") or environ.get("COHERE_API_KEY")
    base = (settings.base_url or environ.get("CO_API_URL") or BASE_URL).rstrip("/")
    for version in _VERSIONS:
        base = base.removesuffix(version)
    name = settings.options.get("client_name")
    return Connection(
        base_url=base,
        auth=bearer_auth(key),
        headers={"x-client-name": str(name)} if name else {},
        env_vars=("CO_API_KEY", "COHERE_API_KEY", "CO_API_URL"),
        has_key=bool(key) or settings.base_url is not None,
        hosts=("api.cohere.com", "api.cohere.ai"),
        endpoints={API: "/v2/chat"},
        unread_endpoints={
            "chat-v1": "/v1/chat",
            "chat-completions": "/compatibility/v1/chat/completions",
            "generate": "(/v1)?/generate",
            "summarize": "(/v1)?/summarize",
            "embed": "/v[12]/embed",
            "rerank": "/v[12]/rerank",
            "classify": "/v1/classify",
        },
    )


def cost_of(message: Message, model: ModelInfo | None) -> CostParts | None:
    """Return billed tokens times rate; tokens that the service adds to a prompt are not billed (WIRE.md, Usage)."""
    usage = message.metadata.usage
    units: Mapping[str, Any] = (usage.extra_units if usage is not None else None) or {}
    price = model.price_at(message.created_at) if model is not None else None
    if usage is None or price is None or BILLED_INPUT not in units or BILLED_OUTPUT not in units:
        return None
    rates = price.rates(usage.input_tokens or 0)
    if rates.input_per_mtok_usd is None or rates.output_per_mtok_usd is None:
        return None
    return CostParts(
        input=rates.input_per_mtok_usd * units[BILLED_INPUT] * _PER_MTOK,
        output=rates.output_per_mtok_usd * units[BILLED_OUTPUT] * _PER_MTOK,
        cached_read=_NOTHING,
        cache_write=_NOTHING,
    )


plugin = _Cohere()
