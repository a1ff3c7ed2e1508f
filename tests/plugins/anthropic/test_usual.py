"""The short way writes what the long way writes."""

from __future__ import annotations

import attrs
from hypothesis import given, settings

from interlingua.types.messages import Message, Origin
from interlingua.types.plain import plainness
from interlingua_anthropic.elements import to_wire_elements
from interlingua_anthropic.turns import Spent, to_wire_turns
from interlingua_anthropic.usual import usual_elements
from tests.support.conversations import histories

HERE = Origin("anthropic", "messages", "claude-haiku-4-5")
ELSEWHERE = Origin("openai", "chat", "gpt-4.1")


@settings(max_examples=150, deadline=None)
@given(history=histories(HERE, ELSEWHERE))
def test_the_same_elements_without_a_loss_or_a_mark(history: list[Message]) -> None:
    for message in history:
        usual = usual_elements(message)
        if usual is not None:
            assert plainness(message)
            elements = to_wire_elements(attrs.evolve(message))
            assert (usual, (), (), False) == (elements.joined, elements.marks, elements.rows, elements.loose_end)


@settings(max_examples=100, deadline=None)
@given(history=histories(HERE, ELSEWHERE))
def test_the_same_body_however_it_is_put_together(history: list[Message]) -> None:
    """At once; message by message; and of elements that were written before."""
    plain = [message for message in history if usual_elements(attrs.evolve(message)) is not None]
    if plain:
        once = b"".join(to_wire_turns([attrs.evolve(message) for message in plain], Spent()).messages)  # type: ignore[arg-type]
        grown = [attrs.evolve(message) for message in plain]
        steps = [b"".join(to_wire_turns(grown[:end], Spent()).messages) for end in range(1, len(grown) + 1)]  # type: ignore[arg-type]
        for message in plain:
            usual_elements(message)
        ready = b"".join(to_wire_turns(plain, Spent()).messages)  # type: ignore[arg-type]

        assert once == steps[-1] == ready
