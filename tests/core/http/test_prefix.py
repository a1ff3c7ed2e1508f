"""A warning comes before a request is sent whose prefix is no longer the one sent before, with what that costs."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import attrs
import pytest

from interlingua._catalogue import ModelInfo, Price
from interlingua._http.client import Client
from interlingua._plugins.hookspecs import hookimpl
from interlingua.types.factories import assistant, change, user
from interlingua.types.messages import Message, Usage
from interlingua.types.options import RequestOptions
from interlingua.types.tools import SideEffects, ToolDefinition
from tests.support.fake_provider import CAPABLE, Fake, registry

TOOL = ToolDefinition(
    name="look", description="Look.", input_schema={"type": "object", "properties": {}}, side_effects=SideEffects.READ
)


class Counting(Fake):
    """100 tokens a message; 10 USD a million, 1 cached."""

    @hookimpl
    def models(self) -> list[ModelInfo]:
        price = Price(
            input_per_mtok_usd=Decimal(10), output_per_mtok_usd=Decimal(1), cached_read_per_mtok_usd=Decimal(1)
        )
        return [ModelInfo(id="known", prices=(price,)), ModelInfo(id="other")]

    @hookimpl
    def estimate_input_tokens(self, messages: list[Message], tools: Any, options: RequestOptions) -> int:
        return 100 * len(messages)


class Watch:
    def __init__(self) -> None:
        self.events: list[Mapping[str, Any]] = []

    @hookimpl
    def observe(self, event: Mapping[str, Any]) -> None:
        self.events.append(event)


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def client(watch: Watch) -> Client:
    return Client("fake:known", api_key="k", registry=registry(Counting(CAPABLE), [watch]))


def _talk() -> list[Message]:
    answer = assistant("two")
    told = attrs.evolve(answer.metadata, usage=Usage(input_tokens=300, cached_input_tokens=200))
    return [user("one"), attrs.evolve(answer, metadata=told), user("three")]


def test_a_conversation_that_grows_is_nobodys_news(
    client: Client, watch: Watch, caplog: pytest.LogCaptureFixture
) -> None:
    talk = _talk()
    for end in (1, 3):
        client.build_request(talk[:end], tools=[TOOL])
    client.build_request([*talk, assistant("four"), user("five")], tools=[TOOL])
    client.build_request([attrs.evolve(message) for message in talk], tools=[TOOL])  # shorter: what is left was sent so
    client.build_request("another talk")

    assert watch.events == []
    assert "changed prefix" not in caplog.text


def test_an_edit_in_the_callers_own_list_is_seen(client: Client, watch: Watch) -> None:
    talk = _talk()
    client.build_request(talk)
    talk[1] = attrs.evolve(talk[1], content="2")
    client.build_request(talk)

    assert [event["message"] for event in watch.events] == [1]


def test_another_last_question_costs_nothing_that_was_cached(client: Client, watch: Watch) -> None:
    talk = _talk()
    client.build_request(talk)
    client.build_request([*talk[:2], user("3")])

    assert watch.events == []


def test_an_edit_is_told_of_with_its_place_and_its_price(
    client: Client, watch: Watch, caplog: pytest.LogCaptureFixture
) -> None:
    talk = _talk()
    client.build_request(talk)
    edited = [talk[0], attrs.evolve(talk[1], content="2"), talk[2], assistant("four"), user("five")]
    with caplog.at_level(logging.WARNING, "interlingua"):
        client.build_request(edited)

    # 200 were cached, and the 100 of the first message still are: 100 tokens at 10 instead of 1 USD a million
    event = {"type": "prefix.changed", "session_id": "default", "provider": "fake", "model": "known", "message": 1,
             "tokens": 100, "cost_usd": "0.000900", "cost_note": None}  # fmt: skip
    assert watch.events == [event]
    (record,) = [record for record in caplog.records if hasattr(record, "changed_prefix")]
    assert record.levelno == logging.WARNING
    assert "from message=1 lost_tokens=100" in record.getMessage()


@pytest.mark.parametrize(
    ("model", "price"), [("known", "200 tokens, 0.001800 USD more"), ("other", "200 tokens, no price")]
)
def test_a_change_of_tools_that_is_sent_as_a_whole_has_its_price(client: Client, model: str, price: str) -> None:
    talk = [*_talk()[:2], user("three"), change(add=[TOOL]), user("four")]
    client.build_request(talk[:3], model=model)
    first = client.build_request(talk, model=model)
    later = client.build_request([*talk, assistant("five"), user("six")], model=model)

    (row,) = [row for row in first.losses if row.block_type == "change"]
    assert row.reason.endswith(f"what was cached of the conversation is read again ({price})")
    (row,) = [row for row in later.losses if row.block_type == "change"]
    assert row.reason.endswith("is read again")  # it was, in the request before

    edited = client.build_request([talk[0], attrs.evolve(talk[1], content="2"), *talk[2:]], model=model)
    (row,) = [row for row in edited.losses if row.block_type == "change"]
    assert row.reason.endswith("is read again")  # the edit costs that, not the change


def test_other_tools_are_another_prefix_from_its_beginning(client: Client, watch: Watch) -> None:
    talk = _talk()
    client.build_request(talk, tools=[TOOL])
    client.build_request([*talk, assistant("four"), user("five")], tools=[attrs.evolve(TOOL, description="Look well.")])

    assert [(event["message"], event["tokens"]) for event in watch.events] == [(0, 200)]


def test_a_swap_and_another_session_are_no_edits(client: Client, watch: Watch) -> None:
    talk = _talk()
    client.build_request(talk)
    client.build_request([user("1"), *talk[1:]], model="fake:other")
    client.build_request([attrs.evolve(message, session_id="else") for message in [user("1"), *talk[1:]]])

    assert watch.events == []


def test_without_a_price_or_an_estimate_the_reason_is_told(watch: Watch) -> None:
    client = Client("fake:known", api_key="k", registry=registry(Fake(CAPABLE), [watch]))
    talk = _talk()
    client.build_request(talk)
    client.build_request([talk[0], assistant("2"), talk[2]])

    (event,) = watch.events
    assert (event["cost_usd"], event["tokens"]) == (None, None)
    assert event["cost_note"] == "this provider estimates no tokens"
