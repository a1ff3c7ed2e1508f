"""Recorded Messages traffic, replayed through the client; the official SDK reads the same bytes and must agree."""

from __future__ import annotations

import json

import anthropic
import pytest

from interlingua.errors import ProviderError
from interlingua.types.messages import StopReason
from tests.oracle import anthropic_sdk as sdk
from tests.oracle.readings import calls_of, usage_of
from tests.plugins.anthropic.asking import ANTHROPIC, context
from tests.support import driving
from tests.support.cassettes import RecordedExchange
from tests.support.compact import compact
from tests.tools.record.recorded import ROADS, Recorded, Road, essence, next_turn, recorded, replay, replay_cut

pytestmark = [pytest.mark.vcr, pytest.mark.block_network]
FAILURES = {400: anthropic.BadRequestError, 401: anthropic.AuthenticationError, 404: anthropic.NotFoundError}


def _streamed(exchange: RecordedExchange) -> bool:
    return exchange.headers["content-type"].startswith("text/event-stream")


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("one", recorded("messages"))
def test_the_sdk_reads_the_same_bytes_alike(one: Recorded, road: Road) -> None:
    answers = road(one)

    assert len(answers) == len(one.exchanges)
    for exchange, message in zip(one.exchanges, answers, strict=True):
        assert _streamed(exchange) is one.scenario.stream
        expected = sdk.reading(sdk.streamed(exchange.body) if _streamed(exchange) else sdk.whole(exchange.body))
        assert message.text == expected.text
        assert calls_of(message) == expected.calls
        assert message.metadata.stop_reason is expected.stop
        assert usage_of(message) == expected.usage
        assert message.metadata.provider == "anthropic"


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("one", recorded("messages", fails=True))
def test_a_failure_becomes_the_class_of_the_errors_table(one: Recorded, road: Road) -> None:
    (exchange,) = one.exchanges
    told = json.loads(exchange.body)["error"]
    with pytest.raises(ProviderError) as ours:
        road(one)
    with sdk.client(exchange.body, status=exchange.status) as client, pytest.raises(FAILURES[exchange.status]):
        client.messages.create(**sdk.ASKED)

    assert type(ours.value) is one.fails
    assert (ours.value.status, ours.value.message, ours.value.code) == (exchange.status, told["message"], told["type"])
    assert ours.value.body == exchange.body
    assert not ours.value.retryable


@pytest.mark.vcr(allow_playback_repeats=True)
@pytest.mark.parametrize("one", recorded("messages", stream=True))
def test_a_stream_cut_anywhere_gives_the_same_message(one: Recorded) -> None:
    whole, sevens, ones = ([essence(message) for message in replay_cut(one, size)] for size in (None, 7, 1))

    assert whole == sevens == ones


@pytest.mark.parametrize("one", recorded("messages", stream=True))
def test_both_roads_give_the_same_message(one: Recorded) -> None:
    for exchange in one.exchanges:
        accumulated = compact(sdk.streamed(exchange.body))
        whole = driving.whole(ANTHROPIC, accumulated, context(one.cast.model))
        streamed = driving.streamed(ANTHROPIC, exchange.body, context(one.cast.model))
        assert whole == streamed
        assert next_turn(ANTHROPIC, one, whole) == next_turn(ANTHROPIC, one, streamed)


@pytest.mark.parametrize("one", recorded("messages"))
def test_calls_and_results_cross_with_the_services_own_ids(one: Recorded) -> None:
    first, *later = one.exchanges
    *_, answer = [replay(one)[0]]
    issued = [call.provider_id for call in answer.tool_calls]
    asked = len(one.scenario.says[0].split("<tool_call>")) - 1 if one.cast.local else len(issued)

    assert len(set(issued)) == asked
    assert all(f'"{call_id}"'.encode() in first.body for call_id in issued)
    if one.scenario.result is not None:
        results = [block for block in later[0].request["messages"][-1]["content"] if block["type"] == "tool_result"]
        assert [block["tool_use_id"] for block in results] == issued


@pytest.mark.default_cassette("anthropic/recorded_length.yaml")
def test_an_answer_cut_off_says_so() -> None:
    (one,) = (param.values[0] for param in recorded("messages") if param.id == "length")
    (message,) = replay(one)

    assert message.metadata.stop_reason is StopReason.MAX_TOKENS
    assert message.metadata.usage is not None
    assert message.metadata.usage.output_tokens == one.exchanges[0].request["max_tokens"]
