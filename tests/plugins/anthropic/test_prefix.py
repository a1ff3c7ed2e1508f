"""The prefix law (DESIGN 8) and the sheet's rules, over generated conversations with two origins in them."""

from __future__ import annotations

import attrs
import pytest

from interlingua.blocks import TextBlock
from interlingua.messages import Message, Role
from tests.plugins.anthropic.asking import ADAPTER, NEW, OLD, asked
from tests.plugins.anthropic.checker import broken_rules, plain_elements
from tests.support.adapter import READ
from tests.support.request_laws import check_prefix, check_pure, over

OLD_ORIGIN, NEW_ORIGIN = ADAPTER.origin(OLD), ADAPTER.origin(NEW)
pytestmark = pytest.mark.usefixtures("quiet")


def _grows(history: list[Message], model: str) -> None:
    check_prefix(history, lambda point: plain_elements(asked(point, [READ], model=model).body))


@over(OLD_ORIGIN)
def test_each_turns_elements_begin_with_the_turn_befores(history: list[Message]) -> None:
    _grows(history, OLD)


@over(NEW_ORIGIN)
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


@over(NEW_ORIGIN)
def test_every_request_keeps_the_wires_rules(history: list[Message]) -> None:
    for model in (OLD, NEW):
        for tools in ([], [READ]):
            assert broken_rules(asked(history, tools, model=model).body) == []


@over(OLD_ORIGIN)
def test_a_request_is_a_pure_function_of_its_arguments(history: list[Message]) -> None:
    check_pure(history, lambda messages: asked(messages, [READ]).body)
