"""The fast path and the general one: what the fast one takes, the general one takes to the same value; and out.

The general path, which the other tests hold to the seed, is the expectation here.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlingua.codec.converter import make_converter
from interlingua.codec.fast_reading import FALLBACK_ERRORS, Unusual, read_message
from interlingua.codec.fast_writing import write_message
from interlingua.codec.stored import decode_message, decode_messages, encode_message
from interlingua.errors import DecodeError
from interlingua.json import FrozenDict, thaw
from interlingua.types.blocks import TextBlock, ToolResultBlock, ToolUseBlock, UnknownBlock
from interlingua.types.factories import assistant, user
from interlingua.types.messages import NO_METADATA, Message, MessageMetadata
from tests.core.codec import values
from tests.core.codec.test_errors import WRONG

GENERAL = make_converter()


def _types(value: Any) -> Any:
    """Equality says that an enum is its string and True is 1: the types must agree as well, all the way down."""
    if isinstance(value, (list, tuple)):
        return type(value), [_types(item) for item in value]
    if isinstance(value, dict):
        return type(value), [(name, _types(item)) for name, item in value.items()]
    if hasattr(value, "__attrs_attrs__"):
        fields = [field.name for field in value.__attrs_attrs__ if field.name != "memo"]
        return type(value), [(name, _types(getattr(value, name))) for name in fields]
    return type(value), repr(value)


@settings(max_examples=300, deadline=None)
@given(values.messages)
def test_written_alike(message: Message) -> None:
    general = GENERAL.unstructure(message)
    try:
        fast = write_message(message)
    except LookupError:
        held = [part for block in message.content for part in (block, *getattr(block, "content", ()))]
        assert message.metadata.extra or any(isinstance(part, UnknownBlock) for part in held)
        return

    assert json.dumps(fast) == json.dumps(general)  # the order of keys, too
    assert _types(fast) == _types(general)


@settings(max_examples=300, deadline=None)
@given(values.messages)
def test_read_alike(message: Message) -> None:
    stored = json.loads(json.dumps(thaw(GENERAL.unstructure(message))))
    general = GENERAL.structure(stored, Message)
    try:
        fast = read_message(stored)
    except FALLBACK_ERRORS:
        return

    assert fast == general
    assert _types(fast) == _types(general)


@settings(max_examples=400, deadline=None)
@given(values.messages, st.data())
def test_nothing_broken_is_read_on_the_fast_path(message: Message, data: st.DataObject) -> None:
    stored = values.at_random(data, json.loads(json.dumps(thaw(encode_message(message)))))
    try:
        fast = read_message(stored)
    except FALLBACK_ERRORS:
        return

    assert _types(fast) == _types(GENERAL.structure(stored, Message))
    assert fast == decode_message(stored)


@pytest.mark.parametrize(("changes", "path", "reason"), WRONG)
def test_what_is_wrong_is_left_to_the_general_path(changes: dict[str, Any], path: str, reason: str) -> None:
    stored = {**encode_message(user("hi")), **changes}
    with pytest.raises(FALLBACK_ERRORS):
        read_message(stored)
    with pytest.raises(DecodeError) as caught:
        decode_message(stored)
    assert caught.value.path == path


def test_the_usual_shapes_take_the_fast_path() -> None:
    """Or all of this is for nothing."""
    call = ToolUseBlock(id="tu_1", name="n", input={"a": [1, {"b": None}]})
    result = ToolResultBlock(tool_use_id="tu_1", content=(TextBlock(text="x"),))
    for message in (user("hi"), assistant([TextBlock(text="x"), call]), Message(role="tool", content=(result,))):  # type: ignore[arg-type]
        read_message(write_message(message))
    assert read_message(write_message(user("hi"))).metadata is NO_METADATA
    assert type(read_message(write_message(assistant([call]))).tool_calls()[0].input) is FrozenDict


def test_a_newer_version_goes_the_general_path() -> None:
    with pytest.raises(Unusual):
        read_message({**encode_message(user("hi")), "schema_version": 2})
    with pytest.raises(Unusual):
        read_message({**encode_message(user("hi")), "new": 1})
    with pytest.raises(Unusual):
        write_message(Message(role="user", content="x", metadata=MessageMetadata(extra={"new": 1})))  # type: ignore[arg-type]


def test_other_orders_of_keys_go_the_general_path_to_the_same_value() -> None:
    stored = encode_message(user("hi", session_id="s"))
    turned = dict(reversed(stored.items()))
    with pytest.raises(Unusual):
        read_message(turned)

    assert decode_message(turned) == decode_message(stored)


def test_a_time_may_be_a_datetime_on_both_paths() -> None:
    stored = encode_message(user("hi"))
    made = datetime(2026, 11, 22, 4, 5, 6, 789, tzinfo=UTC)
    elsewhere = made.astimezone(timezone(timedelta(hours=2)))  # the general path alone turns it to UTC

    for time in (made, elsewhere):
        read = decode_message({**stored, "created_at": time}).created_at
        assert (read, read.tzinfo) == (made, UTC)
        assert GENERAL.structure({**stored, "created_at": time}, Message).created_at == read
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
