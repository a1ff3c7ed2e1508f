"""Shapes that compatible servers and proxies of this wire send: what they say is kept, what failed is a typed error.

Expected values: what was put in; for errors the class of the error's own type (WIRE.md, Errors).
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlingua.errors import OverloadedError, ProviderError, RateLimitError, ServerError
from interlingua.plugins import WireResponse
from interlingua.types.blocks import TextBlock, ThinkingBlock
from interlingua.types.messages import StopReason
from tests.plugins.anthropic.asking import (
    ADAPTER,
    ANTHROPIC,
    START,
    STOP,
    block,
    context,
    ended,
    read,
    said,
    sse,
    streamed,
    whole,
)

DETAIL = {"type": "overloaded_error", "message": "Overloaded"}


def delta(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": 0, "delta": {"type": kind, **fields}}


@pytest.mark.parametrize(
    ("content", "texts"), [(None, [""]), ("hi", ["hi"]), (["hi"], ["hi"]), ([{"type": "text"}], [""])]
)
def test_content_that_is_no_list_of_blocks(content: Any, texts: list[str]) -> None:
    assert read({**whole([]), "content": content}).content == tuple(TextBlock(text=text) for text in texts)


def test_members_that_are_null_are_nothing() -> None:
    made = read(whole([
        {"type": "thinking", "thinking": None, "signature": "s"}, {"type": "text", "text": None, "citations": None},
        {"type": "tool_use", "id": None, "name": "f", "input": {"a": 1}},
    ]))  # fmt: skip

    (call,) = made.tool_calls
    assert made.content[:2] == (ThinkingBlock(text="", signature="s"), TextBlock(text=""))
    assert (call.name, call.input, call.provider_id) == ("f", {"a": 1}, None)


def test_a_call_without_an_id_goes_back_with_one() -> None:
    made = streamed(START, *block(0, {"type": "tool_use", "name": "f", "input": {}}), ended("tool_use"), STOP)
    told = next(turn for turn in ADAPTER.body([made])["messages"] if turn["role"] == "assistant")
    (call,) = told["content"]

    assert call["name"] == "f"
    assert call["id"]


def test_deltas_that_are_null_say_nothing() -> None:
    assert streamed(
        START, *block(0, {"type": "text"}, {"type": "text_delta", "text": None}, {"type": "text_delta", "text": "a"}),
        ended(), STOP,
    ).content == (TextBlock(text="a"),)  # fmt: skip


@pytest.mark.parametrize(("kind", "made"), [("text", TextBlock(text="ab")), ("thinking", ThinkingBlock(text="ab"))])
def test_a_block_whose_start_was_left_out_is_read(kind: str, made: Any) -> None:
    pieces = [delta(f"{kind}_delta", **{kind: text}) for text in "ab"]
    assert streamed(START, *pieces, ended(), STOP).content == (made,)


def test_blocks_that_all_have_one_index_stay_apart() -> None:
    call = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    message = streamed(
        START, *said("a"), *block(0, call, {"type": "input_json_delta", "partial_json": '{"a":1}'}),
        *block(1, {"type": "text", "text": "b"}), ended("tool_use"), STOP,
    )  # fmt: skip

    assert message.text == "ab"
    assert [found.input for found in message.tool_calls] == [{"a": 1}]
    assert [found.type for found in message.content] == ["text", "tool_use", "text"]


@pytest.mark.parametrize("event", [{"type": "message_delta", "usage": {"output_tokens": 5}}, {"type": "message_start"}])
def test_events_without_their_object_are_passed_over(event: dict[str, Any]) -> None:
    assert streamed(START, *said("a"), ended(), event, STOP).text == "a"


def test_an_end_mark_of_another_wire_ends_a_message_that_has_its_stop_reason() -> None:
    message = ADAPTER.streamed(sse(START, *said("a"), ended("max_tokens")) + b"data: [DONE]\n\n")
    again = ADAPTER.streamed(sse(START, *said("a"), ended("max_tokens"), STOP) + b"data: [DONE]\n\n")

    assert message == again
    assert message.metadata.stop_reason is StopReason.MAX_TOKENS


ERRORS: list[tuple[Any, type[ProviderError]]] = [
    ({"error": DETAIL}, OverloadedError),
    ([{"type": "error", "error": DETAIL}], OverloadedError),
    ({"error": "broken"}, ServerError),
    ({"detail": "broken"}, ServerError),
]


@pytest.mark.parametrize(("body", "kind"), ERRORS)
def test_an_error_in_a_200_without_its_type(body: Any, kind: type[ProviderError]) -> None:
    with pytest.raises(kind, match=r"Overloaded|broken"):
        read(body)


@pytest.mark.parametrize(
    ("framed", "kind"),
    [
        (b'data: {"error": %s}\n\n' % json.dumps(DETAIL).encode(), OverloadedError),
        (b'event: error\ndata: {"message": "broken"}\n\n', ServerError),
        (b"event: error\ndata: broken\n\n", ServerError),
    ],
)
def test_an_error_event_whatever_its_body(framed: bytes, kind: type[ProviderError]) -> None:
    """The official SDK raises for every event named `error` (its `_streaming.py`)."""
    with pytest.raises(kind, match=r"Overloaded|broken") as caught:
        ADAPTER.streamed(sse(START, *said("half")[:2]) + framed)

    assert caught.value.partial is not None
    assert caught.value.partial.text == "half"


def test_an_error_in_a_list_as_the_cloud_host_sends_it() -> None:
    raw = b'[{"error": {"code": 429, "message": "Quota exceeded", "status": "RESOURCE_EXHAUSTED"}}]'
    error = ANTHROPIC.from_wire_error(WireResponse(status=429, body=raw), context())

    assert type(error) is RateLimitError
    assert error.message == "Quota exceeded"


@pytest.mark.parametrize("index", [-1, 0])
def test_text_at_an_index_that_comes_too_late_stands_behind_what_was_said(index: int) -> None:
    late = {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": "late"}}
    made = streamed(START, *block(1, {"type": "text"}, {"type": "text_delta", "text": "first, "}), late, ended(), STOP)
    assert made.text == "first, late"
