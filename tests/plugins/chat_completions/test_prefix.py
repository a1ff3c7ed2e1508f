"""The prefix law (DESIGN 8) and the sheet's rules for a compatible row, over generated conversations."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings

from interlingua.messages import Message, Origin
from interlingua.options import AdapterOptions
from tests.plugins.chat_completions.checker import broken_rules, elements
from tests.plugins.chat_completions.support import provider
from tests.support.conversations import histories, request_points
from tests.support.quiet import quiet_ledger

OTHER = Origin("anthropic", "messages", "claude-opus-4-6")
relaxed = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
rows = pytest.mark.parametrize("key", ["llamacpp", "deepseek"])  # one system message; reasoning goes back


@pytest.fixture(autouse=True, scope="module")
def _quiet() -> Iterator[None]:
    with quiet_ledger():
        yield


def asked(messages: list[Message], key: str) -> bytes:
    return provider(key).to_wire(messages, [], AdapterOptions(model="m")).body


@rows
def test_each_turns_elements_begin_with_the_turn_befores(key: str) -> None:
    @relaxed
    @given(histories(Origin(key, "chat", "m"), OTHER))
    def law(history: list[Message]) -> None:
        earlier: list[bytes] = []
        for point in request_points(history):
            now = elements(asked(point, key))
            assert now[: len(earlier)] == earlier
            earlier = now

    law()


@rows
def test_every_request_keeps_the_wires_rules(key: str) -> None:
    @relaxed
    @given(histories(Origin(key, "chat", "m"), OTHER))
    def law(history: list[Message]) -> None:
        for point in request_points(history):
            assert broken_rules(asked(point, key), one_system=key == "llamacpp") == []

    law()
