"""Calls keep what the model wrote; results become blocks."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest

from interlingua.types.blocks import (
    ImageBlock,
    MediaSource,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    read_tool_input,
)

IMAGE = ImageBlock(source=MediaSource(kind="base64", data="aGk="), media_type="image/png")


@pytest.mark.parametrize("raw", ["", "  ", "\n", "null"])
def test_empty_arguments_are_an_empty_object(raw: str) -> None:
    """Case 14."""
    assert read_tool_input(raw) == ({}, None)


@pytest.mark.parametrize("raw", ['{"a": 1', '{"a": 1} x', "[1]", '"x"', "3", "{" * 10_000])
def test_malformed_arguments_say_why_and_do_not_raise(raw: str) -> None:
    """Case 14."""
    value, error = read_tool_input(raw)

    assert value == {}
    assert error


def test_arguments_are_read_exactly() -> None:
    raw = '{"id": 12345678901234567890123, "s": "\\ud83d\\ude00", "f": 1.0}'

    assert read_tool_input(raw) == (json.loads(raw), None)


def test_raw_arguments_are_sent_back_byte_exact() -> None:
    raw = '{ "b":1,\n"a" :2.50}'

    assert ToolUseBlock(id="t", name="n", input=json.loads(raw), raw_input=raw).input_json == raw
    assert ToolUseBlock(id="t", name="n", input={"b": 1, "a": 2}).input_json == '{"b":1,"a":2}'


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("text", (TextBlock(text="text"),)),
        (TextBlock(text="x"), (TextBlock(text="x"),)),
        ([TextBlock(text="x"), IMAGE], (TextBlock(text="x"), IMAGE)),
        ({"a": 1}, (TextBlock(text='{"a":1}'),)),
        ([1, "two"], (TextBlock(text='[1,"two"]'),)),
        (3.5, (TextBlock(text="3.5"),)),
        (None, (TextBlock(text="null"),)),
        (True, (TextBlock(text="true"),)),
    ],
)
def test_a_result_that_is_not_text_or_blocks_is_json_text(value: Any, content: Any) -> None:
    """format.md, Blocks."""
    assert ToolResultBlock(tool_use_id="t", content=value).content == content


def test_blocks_are_frozen_down_to_their_json() -> None:
    source = {"a": [1]}
    block = ToolUseBlock(id="t", name="n", input=source)
    source["a"].append(2)

    assert block.input == {"a": [1]}
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        block.name = "m"  # type: ignore[misc]
    with pytest.raises(TypeError):
        block.input["a"].append(2)
    assert hash(block) == hash(ToolUseBlock(id="t", name="n", input={"a": [1]}))
