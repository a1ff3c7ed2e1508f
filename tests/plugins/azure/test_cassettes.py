"""Authored exchanges at this host's addresses: read as the makers' own adapters read them."""

from __future__ import annotations

import pytest

from interlingua.errors import ContentRefusedError, ModelNotFoundError
from interlingua.plugins import WireResponse
from interlingua.types.messages import StopReason
from tests.support import driving
from tests.support.hosts import api_of, exchange_of, exchanges_of, names_of, outcome_of

AZURE = driving.provider("azure")
MAKERS = {"chat": "openai", "responses": "openai", "messages": "anthropic"}


@pytest.mark.parametrize("name", names_of("azure"))
def test_the_maker_reads_the_same(name: str) -> None:
    for exchange in exchanges_of("azure", name):
        api = api_of("azure", exchange)

        assert outcome_of("azure", api, exchange) == outcome_of(MAKERS[api], api, exchange)


def test_the_filters_results_are_no_part_of_the_message() -> None:
    exchange = exchange_of("azure", "chat_deployment")
    message = driving.streamed(AZURE, exchange.body, driving.context("azure", "chat", "gpt-4o-mini"))

    assert (message.text, message.metadata.stop_reason) == ("Oi!", StopReason.END_TURN)
    assert message.metadata.provider == "azure"
    assert message.metadata.usage is not None
    assert (message.metadata.usage.input_tokens, message.metadata.usage.output_tokens) == (12, 3)


def test_a_filtered_prompt_and_an_unknown_deployment() -> None:
    context = driving.context("azure", "chat", "gpt-4o-mini")
    filtered = WireResponse(status=400, body=exchange_of("azure", "chat_filtered").body)
    absent = b'{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}'

    assert isinstance(AZURE.from_wire_error(filtered, context), ContentRefusedError)
    assert isinstance(AZURE.from_wire_error(WireResponse(status=404, body=absent), context), ModelNotFoundError)
