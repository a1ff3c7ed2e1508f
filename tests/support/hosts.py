"""Hosts that serve other makers' formats: what they read of their cassettes, and how their requests are signed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from inspect import isawaitable
from typing import Any
from urllib.parse import urlsplit

import attrs

from interlingua.errors import ProviderError
from interlingua.plugins import Connection, ConnectionSettings, HttpRequest, WireRequest, WireResponse
from interlingua.types.blocks import OpaqueBlock
from interlingua.types.messages import Message
from tests.support import driving
from tests.support.cassettes import FOLDER, RecordedExchange, load_exchanges

Outcome = tuple[object, ...]


def names_of(key: str) -> list[str]:
    """Return the names of a host's cassettes."""
    return sorted(path.stem for path in (FOLDER / key).glob("*.yaml"))


def exchanges_of(key: str, name: str) -> list[RecordedExchange]:
    """Return the exchanges of a cassette."""
    return load_exchanges(f"{key}/{name}.yaml")


def exchange_of(key: str, name: str) -> RecordedExchange:
    """Return the one exchange of a cassette."""
    (found,) = exchanges_of(key, name)
    return found


def outcome_of(key: str, api: str, exchange: RecordedExchange) -> Outcome:
    """Return what an adapter makes of an exchange, but for who is credited."""
    provider, context = driving.provider(key), driving.context(key, api, "any")
    if not exchange.good:
        failed = WireResponse(status=exchange.status, headers=exchange.headers, body=exchange.body)
        return _failure(provider.from_wire_error(failed, context))
    road = driving.streamed if exchange.streamed else driving.whole
    return _read(lambda: road(provider, exchange.body, context))


def api_of(key: str, exchange: RecordedExchange) -> str:
    """Return the API that an exchange's address names."""
    found = driving.provider(key).connection(ConnectionSettings()).find_endpoint(urlsplit(exchange.uri).path)
    assert found is not None
    assert found.read
    return found.api


def address(connection: Connection, request: WireRequest) -> str:
    """Return the address of a request at a host that computes it."""
    assert connection.url is not None
    return connection.url(request)


def signed(connection: Connection, request: WireRequest, refused: Any = None) -> dict[str, str]:
    """Return the secret headers; a source of tokens is asked, with the error that refused the last one."""
    if connection.sign is None:
        return dict(connection.auth(request))
    assert connection.credentials is not None
    made = connection.credentials(refused)
    secret = asyncio.run(_wait_for(made)) if isawaitable(made) else made
    now = datetime(2026, 11, 22, tzinfo=UTC)
    return dict(connection.sign(HttpRequest("POST", address(connection, request), {}, request.body, now), secret))


async def _wait_for(made: Awaitable[Any]) -> Any:
    return await made


def _read(read: Callable[[], Message]) -> Outcome:
    try:
        message = read()
    except ProviderError as error:
        return _failure(error)
    facts = message.metadata
    replay = (facts.provider_raw or {}).get("replay")
    opaque = [attrs.evolve(block, provider="") for block in message.content if isinstance(block, OpaqueBlock)]
    content = [block for block in message.content if not isinstance(block, OpaqueBlock)]
    return content, opaque, facts.stop_reason, facts.stop_reason_raw, facts.usage, facts.status, replay


def _failure(error: ProviderError) -> Outcome:
    return type(error), str(error.message), error.code, error.retryable, error.retry_after
