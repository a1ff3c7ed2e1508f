"""Results too large for a model: cut in the middle, with a note that says so.

Never loses what it cuts: whoever cuts keeps the whole result in the store. The batch comes in.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from interlingua.types.blocks import ContentBlock, TextBlock

RESULT_LIMIT = 40_000
"""Characters of text of one result that a model is sent, by default."""

_HEAD = 0.8  # most outputs say what they are at the beginning, and how it ended at the end


def cut(content: Iterable[ContentBlock], limit: int) -> tuple[ContentBlock, ...] | None:
    """Return the content with at most `limit` characters of text beside the notes, or None where it fits.

    Blocks share the limit in their order; media stay as they are.
    """
    blocks = tuple(content)
    if sum(len(block.text) for block in blocks if isinstance(block, TextBlock)) <= limit:
        return None
    made: list[ContentBlock] = []
    left = limit
    for block in blocks:
        if isinstance(block, TextBlock) and len(block.text) > left:
            made.append(attrs.evolve(block, text=_cut_text(block.text, left)))
            left = 0
        else:
            made.append(block)
            left -= len(block.text) if isinstance(block, TextBlock) else 0
    return tuple(made)


def _cut_text(text: str, limit: int) -> str:
    head = int(limit * _HEAD)
    tail = limit - head
    note = f"[… {len(text) - limit} of {len(text)} characters left out; the whole result is kept in the session …]"
    return "\n".join(filter(None, [text[:head], note, text[len(text) - tail :] if tail else ""]))
