"""The prefix law (DESIGN 8) and the sheets' rules on both wires, over generated conversations with two origins."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlingua.messages import Message, Origin
from interlingua.options import AdapterOptions
from tests.plugins.anthropic.asking import READ
from tests.plugins.chat_completions import checker as chat_checker
from tests.plugins.chat_completions.checker import elements
from tests.plugins.openai import checker as responses_checker
from tests.plugins.openai.wire import PROVIDER
from tests.support.conversations import histories, request_points
from tests.support.quiet import quiet_ledger

MODELS = ("gpt-5.6-sol", "gpt-4.1")  # one that reasons and takes cache markers, one that does neither
LISTS = {"responses": "input", "chat": "messages"}
RULES: dict[str, Callable[[bytes], list[str]]] = {
    "responses": responses_checker.broken_rules,
    "chat": chat_checker.broken_rules,
}
OTHER = Origin("anthropic", "messages", "claude-opus-4-6")
relaxed = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
apis = pytest.mark.parametrize("api", LISTS)


@pytest.fixture(autouse=True, scope="module")
def _quiet() -> Iterator[None]:
    with quiet_ledger():
        yield


def asked(messages: list[Message], api: str, model: str) -> bytes:
    return PROVIDER.to_wire(messages, [READ], AdapterOptions(model=model, api=api)).body


def talks(api: str) -> st.SearchStrategy[list[Message]]:
    return histories(Origin("openai", api, MODELS[0]), OTHER)


@apis
@pytest.mark.parametrize("model", MODELS)
def test_each_turns_elements_begin_with_the_turn_befores(api: str, model: str) -> None:
    @relaxed
    @given(talks(api))
    def law(history: list[Message]) -> None:
        earlier: list[bytes] = []
        instructions: Any = None
        for point in request_points(history):
            raw = asked(point, api, model)
            now, said = elements(raw, LISTS[api]), json.loads(raw).get("instructions")
            assert now[: len(earlier)] == earlier
            if earlier:  # a request without any item is refused: nothing was said by it
                assert said == instructions
            earlier, instructions = now, said

    law()


@apis
def test_every_request_keeps_the_wires_rules(api: str) -> None:
    @relaxed
    @given(talks(api))
    def law(history: list[Message]) -> None:
        for model in MODELS:
            for point in request_points(history):
                assert RULES[api](asked(point, api, model)) == []

    law()


@apis
def test_a_request_is_a_pure_function_of_its_arguments(api: str) -> None:
    @relaxed
    @given(talks(api))
    def law(history: list[Message]) -> None:
        fresh = [attrs.evolve(message) for message in history]  # no memo comes along

        assert asked(history, api, MODELS[0]) == asked(history, api, MODELS[0]) == asked(fresh, api, MODELS[0])

    law()
