"""The provider object: the shared format's hooks, and what only this service has.

Never holds translation itself: the shared format does that, by the one dialect this service has.
The entry point `interlingua.providers: openrouter` comes in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from interlingua.catalogue import ModelInfo
from interlingua.errors import ProviderError
from interlingua.plugins.hookspecs import hookimpl
from interlingua.plugins.wire import Connection, ConnectionSettings, RequestContext, WireRequest, WireResponse
from interlingua.types.options import AdapterCapabilities, AdapterOptions
from interlingua_chat_completions.provider import ChatProvider
from interlingua_chat_completions.rules import wire_rules
from interlingua_openrouter import auxiliary, catalogue, service
from interlingua_openrouter.dialect import FORMAT, dialect_of


class _OpenRouter(ChatProvider):
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


plugin = _OpenRouter(FORMAT, dialect_of)
