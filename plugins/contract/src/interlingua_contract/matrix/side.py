"""One side of a swap: a provider on one of its wires, and which of its models a history asks for.

Never writes a history (the script does) and never judges one.
The other modules of this room come in, and the command `matrix`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property

from interlingua.errors import CapabilityError
from interlingua.plugins import write_request
from interlingua.plugins.provider import Provider
from interlingua.plugins.wire import Connection, ConnectionSettings, WireRequest
from interlingua.types.factories import assistant, user
from interlingua.types.messages import Message, Origin
from interlingua.types.options import AdapterCapabilities, AdapterOptions
from interlingua.types.tools import ToolDefinition
from interlingua_contract import json_paths as trees

UNKNOWN_MODEL = "any-model"


"""Asked for where a provider's catalogue is empty: its default capabilities apply."""


class Side:
    """A provider on one of its wires.

    Args:
        provider: its façade.
        api: which wire.
        name: the provider's key, with the wire behind a slash where there are several.
    """

    def __init__(self, provider: Provider, api: str, name: str) -> None:
        self.provider, self.api, self.name = provider, api, name
        self.issuing: dict[str, bool] = {}

    def __repr__(self) -> str:
        return f"<Side {self.name}>"

    @cached_property
    def connection(self) -> Connection:
        """The connection without any key or environment."""
        return self.provider.connection(ConnectionSettings(api=self.api))

    @cached_property
    def models(self) -> tuple[tuple[str, AdapterCapabilities], ...]:
        """The models to be had on this wire with what they declare, in the catalogue's order."""
        found = []
        for name in [info.id for info in self.provider.models()] or [UNKNOWN_MODEL]:
            try:
                declared = self.provider.capabilities(name, AdapterOptions(model=name, api=self.api))
            except CapabilityError:
                continue  # this model is not to be had on this wire
            if declared.api in ("", self.api):
                found.append((name, declared))
        return tuple(found) or ((UNKNOWN_MODEL, self.provider.capabilities(UNKNOWN_MODEL)),)

    def model_for(self, needs: Sequence[str]) -> str:
        """Return the first model of the catalogue that declares most of what a history needs."""
        return max(self.models, key=lambda one: sum(bool(getattr(one[1], need)) for need in needs))[0]

    def options(self, model: str) -> AdapterOptions:
        """Return a request's options."""
        return AdapterOptions(model=model, api=self.api)

    def capabilities(self, model: str) -> AdapterCapabilities:
        """Return what a model declares on this wire."""
        return self.provider.target(self.options(model)).capabilities

    def origin(self, model: str) -> Origin:
        """Return what this side's answers are credited to."""
        return Origin(self.provider.key, self.capabilities(model).api or self.api, model)

    def write(self, model: str, messages: Sequence[Message], tools: Sequence[ToolDefinition]) -> WireRequest:
        """Write a request.

        Raises:
            InterlinguaError: it cannot be said.
        """
        return write_request(self.provider, messages, tools, self.options(model))

    @cached_property
    def grown_path(self) -> trees.Path | None:
        """Where the array stands that grows with the conversation; None where there is none."""
        model = self.model_for(())
        short = self.write(model, [user("one")], ())
        long = self.write(model, [user("one"), assistant("two"), user("three")], ())
        return trees.grown_path(json.loads(short.body), json.loads(long.body))
