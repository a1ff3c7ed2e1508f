"""How heavy messages are, roughly: to choose where to cut, not to decide whether to.

Never an estimate for a provider (its own is asked for that). The policies come in.
"""

from __future__ import annotations

from collections.abc import Iterable

from interlingua.types.blocks import ContentBlock, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from interlingua.types.messages import Message

LETTERS_PER_TOKEN = 4
_MEDIA = 1_500  # tokens of an image of usual size, by the sheets


def weight(message: Message) -> int:
    """Return the rough number of tokens of a message."""
    return _blocks(message.content) // LETTERS_PER_TOKEN + 4


def _blocks(blocks: Iterable[ContentBlock]) -> int:
    return sum(map(_letters, blocks))


def _letters(block: ContentBlock) -> int:
    if isinstance(block, TextBlock | ThinkingBlock):
        return len(block.text)
    if isinstance(block, ToolUseBlock):
        return len(block.name) + len(block.input_json)
    if isinstance(block, ToolResultBlock):
        return _blocks(block.content)
    return _MEDIA * LETTERS_PER_TOKEN
