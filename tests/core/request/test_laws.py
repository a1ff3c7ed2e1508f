"""Laws that hold for every history: sendable order, injective ids, stable prefixes, and memory that changes nothing."""

from __future__ import annotations

import re

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlingua._json import thaw
from interlingua._plugins.provider import ProjectionTarget
from interlingua._request.conversation import ConversationCache
from interlingua._request.project import project_conversation
from interlingua.plugins import encode_each
from interlingua.types.factories import user
from interlingua.types.messages import ANSWER_WAS_DROPPED, Message, MessageMetadata, Role
from tests.core.request import scene
from tests.support.counts import examples

TARGETS = [scene.target(), scene.target(scene.NARROW), scene.target(attrs.evolve(scene.ABLE, supports_tools=False))]


def _shown(messages: list[Message]) -> list[object]:
    """What goes on a wire; provider_raw too, which equality ignores."""
    return [(each.role, each.content, thaw(each.metadata.provider_raw), _unmarked(each.metadata)) for each in messages]


def _unmarked(metadata: MessageMetadata) -> MessageMetadata:
    """Metadata without the mark that a model was asked there: the message that ends a request gets it a turn later."""
    extra = {name: value for name, value in metadata.extra.items() if name != ANSWER_WAS_DROPPED}
    return attrs.evolve(metadata, extra=extra)


def _fresh(messages: list[Message], target: ProjectionTarget) -> tuple[list[Message], object]:
    copies = [attrs.evolve(message) for message in messages]  # new objects: nothing is known of them
    return project_conversation(copies, target)


CACHE = ConversationCache()  # one for all examples, as a client has one for all conversations


def _remembered(messages: list[Message], target: ProjectionTarget) -> tuple[list[Message], object]:
    """Project as a request does: what is known of these messages is used, and what is new is kept."""
    with CACHE.claim(messages) as conversation:
        conversation.check()
        return conversation.project(target, messages).result()


@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=examples(150), deadline=None)
@given(history=scene.histories)
def test_every_call_is_answered_right_after_it_in_order(target: ProjectionTarget, history: list[Message]) -> None:
    """Cases 07, 08, 09."""
    projected, _ = project_conversation(history, target)

    waiting: list[str] = []
    for message in projected:
        if waiting:
            assert message.role is Role.TOOL
            assert [block.tool_use_id for block in message.tool_results] == [waiting.pop(0)]
        else:
            assert message.role is not Role.TOOL
        waiting += [call.id for call in message.tool_calls]
    assert not waiting


@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=examples(150), deadline=None)
@given(history=scene.histories)
def test_ids_are_injective_and_fit(target: ProjectionTarget, history: list[Message]) -> None:
    """Case 10."""
    projected, _ = project_conversation(history, target)
    ids = [call.id for message in projected for call in message.tool_calls]

    assert len(set(ids)) == len(ids)
    for each in ids:
        assert re.fullmatch(target.capabilities.tool_id_pattern, each)
        assert len(each) <= target.capabilities.tool_id_max_length


@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=examples(150), deadline=None)
@given(history=scene.histories)
def test_nothing_goes_out_that_the_target_cannot_carry(target: ProjectionTarget, history: list[Message]) -> None:
    """Cases 01, 12, 21."""
    projected, _ = project_conversation(history, target)
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
@settings(max_examples=examples(150), deadline=None)
@given(history=scene.histories, then=scene.histories)
def test_a_turn_is_a_prefix_of_the_next(target: ProjectionTarget, history: list[Message], then: list[Message]) -> None:
    """At message level: a request ends where the model is to speak, so the history ends closed."""
    history = [*history, user("go on")]
    now, losses_now = _fresh(history, target)
    later, losses_later = _fresh([*history, *then], target)

    assert _shown(later[: len(now)]) == _shown(now)
    assert losses_later[: len(losses_now)] == losses_now  # type: ignore[index, arg-type]


@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=examples(100), deadline=None)
@given(history=scene.histories, data=st.data())
def test_continuing_equals_walking_afresh(
    target: ProjectionTarget, history: list[Message], data: st.DataObject
) -> None:
    at = 0
    while at < len(history):
        at = data.draw(st.integers(at + 1, len(history)))
        continued = _remembered(history[:at], target)
        fresh = _fresh(history[:at], target)

        assert _shown(continued[0]) == _shown(fresh[0])
        assert continued[1] == fresh[1]


@settings(max_examples=examples(150), deadline=None)
@given(history=scene.histories, other=scene.histories, data=st.data())
def test_edits_forks_and_targets_give_what_a_fresh_conversation_gives(
    history: list[Message], other: list[Message], data: st.DataObject
) -> None:
    """Whatever was sent before, in whichever order, a request says what it would say without memory, byte for byte."""

    def encode(message: Message) -> object:
        return (message.role, message.content, thaw(message.metadata.provider_raw), message.metadata)

    sent = list(history)
    for _ in range(data.draw(st.integers(2, 6))):
        step = data.draw(st.sampled_from(["grow", "edit", "fork", "cut", "again"]))
        at = data.draw(st.integers(0, max(len(sent) - 1, 0)))
        if step == "grow":
            sent = [*sent, *other[: at + 1]]
        elif step == "edit" and sent:
            sent = [*sent[:at], user("edited"), *sent[at + 1 :]]
        elif step == "fork":
            sent = [*history[:at], user("instead")]
        elif step == "cut":
            sent = sent[: at + 1]
        if not sent:
            continue
        target = data.draw(st.sampled_from(TARGETS))
        remembered, losses = _remembered(sent, target)
        fresh, fresh_losses = _fresh(sent, target)

        assert _shown(remembered) == _shown(fresh)
        assert losses == fresh_losses
        written = encode_each(remembered, "law", encode)
        assert written == [encode(message) for message in remembered]


@settings(max_examples=examples(100), deadline=None)
@given(history=scene.histories)
def test_targets_do_not_see_each_others_memory(history: list[Message]) -> None:
    """A -> B -> A gives A back its own."""
    before = [_shown(_remembered(history, target)[0]) for target in TARGETS]
    after = [_shown(_remembered(history, target)[0]) for target in TARGETS]

    assert before == after == [_shown(_fresh(history, target)[0]) for target in TARGETS]
    assert [_shown(_remembered(history, TARGETS[0])[0])] == before[:1]


@settings(max_examples=examples(100), deadline=None)
@given(history=scene.histories)
def test_every_drop_is_in_the_ledger(history: list[Message]) -> None:
    """A lossy projection is never silent."""
    target = TARGETS[0]
    projected, losses = project_conversation(history, target)
    paths = {(loss.path, loss.block_type) for loss in losses}
    kept = {id(block) for message in projected for block in message.content}
    for index, message in enumerate(history):
        for place, block in enumerate(message.content):
            if id(block) not in kept and block.type in ("thinking", "unknown", "audio", "opaque"):
                assert (f"messages[{index}].content[{place}]", block.type) in paths
