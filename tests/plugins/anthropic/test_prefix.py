"""The prefix law and the rules of the wire, over generated conversations with two origins in them."""

from __future__ import annotations

import pytest

from interlingua.types.blocks import OpaqueBlock, TextBlock
from interlingua.types.factories import assistant, system, user
from interlingua.types.messages import Message, Role
from tests.plugins.anthropic.asking import ADAPTER, NEW, OLD, asked
from tests.plugins.anthropic.checker import broken_rules, plain_elements
from tests.support.adapter import READ
from tests.support.conversations import request_points
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
    _grows(history, NEW)


SILENT = Message(role=Role.ASSISTANT, content=(TextBlock(text=" "),))  # says nothing, and is not sent back
PAPER = OpaqueBlock(provider="anthropic", kind="document", data={"type": "document"})
UNSENT = Message(role=Role.ASSISTANT, content=(PAPER,))  # nor is this, which is known only when it is written


@pytest.mark.parametrize("vanishing", [[SILENT], [SILENT, SILENT], [UNSENT]], ids=["silent", "twice", "unsent"])
@pytest.mark.parametrize(
    "later",
    [
        [user("n"), assistant("k")],
        [system("and brief"), user("n"), assistant("k")],
        [system("and brief"), assistant("k"), user("n")],
        [assistant("k"), user("n")],
    ],
    ids=["user", "system", "system before an answer", "answer"],
)
@pytest.mark.parametrize("before", [[system("be kind")], [system("be kind"), system("be true")]], ids=["one", "two"])
def test_a_system_message_stays_as_it_was_sent_when_its_answer_said_nothing(
    before: list[Message], vanishing: list[Message], later: list[Message]
) -> None:
    """A system message stands last or before an answer only (WIRE.md, System): where there is none, one says so."""
    history = [user("q"), *before, *vanishing, *later]

    _grows(history, NEW)
    for point in request_points(history):
        assert broken_rules(asked(point, [READ], model=NEW).body) == []
    told = [loss for loss in asked(history, [READ], model=NEW).losses if "for an empty answer" in loss.reason]
    assert len(told) == (0 if later[0].role is Role.ASSISTANT else 1)


@over(NEW_ORIGIN)
def test_every_request_keeps_the_wires_rules(history: list[Message]) -> None:
    for model in (OLD, NEW):
        for tools in ([], [READ]):
            assert broken_rules(asked(history, tools, model=model).body) == []


@over(OLD_ORIGIN)
def test_a_request_is_a_pure_function_of_its_arguments(history: list[Message]) -> None:
    check_pure(history, lambda messages: asked(messages, [READ]).body)
