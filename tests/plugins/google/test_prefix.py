"""The prefix law (DESIGN 8) and the sheet's rules, over generated conversations with two origins in them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import attrs
import pytest
from hypothesis import HealthCheck, given, settings

from interlingua.blocks import OpaqueBlock
from interlingua.messages import Message, Origin
from tests.plugins.google.checker import broken_rules
from tests.plugins.google.wire import NEW, OLD, READ, asked, body_of, parts_of
from tests.support.conversations import histories, request_points
from tests.support.quiet import quiet_ledger

OTHER = Origin("elsewhere", "chat", "m-1")
relaxed = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(autouse=True, scope="module")
def _quiet() -> Iterator[None]:
    with quiet_ledger():
        yield


def _own_parts(message: Message) -> Message:
    """Let opaque blocks be ones of this wire: the generator's are of another."""
    code = {"executableCode": {"language": "PYTHON", "code": "1"}}
    content = tuple(
        OpaqueBlock(provider=block.provider, kind="executableCode", data=code)
        if isinstance(block, OpaqueBlock)
        else block
        for block in message.content
    )
    return attrs.evolve(message, content=content)


@relaxed
@given(histories(Origin("google", "generate", NEW), OTHER))
def test_each_turns_parts_begin_with_the_turn_befores(history: list[Message]) -> None:
    for model in (OLD, NEW):
        earlier: list[str] = []
        for point in request_points(history):
            now = [json.dumps(part) for part in parts_of(body_of(asked(point, [READ], model=model)))]
            assert now[: len(earlier)] == earlier
            earlier = now


@relaxed
@given(histories(Origin("google", "generate", NEW), Origin("google", "generate", OLD)))
def test_also_between_two_models_of_the_service(history: list[Message]) -> None:
    earlier: list[str] = []
    for point in request_points(history):
        now = [json.dumps(part) for part in parts_of(body_of(asked(point, [READ], model=NEW)))]
        assert now[: len(earlier)] == earlier
        earlier = now


@relaxed
@given(histories(Origin("google", "generate", NEW), OTHER))
def test_every_request_keeps_the_wires_rules(history: list[Message]) -> None:
    owned = [_own_parts(message) for message in history]
    for model in (OLD, NEW):
        for tools in ([], [READ]):
            assert broken_rules(asked(owned, tools, model=model).body, signed=model == NEW) == []


@relaxed
@given(histories(Origin("google", "generate", NEW), OTHER))
def test_a_request_is_a_pure_function_of_its_arguments(history: list[Message]) -> None:
    fresh = [attrs.evolve(message) for message in history]  # no memo comes along
    first = asked(history, [READ], model=NEW)

    assert first.body == asked(history, [READ], model=NEW).body == asked(fresh, [READ], model=NEW).body
    assert first.losses == asked(fresh, [READ], model=NEW).losses
