"""Plain content: what may go the short way, and that nothing special ever does."""

from __future__ import annotations

import pickle

import attrs
import pytest

from interlingua.types.blocks import (
    CacheHint,
    ContentBlock,
    ImageBlock,
    ImageSource,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
)
from interlingua.types.factories import assistant, system, tool_result
from interlingua.types.factories import user as said
from interlingua.types.messages import Message, Role
from interlingua.types.plain import CALLS, RESULT, TEXT, Plain, plainness

CALL = ToolUseBlock(id="tu_1", name="read_file", input={"path": "a"})
IMAGE = ImageBlock(source=ImageSource(kind="base64", data="aGk="), media_type="image/png")
HINT = CacheHint()
SO = TextBlock(text="so")
RAW = attrs.evolve(CALL, raw_input='{"path" : "a"}')


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (said("hi"), TEXT),
        (system("be brief"), TEXT),
        (assistant("hi "), TEXT),
        (assistant([CALL]), CALLS),
        (assistant([SO, CALL, attrs.evolve(CALL, id="tu_2")]), CALLS),
        (assistant([RAW]), CALLS),
        (tool_result(CALL, "done"), RESULT),
        (tool_result(CALL, "failed", is_error=True), RESULT),
    ],
)
def test_plain(message: Message, kind: Plain) -> None:
    assert plainness(message) == kind


@pytest.mark.parametrize(
    "message",
    [
        said(""),
        said(" \n"),
        said("see", images=[b"\x89PNG\r\n\x1a\n" + b"0" * 16]),
        said([TextBlock(text="hi", cache=HINT)]),
        said([SO, SO]),
        assistant([TextBlock(text="hi", signature="s")]),
        assistant([TextBlock(text="hi", citations=[{"url": "x"}])]),
        assistant([ThinkingBlock(text="hm"), SO]),
        assistant([CALL, SO]),
        assistant([SO, SO, CALL]),
        assistant([attrs.evolve(CALL, signature="s")]),
        assistant([attrs.evolve(CALL, cache=HINT)]),
        assistant([attrs.evolve(CALL, parse_error="cut", raw_input="{")]),
        *(assistant([attrs.evolve(CALL, name=name)]) for name in ("readFile", "_x", "7up", "é", "a-b", "a" * 65)),
        said([CALL]),
        tool_result(CALL, ""),
        tool_result(CALL, [IMAGE]),
        tool_result(CALL, [SO, SO]),
        tool_result(CALL, [TextBlock(text="x", cache=HINT)]),
        tool_result(CALL, "x", cache=HINT),
        Message(role=Role.TOOL, content=(SO,)),
        Message(role=Role.USER, content=()),
    ],
)
def test_not_plain(message: Message) -> None:
    assert plainness(message) == ""


def test_what_was_seen_is_no_part_of_the_value_and_no_copy_inherits_it() -> None:
    message = said("hi")
    seen = attrs.evolve(message)
    assert plainness(seen) == TEXT
    blocks: tuple[ContentBlock, ...] = (IMAGE,)

    assert seen == message
    assert repr(seen) == repr(message)
    assert plainness(attrs.evolve(seen, content=blocks)) == ""
    assert plainness(pickle.loads(pickle.dumps(seen))) == TEXT  # noqa: S301  our own bytes
