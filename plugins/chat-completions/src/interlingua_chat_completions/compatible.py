"""The provider a row describes: one object, all hooks, no code of its own for any service.

Never looks at its own key to decide anything; what differs is in the row.
`rows` makes these; the registry comes in for the object.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from interlingua.capabilities import AdapterCapabilities
from interlingua.catalogue import ModelInfo, find_model
from interlingua.context import RequestContext
from interlingua.errors import ProviderError
from interlingua.events import StreamEvent
from interlingua.hookspecs import hookimpl
from interlingua.jsontext import loads
from interlingua.messages import Message
from interlingua.options import AdapterOptions
from interlingua.tools import ToolDefinition
from interlingua.wire import Connection, ConnectionSettings, WireChunk, WireRequest, WireResponse, no_auth
from interlingua_chat_completions.capabilities import capabilities_of
from interlingua_chat_completions.format import API, ENDPOINT, ChatFormat
from interlingua_chat_completions.row import Row
from interlingua_chat_completions.rules import wire_rules


class CompatibleProvider:
    """One row as a provider."""

    def __init__(self, row: Row) -> None:
        self.row = row
        self._format = ChatFormat(row.key)
        self._known: dict[str, AdapterCapabilities] = {}

    def __repr__(self) -> str:
        return f"<CompatibleProvider {self.row.key!r}>"

    @hookimpl
    def capabilities(self, model: str, options: AdapterOptions | None) -> AdapterCapabilities:
        """The row's declaration for this model; the same object each time."""
        found = self._known.get(model)
        if found is None:
            info = find_model(self.row.models, model)
            found = self._known[model] = capabilities_of(self.row.dialect, self.row.capabilities, info)
        return found

    @hookimpl
    def to_wire(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: AdapterOptions
    ) -> WireRequest:
        """Write the request in the row's dialect."""
        return self._format.to_wire(messages, tools, options, self.row.dialect)

    @hookimpl
    def from_wire_response(self, response: WireResponse, context: RequestContext) -> Message:
        """Read a whole answer."""
        return self._format.from_wire_response(response, context, self.row.dialect)

    @hookimpl
    def stream_response(
        self, response_stream: AsyncIterator[WireChunk], context: RequestContext
    ) -> AsyncIterator[StreamEvent]:
        """Read a stream."""
        return self._format.stream_response(response_stream, context, self.row.dialect)

    @hookimpl
    def from_wire_error(self, response: WireResponse, context: RequestContext) -> ProviderError:
        """Read a failed answer."""
        return self._format.from_wire_error(response, self.row.dialect)

    @hookimpl
    def estimate_input_tokens(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: AdapterOptions | None
    ) -> int:
        """Estimate a request's input tokens."""
        return self._format.estimate_input_tokens(messages, tools)

    @hookimpl
    def connection(self, settings: ConnectionSettings) -> Connection:
        """The row's host with a bearer key, where there is one."""
        row = self.row
        environ = settings.environ
        key = settings.api_key or next((environ[name] for name in row.key_env if environ.get(name)), None)
        base_url = settings.base_url or (row.base_url_env and environ.get(row.base_url_env)) or row.base_url

        def bearer(_request: WireRequest) -> Mapping[str, str]:
            return {"authorization": f"Bearer {key}"}

        return Connection(
            base_url=base_url.rstrip("/"),
            auth=bearer if key else no_auth,
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
        """Offer `models`: every service of this format lists its models at one place."""
        return WireRequest(method="GET", path="/models", body=b"", api=API) if kind == "models" else None

    @hookimpl
    def from_wire_auxiliary(self, kind: str, response: WireResponse) -> Any:
        """Read the list: an object with `data`, or a bare array (one service)."""
        body = loads(response.body)
        return [model["id"] for model in (body["data"] if isinstance(body, dict) else body)]

    @hookimpl
    def wire_rules(self) -> Sequence[str]:
        """What the row's service refuses."""
        return wire_rules(*self.row.rules)
