"""The provider object: everything this plugin offers, one hook a few lines.

Never holds translation itself: the shared format does that, by the dialect of the model.
The entry point `interlingua.providers: zai` comes in.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from importlib.resources import files

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
from interlingua_zai import catalogue, service, to_wire
from interlingua_zai.capabilities import capabilities_for
from interlingua_zai.dialect import FORMAT, dialect_of


class _Zai:
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
        return to_wire.to_wire(messages, tools, options)

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
    def wire_rules(self) -> Sequence[str]:
        return [*wire_rules("format"), files("interlingua_zai").joinpath("lint.toml").read_text("utf-8")]


plugin = _Zai()
