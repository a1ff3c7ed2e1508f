"""Messages that stand in for what a target cannot take as it is: made of one message, and the same one every time.

Never decides when one is needed (the walk does). The projection walk comes in.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import attrs

from interlingua.blocks import ContentBlock, TextBlock, ToolResultBlock
from interlingua.messages import Message, MessageMetadata, Role
from interlingua.projection.target import Target
from interlingua.wire import Loss, Verdict

MISSING_RESULT = "No result: the tool call was interrupted before it was answered."


class Open(NamedTuple):
    """A call waiting for its result."""

    wire_id: str
    canonical: str
    name: str
    at: int


def of_one(message: Message, place: int) -> Message:
    """One result of several as a message of its own; the same one every time."""

    def make() -> Message:
        critical: tuple[int, ...] = (0,) if place in message.metadata.critical else ()
        metadata = attrs.evolve(message.metadata, critical=critical)
        return attrs.evolve(message, content=(message.content[place],), metadata=metadata)

    return _remembered(message, ("single", place), make)


def loss(path: str, block_type: str, verdict: Verdict, reason: str, message: Message) -> Loss:
    """Make a line of the ledger."""
    return Loss(path=path, block_type=block_type, verdict=verdict, reason=reason, message_id=message.id)


def _remembered(message: Message, key: Any, make: Any) -> Message:
    made: Message | None = message.memo.get(key)
    if made is None:
        made = message.memo[key] = make()
    return made


def filled(assistant: Message, call: Open) -> Message:
    """The same error result every time, so that the prefix stays stable."""

    def make() -> Message:
        text = TextBlock(text=MISSING_RESULT)
        block = ToolResultBlock(tool_use_id=call.wire_id, content=(text,), is_error=True, tool_name=call.name)
        metadata = MessageMetadata(parent_tool_use_id=call.wire_id)
        return attrs.evolve(assistant, role=Role.TOOL, content=(block,), metadata=metadata)

    return _remembered(assistant, ("filled", call.wire_id), make)


def tagged(message: Message, target: Target) -> Message:
    """A system message as a user's, where the target takes none."""

    def make() -> Message:
        hints = [block.cache for block in message.content if type(block) is TextBlock and block.cache is not None]
        text = f"<system>\n{message.text_content()}\n</system>"
        block = TextBlock(text=text, cache=hints[-1] if hints else None)
        return attrs.evolve(message, role=Role.USER, content=(block,))

    return _remembered(message, ("tagged", target), make)


def of_media(assistant: Message, media: list[ContentBlock], target: Target) -> Message:
    """Media of results as a user message behind them, where the target's results hold text only."""

    def make() -> Message:
        lead = TextBlock(text="Media from the tool results above:")
        return attrs.evolve(assistant, role=Role.USER, content=(lead, *media), metadata=MessageMetadata())

    key = ("moved", target, tuple(map(id, media)))  # the message holds the media, so these ids cannot be reused
    return _remembered(assistant, key, make)
