"""Clients whose service answers from a list, and keeps what it was asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import httpx

from interlingua import AsyncClient, Client
from interlingua.plugins import Registry

TYPESAFE = {"base_url": "https://api.typesafe.ai/v1", "key_env": "TYPESAFE_API_KEY", "system_one": True}


class Service:
    """Answers each request with the next body, or a pair of a status and a body.

    Attributes:
        asked: path and JSON body of each request.
    """

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append((request.url.path, json.loads(request.content)))
        answer = self._answers.pop(0)
        status, body = answer if isinstance(answer, tuple) else (200, answer)
        text = body if isinstance(body, str) else json.dumps(body)
        return httpx.Response(status, text=text, headers={"content-type": "application/json"})

    @property
    def paths(self) -> list[str]:
        """The paths that were asked."""
        return [path for path, _ in self.asked]

    def client(self, model: str | list[str], **settings: Any) -> Client:
        """Return a client that asks this service."""
        http = httpx.Client(transport=httpx.MockTransport(self))
        return Client(model, http_client=http, **_settings(model, settings))

    def async_client(self, model: str, **settings: Any) -> AsyncClient:
        """Return an asynchronous one."""
        http = httpx.AsyncClient(transport=httpx.MockTransport(self))
        return AsyncClient(model, http_client=http, **_settings(model, settings))


def _settings(model: str | list[str], given: Mapping[str, Any]) -> dict[str, Any]:
    made = {"api_key": "k", "retry": 0, "environ": {}, **given}
    return (
        {**made, "registry": Registry(presets={"typesafe": TYPESAFE})} if str(model).startswith("typesafe:") else made
    )
