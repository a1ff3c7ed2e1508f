"""Rows in a provider's own request format: the lines of batch files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import orjson

from interlingua import AsyncClient
from interlingua.errors import CallerError, InterlinguaError
from interlingua.plugins import ConnectionSettings, WireRequest
from interlingua.types import Message, ToolDefinition


class WireReader:
    """Reads bodies by the hook `from_wire_request` of an installed provider that serves the line's URL.

    Args:
        client: whose providers are asked.
    """

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._found: dict[tuple[str, str | None], tuple[Any, str]] = {}

    def read(
        self, data: Mapping[str, Any], model: str | None
    ) -> tuple[Sequence[Message], Sequence[ToolDefinition], dict[str, Any]]:
        """Return messages, tools and options of `{"custom_id", "method", "url", "body"}`.

        Without a model of the run the body's own is in the options, as `model`.

        Raises:
            CallerError: no installed provider reads such a body.
        """
        url, body = data.get("url"), data.get("body")
        if not isinstance(url, str) or not isinstance(body, Mapping):
            raise CallerError("a line of a batch file has a url (such as /v1/chat/completions) and a body")
        provider, api = self._reader(url, model)
        inbound: Any = provider.from_wire_request(WireRequest(path=url, body=orjson.dumps(body), api=api))
        options = {
            field.name: value
            for field in attrs.fields(type(inbound.options))
            if field.name not in ("model", "api", "stream", "connection")
            and (value := getattr(inbound.options, field.name)) != field.default
            and value
        }
        if model is None:
            options["model"] = f"{provider.key}:{inbound.options.model}"
        return inbound.messages, inbound.tools, options

    def _reader(self, url: str, model: str | None) -> tuple[Any, str]:
        found = self._found.get((url, model))
        if found is None:
            found = self._found[url, model] = self._find(url, model)
        return found

    def _find(self, url: str, model: str | None) -> tuple[Any, str]:
        """Return who reads a URL: the target's own provider, where it serves that URL, else the first that does."""
        registry = self._client.registry
        own = registry.resolve(model).provider if model is not None else None
        keys = sorted(registry.found(), key=lambda key: (key != own, key))
        for key in keys:
            try:
                provider = registry.provider(key)
                endpoints = provider.connection(ConnectionSettings(environ={})).endpoints
            except InterlinguaError:
                continue
            for api, pattern in endpoints.items():
                if re.search(pattern, url) and hasattr(provider, "from_wire_request"):
                    return provider, api
        raise CallerError(f"no installed provider reads requests for {url}")
