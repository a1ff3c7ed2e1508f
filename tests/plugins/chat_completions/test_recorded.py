"""Recorded traffic of a service with a preset, replayed; the official SDK reads the same bytes and must agree."""

from __future__ import annotations

import json

import pytest

from interlingua.errors import ProviderError
from interlingua.types.messages import Message, StopReason
from tests.support import driving
from tests.tools.record import openai_sdk as sdk
from tests.tools.record.recorded import ROADS, Recorded, Road, essence, next_turn, recorded, replay, replay_cut

pytestmark = [pytest.mark.vcr, pytest.mark.block_network]


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("one", recorded("llamacpp"))
def test_the_sdk_reads_the_same_bytes_alike(one: Recorded, road: Road) -> None:
    answers = road(one)

    assert len(answers) == len(one.exchanges)
    for exchange, message in zip(one.exchanges, answers, strict=True):
        assert exchange.headers["content-type"].startswith("text/event-stream") is one.scenario.stream
        sdk.agrees(sdk.read_chat(exchange), message)
        assert message.metadata.provider == "llamacpp"


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("one", recorded("llamacpp", fails=True))
def test_a_failure_becomes_the_class_of_the_table(one: Recorded, road: Road) -> None:
    (exchange,) = one.exchanges
    with pytest.raises(ProviderError) as ours:
        road(one)
    with sdk.client(exchange) as client, pytest.raises(sdk.FAILURES[exchange.status]) as theirs:
        client.chat.completions.create(model="m", messages=[])

    assert type(ours.value) is one.fails
    assert ours.value.message == theirs.value.body["message"]  # type: ignore[index]
    assert (ours.value.status, ours.value.body) == (theirs.value.status_code, exchange.body)
    assert not ours.value.retryable


@pytest.mark.vcr(allow_playback_repeats=True)
@pytest.mark.parametrize("one", recorded("llamacpp", stream=True))
def test_a_stream_cut_anywhere_gives_the_same_message(one: Recorded) -> None:
    whole, sevens, ones = ([essence(message) for message in replay_cut(one, size)] for size in (None, 7, 1))

    assert whole == sevens == ones


@pytest.mark.parametrize("one", recorded("llamacpp", stream=True))
def test_both_roads_give_the_same_message(one: Recorded) -> None:
    chosen = driving.provider("llamacpp")
    for exchange in one.exchanges:
        body = json.dumps(sdk.read_chat(exchange).whole).encode()
        first, second = (driving.context("llamacpp", "chat", one.cast.model) for _ in range(2))
        streamed, whole = driving.streamed(chosen, exchange.body, first), driving.whole(chosen, body, second)
        assert whole == streamed
        assert next_turn(chosen, one, whole) == next_turn(chosen, one, streamed)


@pytest.mark.parametrize("one", recorded("llamacpp"))
def test_calls_and_results_cross_with_the_servers_own_ids(one: Recorded) -> None:
    issued = [call.provider_id for call in replay(one)[0].tool_calls]

    assert len(set(issued)) == one.scenario.says[0].count("<tool_call>")
    assert [id_ for id_, _, _ in sdk.read_chat(one.exchanges[0]).calls] == issued
    if one.scenario.result is not None:
        history = one.exchanges[1].request["messages"]
        assert [item["tool_call_id"] for item in history if item["role"] == "tool"] == issued


@pytest.mark.default_cassette("llamacpp/recorded_length.yaml")
def test_an_answer_cut_off_says_so() -> None:
    one, message = _first("length")

    assert message.metadata.stop_reason is StopReason.MAX_TOKENS  # `length`
    assert message.metadata.usage is not None
    assert message.metadata.usage.output_tokens == one.exchanges[0].request["max_tokens"]


@pytest.mark.default_cassette("llamacpp/recorded_structured.yaml")
def test_an_answer_follows_the_schema_it_was_asked_for() -> None:
    _, message = _first("structured")
    answer = json.loads(message.text)

    assert answer.keys() == {"city", "people"}
    assert isinstance(answer["people"], int)


def _first(scenario: str) -> tuple[Recorded, Message]:
    (one,) = (param.values[0] for param in recorded("llamacpp") if param.values[0].scenario.name == scenario)
    (message,) = replay(one)
    return one, message
