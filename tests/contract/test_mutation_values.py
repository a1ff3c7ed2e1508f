"""Values as trees, and the operations on them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlingua.errors import OverloadedError, RateLimitError
from interlingua.plugins import WireRequest
from interlingua.types import ImageBlock, MediaSource, StopReason, TextBlock, ToolUseBlock, assistant, user
from interlingua_contract.mutation.operations import OPERATIONS, Known, changes_of, operations_at
from interlingua_contract.mutation.seam import _join_frames, _split_frames
from interlingua_contract.mutation.tree import DROP, Impossible, Node, format_place, walk, with_changes

BODY = {"model": "m", "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}


def _request(body: Any = BODY, **style: Any) -> WireRequest:
    return WireRequest(path="/v1", body=json.dumps(body, **style).encode(), api="chat")


def _places(value: Any, **given: Any) -> set[str]:
    return {format_place(node.place) for node in walk(value, **given)}


def test_the_body_of_a_request_is_part_of_its_tree() -> None:
    assert {"/path", "/body/model", "/body/messages/*[user]/content", "/body/messages/*[assistant]"} <= _places(
        _request()
    )


def test_json_of_the_user_is_one_place() -> None:
    schema = {"type": "object", "properties": {"q": {"type": "string"}}}
    body = {"tools": [{"name": "f", "parameters": schema}]}

    assert "/body/tools/*/parameters/**" in _places(_request(body), user_json=[schema])
    assert not any("properties" in place for place in _places(_request(body), user_json=[schema]))
    assert "/body/tools/*/parameters/properties/*/type" in _places(_request(body))


def test_messages_are_told_apart_by_their_blocks() -> None:
    picture = ImageBlock(source=MediaSource(kind="base64", data="AAAA"), media_type="image/png")
    call = ToolUseBlock(id="tu_1", name="f", input={"q": 1})

    assert {"/content/*[image]/media_type", "/content/*[text]/text"} <= _places(user([TextBlock(text="a"), picture]))
    assert "/content/*[tool_use]/input/**" in _places(assistant([call]))


@pytest.mark.parametrize("style", [{}, {"separators": (",", ":")}, {"ensure_ascii": False}])
def test_what_is_not_changed_stays_the_same_bytes(style: dict[str, Any]) -> None:
    before = _request({**BODY, "user": "é"}, **style)
    after = with_changes(before, {("body", "model"): "n"})

    assert after.body == before.body.replace(b'"m"', b'"n"')


def test_a_body_in_a_style_of_its_own_is_not_changed() -> None:
    with pytest.raises(Impossible):
        with_changes(WireRequest(path="/v1", body=b'{"a" :1}', api="chat"), {("body", "a"): 2})


def test_members_and_elements_are_dropped_and_added() -> None:
    path = ("body", "messages", 1)
    made = with_changes(_request(), {("body", "model"): DROP, path: DROP, ("body", "messages", 0, "name"): "x"})

    assert json.loads(made.body) == {"messages": [{"role": "user", "content": "a", "name": "x"}]}


def test_a_dropped_field_has_its_default() -> None:
    message = with_changes(assistant("a"), {("metadata", "stop_reason"): StopReason.REFUSAL})

    assert message.metadata.stop_reason is StopReason.REFUSAL
    assert with_changes(message, {("metadata", "stop_reason"): DROP}).metadata.stop_reason is None
    with pytest.raises(Impossible):
        with_changes(message, {("role",): DROP})


def test_a_field_that_has_its_default_is_not_dropped() -> None:
    found = [node for node in walk(_request()) if format_place(node.place) in ("/stream", "/method")]

    assert not changes_of(OPERATIONS["drop"], found, Known())


def test_a_value_that_a_class_refuses_cannot_be_made() -> None:
    with pytest.raises(Impossible):
        with_changes(assistant("a"), {("role",): "nobody"})


def test_errors_have_their_class_and_facts() -> None:
    error = RateLimitError("slow", status=429, retry_after=7.0)
    made = with_changes(error, {("class",): OverloadedError, ("retry_after",): DROP, ("message",): "other"})

    assert (type(made), made.retry_after, made.message, made.status) == (OverloadedError, None, "other", 429)
    assert (type(error), error.retry_after) == (RateLimitError, 7.0)


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("drop", {"a": 1, "b": 2}, {"b": 2}),
        ("off-by-one", {"a": 1}, {"a": 2}),
        ("off-by-one", {"a": True}, None),
        ("invert", {"a": True}, {"a": False}),
        ("other-case", {"a": "Ab"}, {"a": "aB"}),
        ("other-word", {"a": "low"}, {"a": "high"}),
        ("other-digits", {"a": "call_19"}, {"a": "call_10"}),
        ("other-letter", {"a": "ab1"}, {"a": "aq1"}),
        ("swap-members", {"a": 1, "b": 2}, {"a": 2, "b": 1}),
        ("double", {"a": "x"}, {"a": "xx"}),
        ("cut", {"a": "four"}, {"a": "fo"}),
        ("cut", {"a": [1, 2]}, {"a": [1]}),
        ("swap-elements", {"a": [1, 2, 3]}, {"a": [1, 3, 2]}),
        ("last-first", {"a": [1, 2, 3]}, {"a": [3, 1, 2]}),
        ("reorder", {"a": [1, 2, 3]}, {"a": [3, 2, 1]}),
        ("strip", {"a": " x\n"}, {"a": "x"}),
        ("compose", {"a": "e\u0301"}, {"a": "é"}),
        ("line-ends", {"a": "x\r\ny"}, {"a": "x\ny"}),
        ("stale", {"a": 1}, {"a": 9}),
    ],
)
def test_an_operation(name: str, before: Any, after: Any) -> None:
    found = [node for node in walk(before) if node.path == ("a",)]
    changes = changes_of(OPERATIONS[name], found, Known(["high", "low"], [9]))

    assert (with_changes(before, changes) if changes else None) == after


@pytest.mark.parametrize(
    ("name", "place", "after"),
    [
        ("swap", "/*/id", [{"id": "2"}, {"id": "1"}, {"id": "3"}]),
        ("first-everywhere", "/*/id", [{"id": "1"}, {"id": "1"}, {"id": "1"}]),
        ("drop-later", "/*", [{"id": "1"}]),
        ("double", "/*", [{"id": "1"}, {"id": "1"}, {"id": "2"}, {"id": "2"}, {"id": "3"}, {"id": "3"}]),
    ],
)
def test_an_operation_on_several(name: str, place: str, after: Any) -> None:
    before = [{"id": "1"}, {"id": "2"}, {"id": "3"}]
    found = [node for node in walk(before) if format_place(node.place) == place]

    assert with_changes(before, changes_of(OPERATIONS[name], found, Known())) == after


def test_a_marker_moves_to_the_element_beside_it() -> None:
    before = [{"text": "a"}, {"text": "b", "cache": {"ttl": "1h"}}]
    found = [node for node in walk(before) if node.path == (1, "cache")]

    assert with_changes(before, changes_of(OPERATIONS["move"], found, Known())) == [
        {"text": "a", "cache": {"ttl": "1h"}},
        {"text": "b"},
    ]


def test_json_of_the_user_is_changed_inside() -> None:
    value = {"n": 1.0, "s": ""}
    node = Node(("input",), ("input", "**"), value, {"input": value})
    made = {
        name: changes_of(operation, [node], Known()).get(("input",))
        for name, operation in operations_at(node.place).items()
    }

    assert made["json-numbers"] == {"n": 1, "s": ""}
    assert isinstance(made["json-numbers"]["n"], int)
    assert made["json-empty"] == {"n": 1.0}
    assert made["json-alter"] == {"n": 0.5, "s": ""}


def test_the_order_of_members_is_free() -> None:
    node = Node(("a",), ("a",), {"x": 1, "y": 2}, {})
    reordered = OPERATIONS["stale"]

    assert not changes_of(reordered, [node], Known(earlier=[{"y": 2, "x": 1}]))


@pytest.mark.parametrize("data", [b'event: a\ndata: {"x":1}\n\ndata: [DONE]\n\n', b'{"x":1}\n{"y":2}\n', b""])
def test_served_frames_are_read_and_written_again(data: bytes) -> None:
    frames = _split_frames(data)

    assert frames is not None
    assert _join_frames(data, frames) == data
