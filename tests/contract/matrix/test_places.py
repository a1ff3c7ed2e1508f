"""An adapter's losses point into the caller's conversation, whatever projection took out or put in before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import pytest

from interlingua._plugins.registry import Registry
from interlingua.plugins import Loss, build_request
from interlingua.types.blocks import TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from interlingua.types.factories import assistant, system, tool_result, user
from interlingua.types.messages import Message, Role
from interlingua.types.options import RequestOptions
from tests.contract.matrix.acme import CAPABLE, Acme, Body

Find = Callable[[Any], bool]


def _mine(find: Find, *messages: Message) -> list[tuple[str, str | None]]:
    """Return where the rows of an adapter point that loses every block its test asks for."""

    def lose(body: Body, losses: list[Loss], projected: Sequence[Message]) -> None:
        losses += [
            Loss(path=f"messages[{index}].content[{at}].x", block_type=block.type, verdict="rewritten", reason="mine")
            for index, message in enumerate(projected)
            for at, block in enumerate(message.content)
            if find(block)
        ]

    declared = attrs.evolve(CAPABLE, supports_system_messages_in_list=False)
    registry = Registry(providers={"acme": Acme(lose, declared=declared)}, entry_points=[])
    request = build_request(registry.provider("acme"), messages, [], RequestOptions(model="anvil"))
    return [(loss.path, loss.message_id) for loss in request.losses if loss.reason == "mine"]


def _call(canonical: str) -> ToolUseBlock:
    return ToolUseBlock(id=canonical, name="read_file", input={})


def _says(text: str) -> Find:
    return lambda block: isinstance(block, TextBlock) and block.text == text


def test_messages_that_vanished_before_it_are_counted() -> None:
    messages = [user("a"), assistant([TextBlock(text=" ")]), user("b")]

    assert _mine(_says("b"), *messages) == [("messages[2].content[0].x", messages[2].id)]


def test_blocks_that_were_dropped_before_it_are_counted() -> None:
    answer = assistant([ThinkingBlock(text="foreign", signature="s"), TextBlock(text="said")])

    assert _mine(_says("said"), user("a"), answer, user("b")) == [("messages[1].content[1].x", answer.id)]


def test_one_result_of_several_in_a_message_is_named_by_its_own_place() -> None:
    calls = [_call("tu_1"), _call("tu_2")]
    results = [tool_result(one, f"r{number}").content[0] for number, one in enumerate(calls)]
    told = Message(role=Role.TOOL, content=results)

    def second(block: Any) -> bool:
        return isinstance(block, ToolResultBlock) and block.content == (TextBlock(text="r1"),)

    assert _mine(second, user("a"), assistant(calls), told) == [("messages[2].content[1].x", told.id)]


@pytest.mark.parametrize("later", [system("c"), Message(role=Role.SYSTEM, content=[TextBlock(text="c")])])
def test_a_tagged_system_message_is_itself(later: Message) -> None:
    found = _mine(lambda block: getattr(block, "text", "").startswith("<system>"), user("a"), later)

    assert found == [("messages[1].content[0].x", later.id)]


def test_what_projection_put_in_is_told_of_the_message_it_stands_behind() -> None:
    answer = assistant([_call("tu_1")])
    found = _mine(lambda block: isinstance(block, ToolResultBlock), user("a"), answer, user("b"))

    assert found == [("messages[1].x", answer.id)]
