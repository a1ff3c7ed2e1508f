"""The leaves of a canonical history: everything a model could see, one by one, with the row that would account for it.

Never looks at a wire. The accounting and the recorded histories come in.
What is never sent by definition (usage, routing, times, message ids, a result's details) is no leaf; a call's id is a
link between two blocks and is looked at with the ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from interlingua.types.blocks import (
    ContentBlock,
    OpaqueBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UnknownBlock,
)
from interlingua.types.messages import Message, Role

MEDIA = ("image", "audio", "video", "document")


_FIELDS = ("title", "context", "transcript", "detail")


class Place(NamedTuple):
    """What a ledger row speaks of: a block of a message, or media inside a result, by type."""

    message: int
    block: int
    block_type: str


class Leaf(NamedTuple):
    """One leaf.

    Attributes:
        place: whose it is.
        kind: text, thinking, signature, data, call, form, citations, error, place, role, content, or a field of a
            media block.
        value: what is looked for.
        block: the block it belongs to, for kinds that are told by structure.
        part: number of the part inside a result; several parts of one type share a place.
    """

    place: Place
    kind: str
    value: Any
    block: Any
    part: int = 0


def leaves_of(messages: Sequence[Message]) -> Iterator[Leaf]:
    """Yield the leaves of a history, in order."""
    for index, message in enumerate(messages):
        for at, block in enumerate(message.content):
            place = Place(index, at, block.type)
            if message.role is Role.SYSTEM:
                yield Leaf(place, "role", getattr(block, "text", ""), block)
            yield from _of_block(place, block)


def is_blank(block: ContentBlock) -> bool:
    """True for text that says nothing: wires refuse it, and a row that tells of it stands for no leaf."""
    return isinstance(block, TextBlock) and not block.text.strip()


def _of_block(place: Place, block: ContentBlock) -> Iterator[Leaf]:
    if isinstance(block, ToolResultBlock):
        yield from _of_result(place, block)
    elif block.type in MEDIA:
        yield from _of_media(place, block)
    else:
        yield from [Leaf(place, kind, value, block) for kind, value in _said(block) if value]
    if getattr(block, "signature", None):
        yield Leaf(place, "signature", block.signature, block)  # type: ignore[union-attr]


def _said(block: ContentBlock) -> Iterator[tuple[str, Any]]:
    if isinstance(block, TextBlock):
        yield "text", "" if is_blank(block) else block.text
        yield "citations", list(block.citations)
    elif isinstance(block, ThinkingBlock):
        yield "thinking", block.text
    elif isinstance(block, RedactedThinkingBlock):
        yield "data", block.data
    elif isinstance(block, ToolUseBlock):
        yield "call", block.input_json
        yield "form", block.raw_input if block.parse_error is not None else None
    elif isinstance(block, OpaqueBlock):
        yield "content", block.data
    elif isinstance(block, UnknownBlock):
        yield "content", block.raw


def _of_media(place: Place, block: Any, part: int = 0) -> Iterator[Leaf]:
    yield Leaf(place, "data", block.source.data, block, part)
    for name in _FIELDS:
        if value := getattr(block, name, None):
            yield Leaf(place, name, value, block, part)


def _of_result(place: Place, block: ToolResultBlock) -> Iterator[Leaf]:
    if block.is_error:
        yield Leaf(place, "error", True, block)
    for number, part in enumerate(block.content):
        if isinstance(part, TextBlock):
            if part.text:
                yield Leaf(place, "text", part.text, block, number)
        elif part.type in MEDIA:
            inner = place._replace(block_type=part.type)
            yield from _of_media(inner, part, number)
            yield Leaf(inner, "place", (block.tool_name, _texts(block.content)), part, number)
        else:
            yield Leaf(place._replace(block_type=part.type), "content", getattr(part, "data", None), part, number)


def _texts(parts: Iterable[ContentBlock]) -> tuple[str, ...]:
    return tuple(part.text for part in parts if isinstance(part, TextBlock) and part.text)
