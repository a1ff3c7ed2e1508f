"""The prefix law (DESIGN 8) and the sheet's rules, over generated conversations with two origins in them."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import attrs
import pytest
from hypothesis import HealthCheck, given, settings

from interlingua.blocks import TextBlock
from interlingua.messages import Message, Origin, Role
from tests.plugins.anthropic.asking import NEW, OLD, READ, asked
from tests.plugins.anthropic.checker import broken_rules, plain_elements
from tests.support.conversations import histories, request_points

OTHER = Origin("elsewhere", "chat", "m-1")
relaxed = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(autouse=True, scope="module")
def _quiet_ledger() -> Iterator[None]:
    logger = logging.getLogger("interlingua")
    before = logger.level
    logger.setLevel(logging.ERROR)
    yield
    logger.setLevel(before)


def _grows(history: list[Message], model: str) -> None:
    earlier: list[str] = []
    for point in request_points(history):
        now = plain_elements(asked(point, [READ], model=model).body)
        assert now[: len(earlier)] == earlier
        earlier = now


@relaxed
@given(histories(Origin("anthropic", "messages", OLD), OTHER))
def test_each_turns_elements_begin_with_the_turn_befores(history: list[Message]) -> None:
    _grows(history, OLD)


@relaxed
@given(histories(Origin("anthropic", "messages", NEW), OTHER))
def test_also_where_system_messages_stand_in_the_list(history: list[Message]) -> None:
    """Given that every answer says something.

    One that says nothing is not sent back; a system message before it then stands before a user message, where this
    wire takes none (sheet §2), and has to become user text: the one case where the prefix changes.
    """
    _grows([_said(message) for message in history], NEW)


def _said(message: Message) -> Message:
    if message.role is not Role.ASSISTANT:
        return message
    return attrs.evolve(message, content=(*message.content, TextBlock(text="said")))


@relaxed
@given(histories(Origin("anthropic", "messages", NEW), OTHER))
def test_every_request_keeps_the_wires_rules(history: list[Message]) -> None:
    for model in (OLD, NEW):
        for tools in ([], [READ]):
            assert broken_rules(asked(history, tools, model=model).body) == []


@relaxed
@given(histories(Origin("anthropic", "messages", OLD), OTHER))
def test_a_request_is_a_pure_function_of_its_arguments(history: list[Message]) -> None:
    fresh = [attrs.evolve(message) for message in history]  # no memo comes along

    assert asked(history, [READ]).body == asked(history, [READ]).body == asked(fresh, [READ]).body
