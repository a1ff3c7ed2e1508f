"""The look before sending finds exactly what the whole check finds, less the repairable."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from interlingua.invariants import check_conversation, check_sendable
from interlingua.messages import Message, user
from tests.core.codec import values
from tests.core.invariants.test_rules import ALONE, READ, sound
from tests.core.projection import scene


def _expected(messages: list[Message], tools: tuple[object, ...] = ()) -> tuple[object, ...]:
    return tuple(one for one in check_conversation(messages, tools) if not one.repairable)  # type: ignore[arg-type]


@pytest.mark.parametrize("broken", [row[1] for row in ALONE])
def test_each_broken_message(broken: Message) -> None:
    assert check_sendable([user("hi"), broken]) == _expected([user("hi"), broken])


@settings(max_examples=200, deadline=None)
@given(scene.histories)
def test_histories(messages: list[Message]) -> None:
    assert check_sendable(messages) == _expected(messages)


@settings(max_examples=200, deadline=None)
@given(values.messages)
def test_any_message(message: Message) -> None:
    assert check_sendable([message]) == _expected([message])


def test_tools_and_a_sound_conversation() -> None:
    assert check_sendable(sound(), (READ,)) == ()
    assert check_sendable(sound(), (READ, READ)) == _expected(sound(), (READ, READ)) != ()
