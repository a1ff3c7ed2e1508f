"""The short way writes what the long way writes."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given, settings

from interlingua.json import dumps
from interlingua.types.messages import Message, Origin
from interlingua_chat_completions.dialect import Dialect
from interlingua_chat_completions.to_wire_messages import Profile, to_wire_message
from interlingua_chat_completions.to_wire_usual import usual_body
from tests.support.conversations import histories

HERE = Origin("openai", "chat", "gpt-4.1")
ELSEWHERE = Origin("anthropic", "messages", "claude-haiku-4-5")
DIALECTS = [
    Dialect(),
    Dialect(cache_breakpoints=True),
    Dialect(cache_breakpoints=True, cache_style="cache_control"),
    Dialect(content_chunks=True),
    Dialect(reasoning_echo="reasoning_content", reasoning_missing=""),
    Dialect(reasoning_echo="reasoning_content"),
    Dialect(result_parts=True, error_prefix=""),
]


@pytest.mark.parametrize("dialect", DIALECTS)
@settings(max_examples=60, deadline=None)
@given(history=histories(HERE, ELSEWHERE))
def test_the_same_object_without_a_loss_or_a_hint(dialect: Dialect, history: list[Message]) -> None:
    for message in history:
        body = usual_body(message, dialect)
        if body is not None:
            element = to_wire_message(attrs.evolve(message), Profile("openai", dialect))
            assert ((dumps(body),), (), ()) == (element.wire, element.rows, element.hints)
