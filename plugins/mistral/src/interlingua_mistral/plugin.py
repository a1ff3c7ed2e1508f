"""The provider object: the shared format's hooks, and what only this service has.

Never holds translation itself: the shared format does that, by the dialect of the model.
The entry point `interlingua.providers: mistral` comes in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from interlingua.catalogue import ModelInfo
from interlingua.plugins.hookspecs import hookimpl
from interlingua.plugins.wire import Connection, ConnectionSettings, WireRequest, WireResponse
from interlingua.types.options import AdapterCapabilities, AdapterOptions
from interlingua_chat_completions import auxiliary
from interlingua_chat_completions.provider import ChatProvider
from interlingua_chat_completions.rules import wire_rules
from interlingua_mistral import catalogue, service
from interlingua_mistral.dialect import FORMAT, capabilities_for, dialect_of


class _Mistral(ChatProvider):
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
    def auxiliary_request(self, kind: str, arguments: Mapping[str, Any]) -> WireRequest | None:
        return auxiliary.auxiliary_request(kind)

    @hookimpl
    def from_wire_auxiliary(self, kind: str, response: WireResponse) -> Any:
        return auxiliary.from_wire_auxiliary(kind, response)

    @hookimpl
    def wire_rules(self) -> Sequence[str]:
        return [*wire_rules("format", "pairing"), files("interlingua_mistral").joinpath("lint.toml").read_text("utf-8")]


plugin = _Mistral(FORMAT, dialect_of)
