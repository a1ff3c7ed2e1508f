"""What a conversation and its request need of a model, as words that capabilities can be held against.

Never asks a provider. The constraints and the rules come in; what one message needs is found once and remembered on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from interlingua.types.blocks import (
    AudioBlock,
    DocumentBlock,
    ImageBlock,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    VideoBlock,
)
from interlingua.types.messages import Message, Role
from interlingua.types.tools import ToolDefinition

_MEMO = "sessions.routing:needs"
_MEDIA = (ImageBlock, AudioBlock, VideoBlock, DocumentBlock)
_NOTHING: frozenset[tuple[str, str | None]] = frozenset()


@attrs.frozen(kw_only=True)
class Needs:
    """What must be carried.

    Attributes:
        media: (block type, media type) pairs found; the type of what is behind an address may be unknown, thus empty.
        history_tools: tool calls stand in the conversation.
        offered_tools: tools are offered.
        system: there is a system prompt.
        structured: the answer must follow a schema.
    """

    media: frozenset[tuple[str, str]] = frozenset()
    history_tools: bool = False
    offered_tools: bool = False
    system: bool = False
    structured: bool = False

    def has(self, block_type: str) -> bool:
        """Tell whether media of a block type are there."""
        return any(kind == block_type for kind, _ in self.media)


def needs_of(messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), *, structured: bool = False) -> Needs:
    """Return what these messages and this request need."""
    found: set[tuple[str, str | None]] = set()
    for message in messages:
        content = message.content
        if len(content) == 1 and type(content[0]) is TextBlock and message.role is not Role.SYSTEM:
            continue  # half of most histories needs nothing
        found |= _of(message)
    return Needs(
        media=frozenset((kind, media_type) for kind, media_type in found if media_type is not None),
        history_tools=("tool_use", None) in found,
        offered_tools=bool(tools),
        system=("system", None) in found,
        structured=structured,
    )


def _of(message: Message) -> frozenset[tuple[str, str | None]]:
    found: frozenset[tuple[str, str | None]] | None = message.memo.get(_MEMO)
    if found is None:
        found = message.memo[_MEMO] = frozenset(_words(message)) or _NOTHING
    return found


def _words(message: Message) -> Iterator[tuple[str, str | None]]:
    if message.role is Role.SYSTEM:
        yield "system", None
    for block in message.content:
        inner = block.content if isinstance(block, ToolResultBlock) else ()
        for part in (block, *inner):
            if isinstance(part, _MEDIA):
                yield part.type, part.media_type
            elif isinstance(part, ToolUseBlock):
                yield "tool_use", None
