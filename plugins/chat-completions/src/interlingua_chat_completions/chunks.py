"""An assistant's content as a list of chunks: reasoning first, then text, then what the service made besides.

Never decides whether reasoning goes back (projection does, by the capabilities).
The writer of assistant turns comes in.
"""

from __future__ import annotations

from typing import Any

from interlingua.types.blocks import ContentBlock, OpaqueBlock, ThinkingBlock
from interlingua.types.messages import Message


def is_own_chunk(block: OpaqueBlock) -> bool:
    """True for a chunk of a kind not known here, such as a reference; other opaque state is no content."""
    return isinstance(block.data, dict) and block.data.get("type") == block.kind


def to_wire_chunks(message: Message, text: str, *, closed: Any = None) -> list[dict[str, Any]] | str | None:
    """Write the content: a string where text is all there is, else chunks; None where there is nothing.

    Args:
        message: the assistant's.
        text: all its text.
        closed: the member of that name the thinking came with, or None.
    """
    blocks: tuple[ContentBlock, ...] = message.content
    chunks = [_thinking(block, closed) for block in blocks if isinstance(block, ThinkingBlock)]
    others = [block.data for block in blocks if isinstance(block, OpaqueBlock) and is_own_chunk(block)]
    if not chunks and not others:
        return text or None
    return [*chunks, *([{"type": "text", "text": text}] if text else []), *others]


def _thinking(block: ThinkingBlock, closed: Any) -> dict[str, Any]:
    """Write a thinking chunk as it came (sheet mistral §4)."""
    thought = [{"type": "text", "text": block.text}] if block.text else []
    chunk: dict[str, Any] = {"type": "thinking", "thinking": thought}
    if block.signature is not None:
        chunk["signature"] = block.signature
    return chunk if closed is None else {**chunk, "closed": closed}
