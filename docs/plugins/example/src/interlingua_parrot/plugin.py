"""The provider object: everything this plugin offers, one hook a line or two.

Never holds translation itself; each hook hands on to the module of its direction.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from importlib.resources import files

from interlingua.catalogue import ModelInfo
from interlingua.errors import ProviderError
from interlingua.plugins.hookspecs import hookimpl
from interlingua.plugins.wire import (
    Connection,
    ConnectionSettings,
    RequestContext,
    WireChunk,
    WireRequest,
    WireResponse,
)
from interlingua.types.events import StreamEvent
from interlingua.types.messages import Message
from interlingua.types.options import AdapterCapabilities, AdapterOptions
from interlingua.types.tools import ToolDefinition

from interlingua_parrot import catalogue, estimate, from_wire, service, stream, to_wire


class _Parrot:
    contract_version = 1

    @hookimpl
    def connection(self, settings: ConnectionSettings) -> Connection:
        return service.connection(settings)

    @hookimpl
    def capabilities(self, model: str) -> AdapterCapabilities:
        return catalogue.capabilities_of(model)

    @hookimpl
    def models(self) -> Sequence[ModelInfo]:
        return catalogue.models()

    @hookimpl
    def to_wire(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: AdapterOptions
    ) -> WireRequest:
        return to_wire.to_wire(messages, tools, options)

    @hookimpl
    def estimate_input_tokens(self, messages: Sequence[Message], tools: Sequence[ToolDefinition]) -> int:
        return estimate.estimate_input_tokens(messages, tools)

    @hookimpl
    def from_wire_response(self, response: WireResponse, context: RequestContext) -> Message:
        return from_wire.from_wire_response(response, context)

    @hookimpl
    def stream_response(
        self, response_stream: AsyncIterator[WireChunk], context: RequestContext
    ) -> AsyncIterator[StreamEvent]:
        return stream.stream_response(response_stream, context)

    @hookimpl
    def from_wire_error(self, response: WireResponse) -> ProviderError:
        return service.from_wire_error(response)

    @hookimpl
    def wire_rules(self) -> Sequence[str]:
        return [files(__package__).joinpath("lint.toml").read_text("utf-8")]


plugin = _Parrot()
