"""For the tests of sessions: clients of the made-up provider, an observer that keeps its events, and stored sessions.

No real provider is spoken to here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import interlingua as il
from interlingua_sessions import Store
from tests.support.fake_provider import Fake, Server


class Watching:
    """An observer that keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[Mapping[str, Any]] = []

    @il.plugins.hookimpl
    def observe(self, event: Mapping[str, Any]) -> None:
        self.events.append(event)

    def of(self, kind: str) -> list[Mapping[str, Any]]:
        return [event for event in self.events if event["type"] == kind]


class Counting(Fake):
    """The made-up provider, estimating one token a letter."""

    @il.plugins.hookimpl
    def estimate_input_tokens(self, messages: Sequence[il.Message]) -> int:
        return sum(len(message.text) for message in messages)


def registry(plugins: Sequence[Any] = (), **providers: Fake) -> il.Registry:
    """Return a registry of made-up providers; `fake` alone when none is named."""
    return il.Registry(plugins, providers=providers or {"fake": Fake()}, entry_points=[], aliases={"fk": "fake:known"})


def client(
    server: Server | None, found: il.Registry | None = None, model: str | None = "fake:known", **more: Any
) -> il.Client:
    return il.Client(model, **_given(server, found), **more)


def async_client(server: Server, found: il.Registry | None = None) -> il.AsyncClient:
    return il.AsyncClient("fake:known", **_given(server, found))


def _given(server: Server | None, found: il.Registry | None) -> dict[str, Any]:
    found = found if found is not None else registry()
    own = {"api_key": "k", **({"base_url": server.url} if server is not None else {})}
    return {"registry": found, "settings": dict.fromkeys(found.found(), own), "retry": 0}


def add_sessions(store: Store, first: int, count: int) -> None:
    """Add sessions with a message each, numbered from the first."""
    names = [f"t{number:04}" for number in range(first, first + count)]
    for name in names:
        store.create_session(name)
    store.extend([il.user("some words", session_id=name) for name in names])
