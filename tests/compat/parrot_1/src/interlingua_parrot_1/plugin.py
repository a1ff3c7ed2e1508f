"""The provider object: how to reach Parrot, what its models can carry, and the hooks of both directions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from functools import cache
from importlib.resources import files

import attrs
from interlingua.errors import ProviderError
from interlingua.plugins import (
    Connection,
    ConnectionSettings,
    ModelInfo,
    RequestContext,
    WireChunk,
    WireRequest,
    WireResponse,
    find_model,
    hookimpl,
    load_catalogue,
    no_auth,
)
from interlingua.types import Message, ModelCapabilities, RequestOptions, StreamEvent, ToolDefinition

from interlingua_parrot_1.errors import from_wire_error
from interlingua_parrot_1.request import API, PATH, estimate_input_tokens, to_wire
from interlingua_parrot_1.response import from_wire_response
from interlingua_parrot_1.stream import stream_response

BASE_URL = "https://parrot.example"

# A capability declared True reaches `to_wire` and needs a cassette; core removes and reports everything else.
DEFAULTS = ModelCapabilities(
    supports_system_prompt=True,
    supports_tools=True,
    supports_parallel_tool_calls=True,
    supports_streaming=True,
    supports_streaming_tool_calls=True,
    tool_id_pattern=r"[A-Za-z0-9_.-]{1,64}",  # the service's own ids are `trick.1`, `trick.2`
    api=API,
    assumed=True,
)


class _Parrot:
    contract_version = 1

    @hookimpl
    def connection(self, settings: ConnectionSettings) -> Connection:
        return _connection(settings)

    @hookimpl
    def capabilities(self, model: str, options: RequestOptions | None) -> ModelCapabilities:
        return capabilities_of(model)

    @hookimpl
    def models(self) -> Sequence[ModelInfo]:
        return _models()

    @hookimpl
    def to_wire(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions
    ) -> WireRequest:
        return to_wire(messages, tools, options)

    @hookimpl
    def estimate_input_tokens(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions | None
    ) -> int:
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
    def wire_rules(self) -> Sequence[str]:
        return [files(__package__).joinpath("lint.toml").read_text("utf-8")]


def _connection(settings: ConnectionSettings) -> Connection:
    key = settings.api_key or settings.environ.get("PARROT_API_KEY")
    base = settings.base_url or settings.environ.get("PARROT_BASE_URL") or BASE_URL

    def auth(_request: WireRequest) -> Mapping[str, str]:
        return {"parrot-key": str(key)}

    return Connection(
        base_url=base.rstrip("/"),
        auth=auth if key else no_auth,
        framing="sse",
        env_vars=("PARROT_API_KEY", "PARROT_BASE_URL"),
        has_key=bool(key),
        hosts=("parrot.example",),
        endpoints={API: rf"{PATH}$"},
    )


@cache
def _models() -> Sequence[ModelInfo]:
    return load_catalogue(files(__package__).joinpath("models.json").read_bytes())


@cache
def capabilities_of(model: str) -> ModelCapabilities:
    """Return the same object for the same model; a model that is not listed gets the defaults, marked assumed."""
    info = find_model(_models(), model)
    if info is None:
        return DEFAULTS
    limit = info.max_context_tokens or 0
    return attrs.evolve(DEFAULTS, assumed=False, max_context_tokens=limit, **info.capabilities)


plugin = _Parrot()
