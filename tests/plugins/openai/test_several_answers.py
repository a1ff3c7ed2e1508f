"""A body that holds several answers in a row (seen in recordings): nothing is lost, the last end counts."""

from __future__ import annotations

import pytest

from interlingua.errors import StreamInterruptedError
from interlingua.types.messages import StopReason
from tests.plugins.openai.wire import call, decoder, events_of, reasoning, response, said, sse, streamed

FIRST = response(reasoning(), call('{"path": "a"}'), id="resp_1")
SECOND = response(call('{"path": "b"}', "call_2", item_id="fc_2"), id="resp_2")
THIRD = response(said("Both are there."), id="resp_3", usage={"input_tokens": 7, "output_tokens": 3})
EVENTS = [*events_of(FIRST), *events_of(SECOND), *events_of(THIRD)]


@pytest.mark.parametrize("size", [None, 7, 1])
def test_items_follow_each_other(size: int | None) -> None:
    message = streamed(EVENTS, size)

    assert [block.type for block in message.content] == ["thinking", "tool_use", "tool_use", "text"]
    assert [block.raw_input for block in message.tool_calls] == ['{"path": "a"}', '{"path": "b"}']
    assert message.text == "Both are there."


def test_the_last_terminal_event_counts() -> None:
    message = streamed(EVENTS)

    assert message.metadata.stop_reason is StopReason.END_TURN
    assert message.metadata.usage is not None
    assert (message.metadata.usage.input_tokens, message.metadata.usage.output_tokens) == (7, 3)


def test_an_earlier_answer_does_not_make_a_cut_one_whole() -> None:
    with pytest.raises(StreamInterruptedError) as caught:
        streamed(EVENTS[:-3])

    assert caught.value.partial.text == "Both are there."


def test_what_follows_a_terminal_event_and_is_no_answer_counts_for_nothing() -> None:
    late = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "late"}

    assert decoder(sse([*events_of(THIRD), late])).message().text == "Both are there."
