"""The provider object: everything this plugin offers, one hook a few lines.

Never holds translation itself; each hook hands on to the wire format that the request or its origin names.
The entry point `interlingua.providers: openai` comes in.
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
from interlingua_chat_completions.estimate import estimate_tokens
from interlingua_chat_completions.rules import wire_rules
from interlingua_openai import auxiliary, catalogue, chat, service
from interlingua_openai.responses import from_wire, stream, to_wire


class _OpenAI:
    contract_version = 1

    @hookimpl
    def capabilities(self, model: str, options: AdapterOptions | None) -> AdapterCapabilities:
        return catalogue.capabilities_of(model, catalogue.api_of(model, options.api if options else None))

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
        if catalogue.api_of(options.model, options.api) == catalogue.CHAT:
            return chat.FORMAT.to_wire(messages, tools, options, chat.dialect_for(options))
        return to_wire.to_wire(messages, tools, options)

    @hookimpl
    def estimate_input_tokens(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: AdapterOptions | None
    ) -> int:
        return estimate_tokens(messages, tools)

    @hookimpl
    def from_wire_response(self, response: WireResponse, context: RequestContext) -> Message:
        if context.origin.api == catalogue.CHAT:
            return chat.FORMAT.from_wire_response(response, context, chat.dialect_of(context.origin.model))
        return from_wire.from_wire_response(response, context)

    @hookimpl
    def stream_response(
        self, response_stream: AsyncIterator[WireChunk], context: RequestContext
    ) -> AsyncIterator[StreamEvent]:
        if context.origin.api == catalogue.CHAT:
            return chat.FORMAT.stream_response(response_stream, context, chat.dialect_of(context.origin.model))
        return stream.stream_response(response_stream, context)

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
        own = files("interlingua_openai").joinpath("lint")
        texts = (own.joinpath(f"{name}.toml").read_text("utf-8") for name in ("chat", "responses"))
        return [*wire_rules("format", "pairing"), *texts]


plugin = _OpenAI()
