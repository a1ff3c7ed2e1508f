"""The prefix law (DESIGN 8) and the sheet's rules, over generated conversations with two origins in them."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import attrs
import pytest
from hypothesis import HealthCheck, given, settings

from interlingua.messages import Message, Origin
from tests.plugins.mistral.checker import broken_rules, plain_elements
from tests.plugins.mistral.wire import API, MODEL, READ, asked
from tests.support.conversations import histories, request_points

OWN = Origin("mistral", API, MODEL)
OTHER = Origin("elsewhere", "chat", "m-1")
relaxed = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(autouse=True, scope="module")
def _quiet_ledger() -> Iterator[None]:
    logger = logging.getLogger("interlingua")
    before = logger.level
    logger.setLevel(logging.ERROR)
    yield
    logger.setLevel(before)


@relaxed
@given(histories(OWN, OTHER))
def test_each_turns_elements_begin_with_the_turn_befores(history: list[Message]) -> None:
    earlier: list[str] = []
    for point in request_points(history):
        now = plain_elements(asked(point, [READ]).body)
        assert now[: len(earlier)] == earlier
        earlier = now


@relaxed
@given(histories(OWN, OTHER))
def test_every_request_keeps_the_wires_rules(history: list[Message]) -> None:
    for tools in ([], [READ]):
        assert broken_rules(asked(history, tools).body) == []


@relaxed
@given(histories(OWN, OTHER))
def test_a_request_is_a_pure_function_of_its_arguments(history: list[Message]) -> None:
    fresh = [attrs.evolve(message) for message in history]  # no memo comes along

    assert asked(history, [READ]).body == asked(history, [READ]).body == asked(fresh, [READ]).body
