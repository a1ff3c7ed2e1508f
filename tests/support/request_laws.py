"""The laws of requests over generated conversations: a prefix only grows, a request is a pure function."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import attrs
import pytest
from hypothesis import HealthCheck, given, settings

from interlingua.errors import CapabilityError
from interlingua.types.messages import Message, Origin
from tests.support import counts
from tests.support.adapter import READ, Adapter
from tests.support.conversations import histories, request_points

OTHER = Origin("elsewhere", "chat", "m-1")


def over(
    origin: Origin, other: Origin = OTHER, *, examples: int = 100
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that runs a test for conversations in which two origins answer."""
    relaxed = settings(max_examples=counts.examples(examples), deadline=None, suppress_health_check=list(HealthCheck))
    return lambda test: relaxed(given(histories(origin, other))(test))


def is_nothing_to_send(write: Callable[[list[Message]], Any], history: list[Message]) -> bool:
    """Return True where nothing of a conversation can be sent, or it ends where this service answers nothing."""
    try:
        write(history)
    except CapabilityError as error:
        if error.path != "messages":
            raise
        return True
    return False


def check_prefix(history: list[Message], elements: Callable[[list[Message]], Sequence[Any]]) -> None:
    """Fail unless the elements of each turn's request begin with all of the turn's before.

    Args:
        history: the conversation.
        elements: makes the request for a beginning of it and takes its content apart.
    """
    earlier: list[Any] = []
    for point in request_points(history):
        if is_nothing_to_send(elements, point):
            continue
        now = list(elements(point))
        assert now[: len(earlier)] == earlier, f"turn of {len(point)} messages"
        earlier = now


def check_pure(history: list[Message], body: Callable[[list[Message]], Any]) -> None:
    """Fail unless the request of a conversation that grew is the one of equal messages sent for the first time."""
    if is_nothing_to_send(body, history):
        return
    fresh = [attrs.evolve(message) for message in history]
    for point in request_points(history)[-3:-1]:
        is_nothing_to_send(body, point)
    first = body(history)
    assert first == body(history), "asked again"
    assert first == body(fresh), "equal messages, of which nothing was remembered"


@pytest.mark.usefixtures("quiet")
class RequestLaws(ABC):
    """The laws as tests; a class that inherits them is one adapter with one model."""

    adapter: ClassVar[Adapter]
    examples: ClassVar[int] = 100

    @staticmethod
    @abstractmethod
    def elements(raw: bytes) -> Sequence[Any]:
        """Take a body's content apart, without cache markers."""

    @staticmethod
    @abstractmethod
    def broken_rules(raw: bytes) -> list[str]:
        """Return every rule of the wire that a body breaks."""

    def test_each_turns_elements_begin_with_the_turn_befores(self) -> None:
        @over(self.adapter.origin(), examples=self.examples)
        def law(history: list[Message]) -> None:
            check_prefix(history, lambda point: self.elements(self.adapter.asked(point, [READ]).body))

        law()

    def test_every_request_keeps_the_wires_rules(self) -> None:
        @over(self.adapter.origin(), examples=self.examples)
        def law(history: list[Message]) -> None:
            for point in request_points(history):
                if not is_nothing_to_send(self.adapter.asked, point):
                    assert self.broken_rules(self.adapter.asked(point, [READ]).body) == []
            if not is_nothing_to_send(self.adapter.asked, history):
                assert self.broken_rules(self.adapter.asked(history).body) == []

        law()

    def test_a_request_is_a_pure_function_of_its_arguments(self) -> None:
        @over(self.adapter.origin(), examples=self.examples)
        def law(history: list[Message]) -> None:
            check_pure(history, lambda messages: self.adapter.asked(messages, [READ]).body)

        law()
