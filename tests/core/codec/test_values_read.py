"""What is read has exactly the types it was written with, and every refusal names its place."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlingua._json import FrozenDict, thaw
from interlingua.codec import decode_message, decode_messages, encode_message
from interlingua.errors import DecodeError
from interlingua.types import NO_METADATA, Message, TextBlock, ToolKind, ToolResultBlock, ToolUseBlock, assistant, user
from tests.core.codec import values
from tests.support.counts import examples


def _types(value: Any) -> Any:
    """Equality says that an enum is its string and True is 1: the types must agree as well, all the way down."""
    if isinstance(value, (list, tuple)):
        return type(value), [_types(item) for item in value]
    if isinstance(value, dict):
        return type(value), [(name, _types(item)) for name, item in value.items()]
    if attrs.has(type(value)):
        fields = [field.name for field in attrs.fields(type(value)) if field.init]
        return type(value), [(name, _types(getattr(value, name))) for name in fields]
    return type(value), value.isoformat() if isinstance(value, datetime) else repr(value)  # a fold in UTC says nothing


def _exists(data: Any, path: str) -> bool:
    """Say whether the path leads to a place in the data, or to a field missing in an object there."""
    steps = re.findall(r"\.?([^.\[\]]+)|\[(\d+)\]", path)
    for number, (name, index) in enumerate(steps, 1):
        if name and isinstance(data, dict) and name not in data:
            return number == len(steps)
        data = data[name] if name else data[int(index)]
    return True


def _refusal(stored: Any) -> DecodeError | None:
    try:
        decode_message(stored)
    except DecodeError as error:
        return error
    return None


@settings(max_examples=examples(300), deadline=None)
@given(values.messages)
def test_read_with_the_types_it_was_written_with(message: Message) -> None:
    stored = json.loads(json.dumps(thaw(encode_message(message))))

    assert _types(decode_message(stored)) == _types(message)
    assert _types(decode_message(dict(reversed(stored.items())))) == _types(message)


@settings(max_examples=examples(400), deadline=None)
@given(values.messages, st.data())
def test_every_refusal_names_a_place_that_exists(message: Message, data: st.DataObject) -> None:
    stored = values.at_random(data, json.loads(json.dumps(thaw(encode_message(message)))))
    error = _refusal(stored)
    if error is not None:
        assert error.path or not isinstance(stored, dict)
        assert _exists(stored, error.path)
        assert error.__cause__ is None  # nothing of cattrs' groups is shown


def test_usual_values_are_shared_and_frozen() -> None:
    call = ToolUseBlock(id="tu_1", name="n", input={"a": [1, {"b": None}]})  # type: ignore[arg-type]
    result = ToolResultBlock(tool_use_id="tu_1", content=(TextBlock(text="x"),))
    for message in (user("hi"), assistant([TextBlock(text="x"), call]), Message(role="tool", content=(result,))):  # type: ignore[arg-type]
        assert decode_message(encode_message(message)).metadata is NO_METADATA
    assert type(decode_message(encode_message(assistant([call]))).tool_calls[0].input) is FrozenDict


def test_a_word_of_an_enum_is_written_as_a_plain_string() -> None:
    call = ToolUseBlock(id="tu_1", name="n", kind=ToolKind.READ)

    assert type(encode_message(assistant([call]))["content"][0]["kind"]) is str


def test_a_time_may_be_a_datetime() -> None:
    stored = encode_message(user("hi"))
    made = datetime(2026, 11, 22, 4, 5, 6, 789, tzinfo=UTC)
    elsewhere = made.astimezone(timezone(timedelta(hours=2)))  # becomes UTC

    for time in (made, elsewhere):
        read = decode_message({**stored, "created_at": time}).created_at
        assert (read, read.tzinfo) == (made, UTC)
    with pytest.raises(DecodeError, match="offset"):
        decode_message({**stored, "created_at": made.replace(tzinfo=None)})


def test_equal_routing_records_share_one_value_and_only_equal_ones() -> None:
    def read(confidence: Any) -> Any:
        routing = {"mode": "pattern", "chosen_model": "a:b", "reason": "r", "rule_name": None, "confidence": confidence}
        data = encode_message(Message(role="assistant", content="x"))  # type: ignore[arg-type]
        metadata = {**data["metadata"], "routing": {**routing, "alternatives_considered": []}}
        return decode_message({**data, "metadata": metadata}).metadata.routing

    assert read(None) is read(None)
    assert [repr(read(number).confidence) for number in (1, 1.0, 1)] == ["1", "1.0", "1"]
    with pytest.raises(DecodeError):
        read(True)


def test_a_conversation_may_come_from_an_iterator() -> None:
    talk = [user("a", session_id="s"), user("b", session_id="s")]

    assert decode_messages(map(encode_message, talk)) == talk
    with pytest.raises(DecodeError) as caught:
        decode_messages(iter([encode_message(talk[0]), {"role": "user"}]))
    assert caught.value.path == "messages[1].content"


def test_one_written_form_never_changes_another() -> None:
    first = encode_message(user("a"))
    first["metadata"]["model"] = "changed"

    assert encode_message(user("b"))["metadata"]["model"] is None
