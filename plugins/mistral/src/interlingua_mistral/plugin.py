"""The provider object: everything this plugin offers, one hook a few lines.

Never holds translation itself: the shared format does that, by the dialect of the model.
The entry point `interlingua.providers: mistral` comes in.
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
from interlingua_mistral import auxiliary, catalogue, service
from interlingua_mistral.dialect import FORMAT, capabilities_for, dialect_of


class _Mistral:
    contract_version = 1

    @hookimpl
    def capabilities(self, model: str, options: AdapterOptions | None) -> AdapterCapabilities:
        return capabilities_for(model)

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
        return FORMAT.to_wire(messages, tools, options, dialect_of(options.model))

    @hookimpl
    def estimate_input_tokens(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: AdapterOptions | None
    ) -> int:
        return FORMAT.estimate_input_tokens(messages, tools)

    @hookimpl
    def from_wire_response(self, response: WireResponse, context: RequestContext) -> Message:
        return FORMAT.from_wire_response(response, context, dialect_of(context.origin.model))

    @hookimpl
    def stream_response(
        self, response_stream: AsyncIterator[WireChunk], context: RequestContext
    ) -> AsyncIterator[StreamEvent]:
        return FORMAT.stream_response(response_stream, context, dialect_of(context.origin.model))

    @hookimpl
    def from_wire_error(self, response: WireResponse, context: RequestContext) -> ProviderError:
        return FORMAT.from_wire_error(response, dialect_of(context.origin.model))

    @hookimpl
    def auxiliary_request(self, kind: str, arguments: Mapping[str, Any]) -> WireRequest | None:
        return auxiliary.auxiliary_request(kind)

    @hookimpl
    def from_wire_auxiliary(self, kind: str, response: WireResponse) -> Any:
        return auxiliary.from_wire_auxiliary(kind, response)

    @hookimpl
    def wire_rules(self) -> Sequence[str]:
        return [*wire_rules("format", "pairing"), files("interlingua_mistral").joinpath("lint.toml").read_text("utf-8")]


plugin = _Mistral()
