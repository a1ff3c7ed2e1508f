"""The prefix law (DESIGN 8) and the format's rules, over generated conversations with two origins in them."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import pytest
from hypothesis import HealthCheck, given, settings

from interlingua.messages import Message, Origin
from tests.plugins.chat_completions.checker import broken_rules, elements
from tests.plugins.openrouter.asking import READ, asked
from tests.support.conversations import histories, request_points
from tests.support.quiet import quiet_ledger

OTHER = Origin("elsewhere", "messages", "m-1")
relaxed = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
# the two upstreams' id patterns differ
both = pytest.mark.parametrize("model", ["anthropic/claude-opus-5.5", "mistralai/mistral-large-2512"])


@pytest.fixture(autouse=True, scope="module")
def _quiet() -> Iterator[None]:
    with quiet_ledger():
        yield


@both
def test_each_turns_elements_begin_with_the_turn_befores(model: str) -> None:
    @relaxed
    @given(histories(Origin("openrouter", "chat", model), OTHER))
    def law(history: list[Message]) -> None:
        earlier: list[bytes] = []
        for point in request_points(history):
            now = elements(asked(point, [READ], model=model).body)
            assert now[: len(earlier)] == earlier
            earlier = now

    law()


@both
def test_every_request_keeps_the_formats_rules(model: str) -> None:
    @relaxed
    @given(histories(Origin("openrouter", "chat", model), OTHER))
    def law(history: list[Message]) -> None:
        for tools in ([], [READ]):
            assert broken_rules(asked(history, tools, model=model).body) == []

    law()


@both
def test_a_request_is_a_pure_function_of_its_arguments(model: str) -> None:
    @relaxed
    @given(histories(Origin("openrouter", "chat", model), OTHER))
    def law(history: list[Message]) -> None:
        fresh = [attrs.evolve(message) for message in history]  # no memo comes along
        assert asked(history, model=model).body == asked(history, model=model).body == asked(fresh, model=model).body

    law()
