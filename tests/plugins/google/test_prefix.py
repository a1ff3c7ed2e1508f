"""The prefix law and the rules of the wire, over generated conversations with two origins in them."""

from __future__ import annotations

import json

import attrs
import pytest

from interlingua.types.blocks import OpaqueBlock
from interlingua.types.messages import Message
from tests.plugins.google.checker import broken_rules
from tests.plugins.google.wire import ADAPTER, NEW, OLD, asked, body_of, parts_of
from tests.support.adapter import READ
from tests.support.request_laws import check_prefix, check_pure, over

OLD_ORIGIN, NEW_ORIGIN = ADAPTER.origin(OLD), ADAPTER.origin(NEW)
pytestmark = pytest.mark.usefixtures("quiet")


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


def _grows(history: list[Message], model: str) -> None:
    check_prefix(
        history,
        lambda point: [json.dumps(part) for part in parts_of(body_of(asked(point, [READ], model=model)))],
    )


@over(NEW_ORIGIN)
def test_each_turns_parts_begin_with_the_turn_befores(history: list[Message]) -> None:
    for model in (OLD, NEW):
        _grows(history, model)


@over(NEW_ORIGIN, OLD_ORIGIN)
def test_also_between_two_models_of_the_service(history: list[Message]) -> None:
    _grows(history, NEW)


@over(NEW_ORIGIN)
def test_every_request_keeps_the_wires_rules(history: list[Message]) -> None:
    owned = [_own_parts(message) for message in history]
    for model in (OLD, NEW):
        for tools in ([], [READ]):
            assert broken_rules(asked(owned, tools, model=model).body, signed=model == NEW) == []


@over(NEW_ORIGIN)
def test_a_request_is_a_pure_function_of_its_arguments(history: list[Message]) -> None:
    def request(messages: list[Message]) -> object:
        made = asked(messages, [READ], model=NEW)
        return made.body, made.losses

    check_pure(history, request)
