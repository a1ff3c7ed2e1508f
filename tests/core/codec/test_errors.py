"""Data that is not a canonical value is refused with the exact place; nothing is coerced and nothing else is raised."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlingua.codec import (
    decode_message,
    decode_messages,
    decode_tool,
    dumps_message,
    encode_message,
    encode_tool,
    loads_message,
    read_jsonl,
)
from interlingua.errors import CallerError, DecodeError
from interlingua.types.blocks import TextBlock, ToolResultBlock, UnknownBlock
from interlingua.types.factories import user
from interlingua.types.messages import Message
from interlingua.types.tools import SideEffects, ToolDefinition
from tests.core.codec import values
from tests.support.counts import examples


def _stored(**changes: Any) -> dict[str, Any]:
    return {**encode_message(user("hi")), **changes}


WRONG = [
    ({"content": [{"type": "text", "text": 3}]}, "content[0].text", "expected str, got int"),
    ({"content": [{"type": "text"}]}, "content[0].text", "missing"),
    ({"content": [{"text": "x"}]}, "content[0].type", "missing"),
    ({"content": [{"type": 4}]}, "content[0].type", "expected str, got int"),
    ({"content": "hi"}, "content", "expected array, got str"),
    ({"content": [None]}, "content[0]", "expected object, got null"),
    ({"schema_version": "1"}, "schema_version", "expected int, got str"),
    ({"schema_version": True}, "schema_version", "expected int, got bool"),
    ({"role": "narrator"}, "role", "expected one of user, assistant, system, tool; got 'narrator'"),
    ({"created_at": "2026-05-08T10:00:00"}, "created_at", "expected an ISO-8601 time with an offset"),
    ({"created_at": "0001-01-01T00:00:00+23:00"}, "created_at", "expected an ISO-8601 time with an offset"),
    ({"metadata": {"usage": {"cost_usd": 0.1}}}, "metadata.usage.cost_usd", "expected str, got float"),
    ({"metadata": {"usage": {"cost_usd": "NaN"}}}, "metadata.usage.cost_usd", "expected a decimal number"),
    ({"metadata": {"usage": {"input_tokens": 1.0}}}, "metadata.usage.input_tokens", "expected int, got float"),
    ({"metadata": {"critical": [0, False]}}, "metadata.critical[1]", "expected int, got bool"),
    (
        {"content": [{"type": "tool_result", "tool_use_id": "t", "is_error": 1}]},
        "content[0].is_error",
        "expected bool, got int",
    ),
    (
        {"content": [{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "image", "source": []}]}]},
        "content[0].content[0].source",
        "expected object, got array",
    ),
    (
        {"content": [{"type": "image", "source": {"kind": "ftp", "data": ""}}]},
        "content[0].source.kind",
        "expected one of base64, url, file_ref, file_id; got 'ftp'",
    ),
]


@pytest.mark.parametrize(("changes", "path", "message"), WRONG, ids=[path for _, path, _ in WRONG])
def test_the_path_is_exact_and_the_message_says_what_was_expected(
    changes: dict[str, Any], path: str, message: str
) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_message(_stored(**changes))

    assert caught.value.path == path
    assert caught.value.message.startswith(message)


def test_paths_in_a_list_and_lines_in_a_file() -> None:
    bad = _stored(content=[{"type": "text", "text": 3}])

    with pytest.raises(DecodeError) as caught:
        decode_messages([_stored(), bad])
    assert caught.value.path == "messages[1].content[0].text"
    assert str(caught.value) == "expected str, got int (at messages[1].content[0].text)"

    with pytest.raises(DecodeError, match="line 3: expected str, got int") as caught:
        list(read_jsonl([json.dumps(_stored()), "", json.dumps(bad)]))
    assert caught.value.path == "content[0].text"

    with pytest.raises(DecodeError, match="line 1: not JSON"):
        list(read_jsonl(['{"role": "us']))
    with pytest.raises(DecodeError) as caught:
        decode_messages({"not": "a list"})
    assert caught.value.path == "messages"


DEEP = '{"a":' * 900 + "1" + "}" * 900


@pytest.mark.parametrize("text", ["", "nul", "[]", '"x"', "{}", b"\xff\xfe", "[" * 100_000, DEEP])
def test_text_that_is_no_message(text: str | bytes) -> None:
    with pytest.raises(DecodeError):
        loads_message(text)


def test_deep_nesting_ends_in_a_typed_error() -> None:
    deep: Any = {}
    for _ in range(5000):
        deep = {"a": deep}

    with pytest.raises(DecodeError):
        decode_message(_stored(content=[{"type": "opaque", "provider": "p", "kind": "k", "data": deep}]))


@settings(max_examples=examples(400), deadline=None)
@given(values.messages, st.data())
def test_mutated_data_gives_a_message_or_a_decode_error(message: Message, data: st.DataObject) -> None:
    stored = json.loads(dumps_message(message))
    for _ in range(data.draw(st.integers(1, 3))):
        stored = values.at_random(data, stored)

    with contextlib.suppress(DecodeError):
        read = decode_message(stored)
        assert decode_message(encode_message(read)) == read


@settings(max_examples=examples(200), deadline=None)
@given(values.messages, st.data())
def test_mutated_text_gives_a_message_or_a_decode_error(message: Message, data: st.DataObject) -> None:
    raw = bytearray(dumps_message(message).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))

    with contextlib.suppress(DecodeError):
        loads_message(bytes(raw))


def test_what_cannot_be_stored_is_refused_when_made() -> None:
    from datetime import datetime

    import attrs

    with pytest.raises(CallerError, match=r"Message\.created_at: expected a time with a time zone"):
        attrs.evolve(user("x"), created_at=datetime(2026, 1, 1))
    for raw in ({}, {"type": "text", "text": "x"}):
        with pytest.raises(CallerError, match="UnknownBlock"):
            UnknownBlock(raw=raw)
    with pytest.raises(CallerError, match=r"ToolResultBlock\.details: expected JSON, got object"):
        ToolResultBlock(tool_use_id="t", content=(TextBlock(text="x"),), details={"when": object()})


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_broken_line_is_named_by_its_number_and_its_character(end: str) -> None:
    lines = [f"{dumps_message(user('hi'))}\n", f'{{"id": "x"{end}']
    with pytest.raises(DecodeError) as caught:
        list(read_jsonl(lines))

    assert str(caught.value) == "line 2: not JSON: Expecting ',' delimiter (character 11)"  # behind the ten written


def test_tools_round_trip_and_are_refused_with_the_place(caplog: pytest.LogCaptureFixture) -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    tool = ToolDefinition(name="read_file", description="", input_schema=schema, side_effects=SideEffects.READ)
    stored = encode_tool(tool)

    # format.md, Tools: these five, all written
    assert stored == {
        "name": "read_file",
        "description": "",
        "input_schema": schema,
        "side_effects": "read",
        "requires_workspace": True,
    }
    assert decode_tool(stored) == tool
    for changes, path in (
        ({"name": "Read"}, "name"),
        ({"side_effects": "none at all"}, "side_effects"),
        ({"input_schema": {"type": "object", "properties": {"a": {"oneOf": []}}}}, "input_schema/properties/a/oneOf"),
    ):
        with pytest.raises(DecodeError) as caught:
            decode_tool({**stored, **changes})
        assert caught.value.path == path
    assert decode_tool({**stored, "icon": "x"}) == tool
    (record,) = caplog.records  # the field is lost
    assert (record.levelname, "icon" in record.message) == ("WARNING", True)
