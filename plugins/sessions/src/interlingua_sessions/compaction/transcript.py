"""A conversation as plain text, for a model that is to read it and not to take part in it.

Never a format that is read back. The summary policy comes in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from interlingua.types.blocks import ContentBlock, TextBlock, ToolResultBlock, ToolUseBlock
from interlingua.types.messages import Message, Role

_LONGEST_RESULT = 2_000  # characters; what mattered of a longer one is in the answer after it


def pieces(messages: Sequence[Message], size: int) -> Iterator[str]:
    """Yield the transcript in pieces of about `size` characters at most, cut between messages where possible."""
    held: list[str] = []
    length = 0
    for line in _lines(messages):
        for part in [line[at : at + size] for at in range(0, len(line), size)]:
            if held and length + len(part) > size:
                yield "\n\n".join(held)
                held, length = [], 0
            held.append(part)
            length += len(part)
    if held:
        yield "\n\n".join(held)


def _lines(messages: Iterable[Message]) -> Iterator[str]:
    for message in messages:
        if message.role is not Role.SYSTEM:  # instructions stay in the context themselves
            yield from (f"[{message.role.value}] {text}" for block in message.content if (text := _text(block)))


def _text(block: ContentBlock) -> str:
    if isinstance(block, TextBlock):
        return block.text
    if isinstance(block, ToolUseBlock):
        return f"called {block.name}({block.input_json})"
    if isinstance(block, ToolResultBlock):
        said = " ".join(filter(None, map(_text, block.content)))
        short = said if len(said) <= _LONGEST_RESULT else f"{said[:_LONGEST_RESULT]} [… {len(said)} characters]"
        return f"{'failed' if block.is_error else 'answered'}: {short}"
    return "" if block.type in ("thinking", "redacted_thinking", "opaque", "unknown") else f"({block.type})"
