"""Recorded Responses and Chat Completions traffic, replayed; the official SDK reads the same bytes and must agree."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlingua.errors import ProviderError
from interlingua.types.messages import Message, StopReason
from tests.support import driving
from tests.support.cassettes import RecordedExchange
from tests.tools.record import openai_sdk as sdk
from tests.tools.record.recorded import ROADS, Recorded, Road, essence, next_turn, recorded, replay, replay_cut

pytestmark = [pytest.mark.vcr, pytest.mark.block_network]
WIRES = ("responses", "chat")
READ = {"responses": sdk.read_responses, "chat": sdk.read_chat}


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("one", recorded(*WIRES))
def test_the_sdk_reads_the_same_bytes_alike(one: Recorded, road: Road) -> None:
    answers = road(one)

    assert len(answers) == len(one.exchanges)
    for exchange, message in zip(one.exchanges, answers, strict=True):
        assert exchange.headers["content-type"].startswith("text/event-stream") is one.scenario.stream
        sdk.agrees(READ[one.key](exchange), message)
        assert (message.metadata.provider, message.metadata.api) == ("openai", one.key)


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("one", recorded(*WIRES, fails=True))
def test_a_failure_becomes_the_class_of_the_table(one: Recorded, road: Road) -> None:
    (exchange,) = one.exchanges
    with pytest.raises(ProviderError) as ours:
        road(one)
    with sdk.client(exchange) as client, pytest.raises(sdk.FAILURES[exchange.status]) as theirs:
        client.responses.create(model="m", input="x")

    assert type(ours.value) is one.fails
    assert ours.value.message == theirs.value.body["message"]  # type: ignore[index]
    assert (ours.value.status, ours.value.body) == (theirs.value.status_code, exchange.body)
    assert not ours.value.retryable


@pytest.mark.vcr(allow_playback_repeats=True)
@pytest.mark.parametrize("one", recorded(*WIRES, stream=True))
def test_a_stream_cut_anywhere_gives_the_same_message(one: Recorded) -> None:
    whole, sevens, ones = ([essence(message) for message in replay_cut(one, size)] for size in (None, 7, 1))

    assert whole == sevens == ones


@pytest.mark.parametrize("one", recorded(*WIRES, stream=True))
def test_both_roads_give_the_same_message(one: Recorded) -> None:
    """What the SDK accumulates (Chat), or the terminal event's own response, read whole."""
    chosen = driving.provider("openai")
    for exchange in one.exchanges:
        body = json.dumps(_whole(one, exchange)).encode()
        first, second = (driving.context("openai", one.key, one.cast.model) for _ in range(2))
        streamed, whole = driving.streamed(chosen, exchange.body, first), driving.whole(chosen, body, second)
        assert whole == streamed
        assert next_turn(chosen, one, whole) == next_turn(chosen, one, streamed)


def _whole(one: Recorded, exchange: RecordedExchange) -> dict[str, Any]:
    if one.key == "chat":
        return sdk.read_chat(exchange).whole
    data = [line[6:] for line in exchange.body.splitlines() if line.startswith(b"data: {")]
    response: dict[str, Any] = json.loads(data[-1])["response"]
    return response


@pytest.mark.parametrize("one", recorded(*WIRES))
def test_calls_and_results_cross_with_the_services_own_ids(one: Recorded) -> None:
    answers = replay(one)
    issued = [call.provider_id for call in answers[0].tool_calls]
    asked = one.scenario.says[0].count("<tool_call>") if one.cast.local else len(issued)

    assert len(set(issued)) == asked
    assert [id_ for id_, _, _ in READ[one.key](one.exchanges[0]).calls] == issued
    if one.scenario.result is not None:
        request = one.exchanges[1].request
        if one.key == "chat":
            sent = [item["tool_call_id"] for item in request["messages"] if item["role"] == "tool"]
        else:
            sent = [item["call_id"] for item in request["input"] if item["type"] == "function_call_output"]
        assert sent == issued


@pytest.mark.default_cassette("openai/recorded_chat_length.yaml")
def test_an_answer_cut_off_says_so() -> None:
    one, message = _first("length")

    assert message.metadata.stop_reason is StopReason.MAX_TOKENS  # `length`
    assert message.metadata.usage is not None
    assert message.metadata.usage.output_tokens == one.exchanges[0].request["max_completion_tokens"]


@pytest.mark.default_cassette("openai/recorded_chat_structured.yaml")
def test_an_answer_follows_the_schema_it_was_asked_for() -> None:
    _, message = _first("structured")
    answer = json.loads(message.text)

    assert answer.keys() == {"city", "people"}
    assert isinstance(answer["people"], int)


def _first(scenario: str) -> tuple[Recorded, Message]:
    (one,) = (param.values[0] for param in recorded("chat") if param.values[0].scenario.name == scenario)
    (message,) = replay(one)
    return one, message
