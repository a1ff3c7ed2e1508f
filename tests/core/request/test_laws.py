"""Laws that hold for every history: sendable order, injective ids, stable prefixes, and memory that changes nothing."""

from __future__ import annotations

import re

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlingua.json import thaw
from interlingua.plugins.provider import Target
from interlingua.request.project import Projector, Walk
from interlingua.types.factories import user
from interlingua.types.messages import Message, Role
from tests.core.request import scene

TARGETS = [scene.target(), scene.target(scene.NARROW), scene.target(attrs.evolve(scene.ABLE, supports_tools=False))]


def _shown(messages: list[Message]) -> list[object]:
    """What an adapter can see; provider_raw too, which equality ignores."""
    return [(each.role, each.content, thaw(each.metadata.provider_raw), each.metadata) for each in messages]


def _fresh(messages: list[Message], target: Target) -> tuple[list[Message], object]:
    copies = [attrs.evolve(message) for message in messages]  # no memo, no remembered walk
    return Projector().project(copies, target)


@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=150, deadline=None)
@given(history=scene.histories)
def test_every_call_is_answered_right_after_it_in_order(target: Target, history: list[Message]) -> None:
    """Cases 07, 08, 09."""
    projected, _ = Projector().project(history, target)

    waiting: list[str] = []
    for message in projected:
        if waiting:
            assert message.role is Role.TOOL
            assert [block.tool_use_id for block in message.tool_results()] == [waiting.pop(0)]
        else:
            assert message.role is not Role.TOOL
        waiting += [call.id for call in message.tool_calls()]
    assert not waiting


@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=150, deadline=None)
@given(history=scene.histories)
def test_ids_are_injective_and_fit(target: Target, history: list[Message]) -> None:
    """Case 10."""
    projected, _ = Projector().project(history, target)
    ids = [call.id for message in projected for call in message.tool_calls()]

    assert len(set(ids)) == len(ids)
    for each in ids:
        assert re.fullmatch(target.capabilities.tool_id_pattern, each)
        assert len(each) <= target.capabilities.tool_id_max_length


@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=150, deadline=None)
@given(history=scene.histories)
def test_nothing_goes_out_that_the_target_cannot_carry(target: Target, history: list[Message]) -> None:
    """Cases 01, 12, 21."""
    projected, _ = Projector().project(history, target)
    for message in projected:
        assert message.content
        for block in message.content:
            assert block.type != "unknown"
            assert block.type != "audio"
            assert block.type != "opaque" or block.provider == "acme"
            if block.type == "text":
                assert block.text.strip() or block.signature is not None
            if block.type in ("thinking", "redacted_thinking"):
                assert target.capabilities.supports_thinking
                assert message.metadata.provider == "acme"


@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=150, deadline=None)
@given(history=scene.histories, then=scene.histories)
def test_a_turn_is_a_prefix_of_the_next(target: Target, history: list[Message], then: list[Message]) -> None:
    """DESIGN 8, at message level: a request ends where the model is to speak, so the history ends closed."""
    history = [*history, user("go on")]
    now, losses_now = _fresh(history, target)
    later, losses_later = _fresh([*history, *then], target)

    assert _shown(later[: len(now)]) == _shown(now)
    assert losses_later[: len(losses_now)] == losses_now  # type: ignore[index, arg-type]


@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=100, deadline=None)
@given(history=scene.histories, data=st.data())
def test_continuing_equals_walking_afresh(target: Target, history: list[Message], data: st.DataObject) -> None:
    projector = Projector()
    at = 0
    while at < len(history):
        at = data.draw(st.integers(at + 1, len(history)))
        continued = projector.project(history[:at], target)
        fresh = _fresh(history[:at], target)

        assert _shown(continued[0]) == _shown(fresh[0])
        assert continued[1] == fresh[1]


@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=200, deadline=None)
@given(history=scene.histories)
def test_the_short_way_is_the_long_way(target: Target, history: list[Message]) -> None:
    short, long = Walk(target), Walk(target)
    short.take(history)
    for message in history:
        long.feed(attrs.evolve(message))

    (taken, losses), (fed, fed_losses) = short.result(), long.result()
    assert _shown(taken) == _shown(fed)
    assert losses == fed_losses


@settings(max_examples=100, deadline=None)
@given(history=scene.histories)
def test_targets_do_not_see_each_others_memory(history: list[Message]) -> None:
    """A -> B -> A gives A back its own (DESIGN 6)."""
    projector = Projector()
    before = [_shown(projector.project(history, target)[0]) for target in TARGETS]
    after = [_shown(projector.project(history, target)[0]) for target in TARGETS]

    assert before == after == [_shown(_fresh(history, target)[0]) for target in TARGETS]
    assert [_shown(projector.project(history, TARGETS[0])[0])] == before[:1]


@settings(max_examples=100, deadline=None)
@given(history=scene.histories)
def test_every_drop_is_in_the_ledger(history: list[Message]) -> None:
    """DESIGN 7: a lossy projection is never silent."""
    target = TARGETS[0]
    projected, losses = Projector().project(history, target)
    paths = {(loss.path, loss.block_type) for loss in losses}
    kept = {id(block) for message in projected for block in message.content}
    for index, message in enumerate(history):
        for place, block in enumerate(message.content):
            if id(block) not in kept and block.type in ("thinking", "unknown", "audio", "opaque"):
                assert (f"messages[{index}].content[{place}]", block.type) in paths
