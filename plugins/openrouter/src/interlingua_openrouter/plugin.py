"""The provider object: everything this plugin offers, one hook a few lines.

Never holds translation itself: the shared format does that, by the dialect this service gives it.
The entry point `interlingua.providers: openrouter` comes in.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

from interlingua.capabilities import AdapterCapabilities
from interlingua.catalogue import ModelInfo
from interlingua.context import RequestContext
from interlingua.errors import ProviderError
from interlingua.events import StreamEvent
from interlingua.hookspecs import hookimpl
from interlingua.messages import Message
from interlingua.options import AdapterOptions
from interlingua.tools import ToolDefinition
from interlingua.wire import Connection, ConnectionSettings, WireChunk, WireRequest, WireResponse
from interlingua_chat_completions.rules import wire_rules
from interlingua_openrouter import auxiliary, catalogue, service
from interlingua_openrouter.dialect import DIALECT, FORMAT


class _OpenRouter:
    contract_version = 1

    @hookimpl
    def capabilities(self, model: str, options: AdapterOptions | None) -> AdapterCapabilities:
        return catalogue.capabilities_for(model)

    @hookimpl
    def models(self) -> Sequence[ModelInfo]:
        return catalogue.models()

    @hookimpl
    def connection(self, settings: ConnectionSettings) -> Connection:
        return service.connection(settings)

    @hookimpl
    def to_wire(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: AdapterOptions
    ) -> WireRequest:
        return FORMAT.to_wire(messages, tools, options, DIALECT)

    @hookimpl
    def estimate_input_tokens(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: AdapterOptions | None
    ) -> int:
        return FORMAT.estimate_input_tokens(messages, tools)

    @hookimpl
    def from_wire_response(self, response: WireResponse, context: RequestContext) -> Message:
        return FORMAT.from_wire_response(response, context, DIALECT)

    @hookimpl
    def stream_response(
        self, response_stream: AsyncIterator[WireChunk], context: RequestContext
    ) -> AsyncIterator[StreamEvent]:
        return FORMAT.stream_response(response_stream, context, DIALECT)

    @hookimpl
    def from_wire_error(self, response: WireResponse, context: RequestContext) -> ProviderError:
        return service.from_wire_error(response)

    @hookimpl
    def auxiliary_request(self, kind: str, arguments: Mapping[str, Any]) -> WireRequest | None:
        return auxiliary.auxiliary_request(kind, arguments)

    @hookimpl
    def from_wire_auxiliary(self, kind: str, response: WireResponse) -> Any:
        return auxiliary.from_wire_auxiliary(kind, response)

    @hookimpl
    def wire_rules(self) -> Sequence[str]:
        own = files("interlingua_openrouter").joinpath("lint.toml").read_text("utf-8")
        return [*wire_rules("format", "pairing"), own]


plugin = _OpenRouter()
