"""The blocking and the asynchronous client offer the same, by the same names (decision 020)."""

from __future__ import annotations

from interlingua._http.client import AsyncClient, Client
from interlingua._http.streams import AsyncMessageStream, MessageStream
from tests.support.parity import differences


def test_both_clients_offer_the_same() -> None:
    assert differences(Client, AsyncClient, "__init__") == []


def test_both_streams_offer_the_same() -> None:
    assert differences(MessageStream, AsyncMessageStream) == []
