"""State that only an answer's origin can use survives being written in another API and sent back."""

from __future__ import annotations

import json
from typing import Any

from interlingua.types import (
    BlockEnd,
    Message,
    OpaqueBlock,
    Origin,
    Provenance,
    RawUpdate,
    RedactedThinkingBlock,
    TextBlock,
    TextDelta,
    ThinkingBlock,
    ToolUseBlock,
    ToolUseEnd,
    ToolUseInputDelta,
    ToolUseStart,
)
from interlingua.types.messages import MessageMetadata
from interlingua_serving import AnswerState, restore_answer

ACME = Origin("acme", "talk", "acme-1")
ECHOED = Message(
    role="assistant",
    content=(),
    metadata=MessageMetadata(provider="fake", api="fake", model="fake:m", provenance=Provenance.IMPORTED),
)
BLOCKS = (
    RedactedThinkingBlock(data="ZW5j"),
    ThinkingBlock(text="One.", signature="s1"),
    TextBlock(text="Let me see."),
    ThinkingBlock(text="Two.", signature="s2"),
    ToolUseBlock(id="tu_1", name="Read", input={"a": 1}, provider_id="call_9", raw_input='{"a": 1}', signature="s3"),
    OpaqueBlock(provider="acme", kind="search", data={"type": "search", "n": 1}),
    TextBlock(text="Done.", signature="s4"),
)


def _answer() -> Message:
    raw = {"origin": list(ACME), "replay": {"items": [1]}, "trace": {}}
    metadata = MessageMetadata(provider="acme", api="talk", model="acme:acme-1", provider_raw=raw)
    return Message(role="assistant", content=BLOCKS, metadata=metadata)


def _state(*, strings: bool = False) -> Any:
    gathered = AnswerState(ACME, strings=strings)
    gathered.add_message(_answer(), lambda call: call.id)
    state = gathered.take(whole=True)
    assert gathered.take() is None, "it was taken"
    return json.loads(json.dumps(state, default=dict))


def test_an_answer_whose_texts_were_joined_comes_back_as_it_was() -> None:
    joined = [
        ThinkingBlock(text="One.Two."),
        TextBlock(text="Let me see.Done."),
        ToolUseBlock(id="tu_1", name="Read", input={"a": 1}),
    ]

    restored = restore_answer(ECHOED, [_state(), *joined])

    assert restored.content == BLOCKS
    assert restored.metadata.origin == ACME
    assert restored.metadata.provider_raw == {"origin": list(ACME), "replay": {"items": [1]}, "trace": {}}


def test_an_answer_that_the_caller_changed_keeps_what_still_fits() -> None:
    changed = [TextBlock(text="Other words."), ToolUseBlock(id="tu_1", name="Read", input={"a": 2})]

    restored = restore_answer(ECHOED, [_state(), *changed])

    (call,) = restored.tool_calls
    assert (call.provider_id, call.signature, call.raw_input) == ("call_9", "s3", None)
    assert restored.text == "Other words."
    assert restored.metadata.origin == ACME


def test_states_in_several_places_restore_what_stood_behind_each() -> None:
    gathered = AnswerState(ACME, strings=False)
    items: list[Any] = []
    for index, block in enumerate(BLOCKS):
        gathered.add(index, block, block.id if isinstance(block, ToolUseBlock) else "")
        items.append(gathered.take() or {})
        if not isinstance(block, (RedactedThinkingBlock, OpaqueBlock)):
            bare = {"text": getattr(block, "text", None)}
            items.append(
                ToolUseBlock(id="tu_1", name="Read", input={"a": 1})
                if isinstance(block, ToolUseBlock)
                else type(block)(**bare)
            )

    assert restore_answer(ECHOED, items).content == BLOCKS


def test_of_answers_put_together_the_last_ones_origin_counts() -> None:
    states = []
    for origin, signature in ((Origin("other", "talk", "x"), "s0"), (ACME, "s1")):
        gathered = AnswerState(origin, strings=False)
        gathered.add(0, ThinkingBlock(text="Hm.", signature=signature))
        states.append(gathered.take() or {})
    thought, text = ThinkingBlock(text="Hm."), TextBlock(text="x")

    restored = restore_answer(ECHOED, [states[0], thought, text, states[1], thought, text])

    assert restored.content == (text, ThinkingBlock(text="Hm.", signature="s1"), text)
    assert restored.metadata.origin == ACME


def test_what_came_after_its_block_goes_back_to_it() -> None:
    gathered = AnswerState(ACME, strings=False)
    gathered.note(BlockEnd(index=0, block=ThinkingBlock(text="", signature="late")))
    state = gathered.take()
    assert state is not None

    restored = restore_answer(ECHOED, [ThinkingBlock(text="Hm."), TextBlock(text="x"), state])

    assert [block.signature for block in restored.thinking_blocks] == ["late"]


def test_a_signature_that_came_after_its_text_does_not_move_to_the_next_text() -> None:
    gathered = AnswerState(ACME, strings=False)
    gathered.note(TextDelta(index=0, text="Once"))
    gathered.note(BlockEnd(index=0, block=TextBlock(text="", signature="late")))
    state = gathered.take()
    assert state is not None

    restored = restore_answer(ECHOED, [TextBlock(text="Once"), state, TextBlock(text="upon a time.")])

    assert restored.content == (TextBlock(text="Once", signature="late"), TextBlock(text="upon a time."))


def test_a_streamed_call_is_gathered_as_a_whole_one() -> None:
    gathered = AnswerState(ACME, strings=False)
    call = ToolUseBlock(id="tu_1", name="Read", input={"a": 1}, provider_id="call_9", raw_input='{"a": 1}')
    gathered.note(RawUpdate(replay={"items": [1]}))
    gathered.note(TextDelta(index=0, text="x"))
    gathered.note(ToolUseStart(index=4, id="tu_1", name="Read", provider_id="call_9"), "tu_1")
    gathered.note(ToolUseInputDelta(index=4, partial_json='{"a": '))
    gathered.note(ToolUseInputDelta(index=4, partial_json="1}"))
    gathered.note(ToolUseEnd(index=4))
    state = gathered.take()
    assert state is not None

    restored = restore_answer(
        ECHOED, [state, TextBlock(text="x"), ToolUseBlock(id="tu_1", name="Read", input={"a": 1})]
    )

    assert restored.content == (TextBlock(text="x"), call)


def test_an_answer_without_state_stays_the_callers() -> None:
    gathered = AnswerState(ACME, strings=True)
    gathered.note(TextDelta(index=0, text="x"))
    gathered.note(ToolUseStart(index=1, id="tu_1", name="f", provider_id="tu_1"), "tu_1")

    assert gathered.take() is None
    assert restore_answer(ECHOED, [{}, TextBlock(text="x")]).metadata is ECHOED.metadata
