"""What a host that serves another maker's format reads of its cassettes, and what the maker's own adapter reads."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

import attrs

from interlingua.errors import ProviderError
from interlingua.plugins import ConnectionSettings, WireResponse
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
