"""The provider a row describes: one object, all hooks, no code of its own for any service.

Never looks at its own key to decide anything; what differs is in the row.
`rows` makes these; the registry comes in for the object.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from interlingua.catalogue import ModelInfo, find_model
from interlingua.plugins.hookspecs import hookimpl
from interlingua.plugins.wire import Connection, ConnectionSettings, WireRequest, WireResponse, bearer_auth
from interlingua.types.options import AdapterCapabilities, AdapterOptions
from interlingua_chat_completions import auxiliary
from interlingua_chat_completions.capabilities import capabilities_of
from interlingua_chat_completions.dialect import Dialect
from interlingua_chat_completions.format import API, ENDPOINT, ChatFormat
from interlingua_chat_completions.provider import ChatProvider
from interlingua_chat_completions.row import Profile, Row
from interlingua_chat_completions.rules import wire_rules


class CompatibleProvider(ChatProvider):
    """One row as a provider."""

    def __init__(self, row: Row) -> None:
        super().__init__(ChatFormat(row.key), self.dialect_of)
        self.row = row
        self._known: dict[str, AdapterCapabilities] = {}
        self._profiles: dict[str, Profile] = {}

    def __repr__(self) -> str:
        return f"<CompatibleProvider {self.row.key!r}>"

    def _profile(self, model: str) -> Profile:
        found = self._profiles.get(model)
        if found is None:
            found = self._profiles[model] = self.row.profile_of(model)
        return found

    def dialect_of(self, model: str) -> Dialect:
        """Return the dialect of a model's profile; the same object each time."""
        return self._profile(model).dialect

    @hookimpl
    def capabilities(self, model: str, options: AdapterOptions | None) -> AdapterCapabilities:
        """The row's declaration for this model; the same object each time."""
        found = self._known.get(model)
        if found is None:
            info, profile = find_model(self.row.models, model), self._profile(model)
            found = self._known[model] = capabilities_of(profile.dialect, profile.capabilities, info)
        return found

    @hookimpl
    def connection(self, settings: ConnectionSettings) -> Connection:
        """The row's host with a bearer key, where there is one."""
        row = self.row
        environ = settings.environ
        key = settings.api_key or next((environ[name] for name in row.key_env if environ.get(name)), None)
        base_url = settings.base_url or (row.base_url_env and environ.get(row.base_url_env)) or row.base_url

        return Connection(
            base_url=base_url.rstrip("/"),
            auth=bearer_auth(key),
            env=row.key_env,
            has_key=bool(key) or not row.key_required,
            hosts=row.hosts,
            endpoints={API: ENDPOINT},
        )

    @hookimpl
    def models(self) -> Sequence[ModelInfo]:
        """The row's catalogue."""
        return self.row.models

    @hookimpl
    def auxiliary_request(self, kind: str, arguments: Mapping[str, Any]) -> WireRequest | None:
        """Offer `models`."""
        return auxiliary.auxiliary_request(kind)

    @hookimpl
    def from_wire_auxiliary(self, kind: str, response: WireResponse) -> Any:
        """Read the list."""
        return auxiliary.from_wire_auxiliary(kind, response)

    @hookimpl
    def wire_rules(self) -> Sequence[str]:
        """What the row's service refuses."""
        return wire_rules(*self.row.rules)
