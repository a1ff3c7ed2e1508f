"""The provider object: everything this plugin offers, one hook a line or two.

Never holds translation itself; each hook hands on to the module of its direction.
The entry point `interlingua.providers: ollama` comes in.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import interlingua_ollama as own
from interlingua.plugins.hookspecs import hookimpl

if TYPE_CHECKING:  # a provider is found and made without them
    from interlingua.catalogue import ModelInfo
    from interlingua.errors import ProviderError
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


class _Ollama:
    contract_version = 1

    @hookimpl
    def capabilities(self, model: str, options: AdapterOptions | None) -> AdapterCapabilities:
        return own.catalogue.capabilities_of(options)

    @hookimpl
    def models(self) -> Sequence[ModelInfo]:
        return ()  # what there is, the server knows: the auxiliary request `models`

    @hookimpl
    def connection(self, settings: ConnectionSettings) -> Connection:
        return own.service.connection(settings)

    @hookimpl
    def to_wire(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: AdapterOptions
    ) -> WireRequest:
        return own.to_wire.to_wire(messages, tools, options)

    @hookimpl
    def estimate_input_tokens(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: AdapterOptions | None
    ) -> int:
        return own.estimate.estimate_input_tokens(messages, tools)

    @hookimpl
    def from_wire_response(self, response: WireResponse, context: RequestContext) -> Message:
        return own.from_wire.from_wire_response(response, context)

    @hookimpl
    def stream_response(
        self, response_stream: AsyncIterator[WireChunk], context: RequestContext
    ) -> AsyncIterator[StreamEvent]:
        return own.stream.stream_response(response_stream, context)

    @hookimpl
    def from_wire_error(self, response: WireResponse, context: RequestContext) -> ProviderError:
        return own.service.from_wire_error(response)

    @hookimpl
    def auxiliary_request(self, kind: str, arguments: Mapping[str, Any]) -> WireRequest | None:
        return own.auxiliary.auxiliary_request(kind)

    @hookimpl
    def from_wire_auxiliary(self, kind: str, response: WireResponse) -> Any:
        return own.auxiliary.from_wire_auxiliary(kind, response)

    @hookimpl
    def wire_rules(self) -> Sequence[str]:
        return [files("interlingua_ollama").joinpath("lint.toml").read_text("utf-8")]


plugin = _Ollama()
