"""Responses as servers beside the service itself send them: what they say is kept, what failed is a typed error.

Expected values: the same answer in the usual form, or what was put in.
"""

from __future__ import annotations

from typing import Any

import pytest

from interlingua.errors import ProviderError, RateLimitError, ServerError
from interlingua.types.blocks import TextBlock, ThinkingBlock
from interlingua.types.factories import user
from interlingua.types.messages import StopReason
from tests.plugins.openai.wire import body_of, call, events_of, response, said, streamed, whole

SHORT: list[tuple[Any, dict[str, Any]]] = [
    ("hi", said("hi")),
    ({"role": "assistant", "content": "hi"}, said("hi")),
    ({"type": "message", "role": "assistant", "content": ["hi", None]}, said("hi")),
    ({"role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}, said("hi")),
    (
        {"type": "reasoning", "summary": "hm"},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
    ),
    (
        {"type": "reasoning", "summary": None, "content": ["hm"]},
        {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "hm"}]},
    ),
]


@pytest.mark.parametrize(("short", "full"), SHORT)
def test_an_item_written_shorter_is_that_item(short: Any, full: dict[str, Any]) -> None:
    expected = whole(response(full)).content
    added = {"type": "response.output_item.added", "output_index": 0, "item": short}
    done = {"type": "response.output_item.done", "output_index": 0, "item": short}
    ends = {"type": "response.completed", "response": response()}

    assert whole(response() | {"output": [None, short]}).content == expected
    assert streamed([added, done, ends]).content == expected


def test_a_call_without_a_name_is_still_there() -> None:
    (found,) = whole(response({"type": "function_call", "call_id": "c", "arguments": '{"a":1}'})).tool_calls
    assert (found.name, found.provider_id, found.input) == ("", "c", {"a": 1})


@pytest.mark.parametrize("item", [{"id": "x_1"}, {"id": "x_1", "type": None}])
def test_an_item_without_a_type_does_not_stop_the_next_request(item: dict[str, Any]) -> None:
    answer = whole(response(said("hi"), item))

    texts = [
        part["text"] for sent in body_of([user("a"), answer, user("b")])["input"] for part in sent.get("content", ())
    ]
    assert "hi" in texts


def test_output_null_says_nothing() -> None:
    assert whole(response() | {"output": None}).text == ""


@pytest.mark.parametrize("details", ["max_output_tokens", {"reason": "max_output_tokens"}])
def test_incomplete_details_as_a_word(details: Any) -> None:
    made = whole(response(said("hi"), status="incomplete", incomplete_details=details))
    assert made.metadata.stop_reason is StopReason.MAX_TOKENS


def started(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.added", "output_index": 0, "item": item}


EMPTY_END = {"type": "response.completed", "response": response()}


@pytest.mark.parametrize(
    ("item", "event", "made"),
    [
        (said(""), {"type": "response.output_text.done", "content_index": 0, "text": "hi"}, TextBlock(text="hi")),
        (
            said(""),
            {"type": "response.content_part.done", "content_index": 0, "part": {"type": "output_text", "text": "hi"}},
            TextBlock(text="hi"),
        ),
        (
            {"type": "reasoning", "summary": []},
            {"type": "response.reasoning_summary_text.done", "summary_index": 0, "text": "hi"},
            ThinkingBlock(text="hi"),
        ),
        (
            {"type": "reasoning", "summary": []},
            {"type": "response.reasoning_text.done", "content_index": 0, "text": "hi"},
            ThinkingBlock(text="hi"),
        ),
    ],
)
def test_what_only_a_done_event_says_is_kept(item: dict[str, Any], event: dict[str, Any], made: Any) -> None:
    assert streamed([started({**item, "content": []}), {**event, "output_index": 0}, EMPTY_END]).content == (made,)


@pytest.mark.parametrize("named", [True, False])
def test_arguments_that_only_a_done_event_says_are_kept(*, named: bool) -> None:
    item = call("") if named else {"id": "fc_1", "type": "function_call", "call_id": "call_1"}
    done = {"type": "response.function_call_arguments.done", "output_index": 0, "name": "read_file",
            "arguments": '{"path":"a"}'}  # fmt: skip
    message = streamed([started(item), done, EMPTY_END])

    assert [(one.name, one.provider_id, one.input) for one in message.tool_calls] == [
        ("read_file", "call_1", {"path": "a"})
    ]
    assert message.metadata.stop_reason is StopReason.TOOL_USE


@pytest.mark.parametrize(
    ("ends", "reason"),
    [
        ({"type": "response.done", "response": response(said("hi"))}, StopReason.END_TURN),
        ({"type": "response.cancelled", "response": response(said("hi"), status="cancelled")}, StopReason.OTHER),
        ({"type": "response.completed"}, StopReason.END_TURN),
    ],
)
def test_other_ends_are_ends(ends: dict[str, Any], reason: StopReason) -> None:
    message = streamed([*events_of(response(said("hi")))[:-1], ends])

    assert message.text == "hi"
    assert message.metadata.stop_reason is reason


def test_events_without_their_object_say_nothing() -> None:
    delta = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": None}
    ends = {"type": "response.completed", "response": response(said("hi"))}
    assert streamed([{**started({}), "item": None}, delta, ends]).content == (TextBlock(text="hi"),)


ERRORS: list[tuple[Any, type[ProviderError], str]] = [
    ([{"error": {"code": "rate_limit_exceeded", "message": "Slow down"}}], RateLimitError, "Slow down"),
    ({"code": 500, "message": "Broken"}, ServerError, "Broken"),
    ({"code": "unknown-error", "error": "Broken"}, ServerError, "Broken"),
]


@pytest.mark.parametrize(("body", "kind", "words"), ERRORS)
def test_an_error_in_a_200_in_the_words_of_gateways(body: Any, kind: type[ProviderError], words: str) -> None:
    with pytest.raises(kind, match=words):
        whole(body)


@pytest.mark.parametrize(("index", "item_id"), [(True, "msg_1"), (-1, "msg_1"), (0, "msg_1"), (1, "unheard of")])
def test_text_for_a_place_that_cannot_be_its_own_stands_behind_what_was_said(index: Any, item_id: str) -> None:
    action = {"type": "search", "query": "q"}
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": action}
    first = {"type": "response.output_item.done", "output_index": 0, "item": search}
    item = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
    began = {"type": "response.output_item.added", "output_index": 2, "item": item}
    text = {"type": "response.output_text.delta", "content_index": 0}
    said_first = {**text, "output_index": 2, "item_id": "msg_1", "delta": "first, "}
    late = {**text, "output_index": index, "item_id": item_id, "delta": "late"}
    assert streamed([first, began, said_first, late, EMPTY_END]).text == "first, late"
