"""The provider object: everything this plugin offers, one hook a few lines.

Never holds translation itself; each hook hands on to the wire format that the request or its origin names.
The entry point `interlingua.providers: openai` comes in.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import interlingua_chat_completions as chat_completions
import interlingua_openai as own
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


class _OpenAI:
    contract_version = 1

    @hookimpl
    def capabilities(self, model: str, options: AdapterOptions | None) -> AdapterCapabilities:
        return own.catalogue.capabilities_of(model, own.catalogue.api_of(model, options.api if options else None))

    @hookimpl
    def models(self) -> Sequence[ModelInfo]:
        return own.catalogue.models()

    @hookimpl
    def connection(self, settings: ConnectionSettings) -> Connection:
        return own.service.connection(settings)

    @hookimpl
    def to_wire(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: AdapterOptions
    ) -> WireRequest:
        if own.catalogue.api_of(options.model, options.api) == own.catalogue.CHAT:
            return own.chat.FORMAT.to_wire(messages, tools, options, own.chat.dialect_for(options))
        return own.responses.to_wire.to_wire(messages, tools, options)

    @hookimpl
    def estimate_input_tokens(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: AdapterOptions | None
    ) -> int:
        return chat_completions.estimate.estimate_tokens(messages, tools)

    @hookimpl
    def from_wire_response(self, response: WireResponse, context: RequestContext) -> Message:
        if context.origin.api == own.catalogue.CHAT:
            return own.chat.FORMAT.from_wire_response(response, context, own.chat.dialect_of(context.origin.model))
        return own.responses.from_wire.from_wire_response(response, context)

    @hookimpl
    def stream_response(
        self, response_stream: AsyncIterator[WireChunk], context: RequestContext
    ) -> AsyncIterator[StreamEvent]:
        if context.origin.api == own.catalogue.CHAT:
            return own.chat.FORMAT.stream_response(response_stream, context, own.chat.dialect_of(context.origin.model))
        return own.responses.stream.stream_response(response_stream, context)

    @hookimpl
    def from_wire_error(self, response: WireResponse, context: RequestContext) -> ProviderError:
        return own.service.from_wire_error(response)

    @hookimpl
    def auxiliary_request(self, kind: str, arguments: Mapping[str, Any]) -> WireRequest | None:
        return own.auxiliary.auxiliary_request(kind, arguments)

    @hookimpl
    def from_wire_auxiliary(self, kind: str, response: WireResponse) -> Any:
        return own.auxiliary.from_wire_auxiliary(kind, response)

    @hookimpl
    def wire_rules(self) -> Sequence[str]:
        own = files("interlingua_openai").joinpath("lint")
        texts = (own.joinpath(f"{name}.toml").read_text("utf-8") for name in ("chat", "responses"))
        return [*chat_completions.rules.wire_rules("format", "pairing"), *texts]


plugin = _OpenAI()
