"""The provider object: the shared format's hooks, and what only this service has.

Never holds translation itself: the shared format does that, by the dialect of the model.
The entry point `interlingua.providers: zai` comes in.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from interlingua.catalogue import ModelInfo
from interlingua.plugins.hookspecs import hookimpl
from interlingua.plugins.wire import Connection, ConnectionSettings, WireRequest
from interlingua.types.messages import Message
from interlingua.types.options import AdapterCapabilities, AdapterOptions
from interlingua.types.tools import ToolDefinition
from interlingua_chat_completions.provider import ChatProvider
from interlingua_chat_completions.rules import wire_rules
from interlingua_zai import catalogue, service, to_wire
from interlingua_zai.capabilities import capabilities_for
from interlingua_zai.dialect import FORMAT, dialect_of


class _Zai(ChatProvider):
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
    def wire_rules(self) -> Sequence[str]:
        return [*wire_rules("format"), files("interlingua_zai").joinpath("lint.toml").read_text("utf-8")]


plugin = _Zai(FORMAT, dialect_of)
