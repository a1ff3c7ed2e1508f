"""Authored exchanges at this host's addresses: read as the makers' own adapters read them."""

from __future__ import annotations

import pytest

from interlingua.errors import RateLimitError
from interlingua.plugins import WireResponse
from tests.support import driving
from tests.support.hosts import api_of, exchange_of, exchanges_of, names_of, outcome_of

MAKERS = {"generate": "google", "interactions": "google", "messages": "anthropic"}


@pytest.mark.parametrize("name", names_of("vertex"))
def test_the_maker_reads_the_same(name: str) -> None:
    for exchange in exchanges_of("vertex", name):
        api = api_of("vertex", exchange)

        assert outcome_of("vertex", api, exchange) == outcome_of(MAKERS[api], api, exchange)


def test_a_failure_of_the_cloud_itself_is_typed() -> None:
    quota = exchange_of("vertex", "claude_quota")
    context = driving.context("vertex", "messages", "claude-sonnet-4-5@20250929")
    error = driving.provider("vertex").from_wire_error(WireResponse(status=429, body=quota.body), context)

    assert isinstance(error, RateLimitError)
    assert error.message.startswith("Quota exceeded for aiplatform.googleapis.com")
