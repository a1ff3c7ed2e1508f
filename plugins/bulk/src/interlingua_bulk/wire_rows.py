"""Rows in a provider's own request format: the lines of batch files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import attrs
import orjson

from interlingua import AsyncClient
from interlingua.errors import CallerError, CapabilityError, InterlinguaError
from interlingua.plugins import ConnectionSettings, WireRequest
from interlingua.types import Message, RequestOptions, ToolDefinition
from interlingua_serving import InboundRequest, ServeContext, ServingPlugin, find_serving_plugin

_NOT_OPTIONS = frozenset({"model", "api", "stream", "connection"})


class WireReader:
    """Reads bodies with the serving plugin of a provider whose service has the line's URL.

    Args:
        client: the client with the providers.
    """

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._readers: dict[tuple[str, str | None], tuple[ServingPlugin, str]] = {}

    def read(
        self, data: Mapping[str, Any], model: str | None
    ) -> tuple[Sequence[Message], Sequence[ToolDefinition], dict[str, Any]]:
        """Return messages, tools and options of `{"custom_id", "method", "url", "body"}`.

        Without a model of the run the body's own is in the options, as `model`.

        Raises:
            CallerError: no installed provider reads this body, or its API does not allow it.
        """
        url, body = data.get("url"), data.get("body")
        if not isinstance(url, str) or not isinstance(body, Mapping):
            raise CallerError("a line of a batch file has a url (such as /v1/chat/completions) and a body")
        path, written = urlsplit(url).path, orjson.dumps(body)
        reader, api, inbound = self._read(path, written, model)
        target = self._client.registry.resolve(model) if model is not None else None
        key = reader.key if target is None else target.provider
        name = inbound.options.model if target is None else target.name
        can = self._client.registry.provider(key).capabilities(name)
        messages, asked, _ = inbound.for_upstream(key, api if key == reader.key else can.api, name, can)
        options = _given(asked)
        if target is None:
            options["model"] = f"{key}:{name}"
        if key == reader.key:
            options["api"] = api
        return messages, inbound.tools, options

    def _read(self, path: str, body: bytes, model: str | None) -> tuple[ServingPlugin, str, InboundRequest]:
        """Read a body with the plugin that read the last line of this URL, or with the first one that can."""
        known = self._readers.get((path, model))
        for plugin, api in (known,) if known is not None else self._candidates(path, model):
            request = WireRequest(path=path, body=body, api=api)
            try:
                inbound = plugin.from_wire_request(request, ServeContext(provider=plugin.key, api=api))
            except CapabilityError:
                continue
            self._readers[path, model] = plugin, api
            return plugin, api, inbound
        raise CallerError(f"no installed provider reads requests for {path}")

    def _candidates(self, path: str, model: str | None) -> list[tuple[ServingPlugin, str]]:
        """Return the plugins that read requests for a URL, the target's own provider first."""
        registry = self._client.registry
        own = registry.resolve(model).provider if model is not None else None
        found = []
        for key in sorted(registry.found(), key=lambda key: (key != own, key)):
            try:
                endpoint = registry.provider(key).connection(ConnectionSettings()).find_endpoint(path)
                if endpoint is not None and endpoint.read:
                    found.append((find_serving_plugin(registry, key), endpoint.api))
            except InterlinguaError:  # the provider is broken, or does not serve its API
                continue
        return found


def _given(options: RequestOptions) -> dict[str, Any]:
    """Return the set options by name, as a caller passes them."""
    return {
        field.name: value
        for field in attrs.fields(RequestOptions)
        if field.name not in _NOT_OPTIONS and (value := getattr(options, field.name)) != field.default and value != {}
    }
