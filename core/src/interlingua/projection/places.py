"""Where a loss happened, told in the caller's conversation: an adapter counts in the projected one it was given.

Never changes what a row says, only where it points. The façade comes in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import attrs

from interlingua.messages import Message, Role
from interlingua.wire import Loss

_PATH = re.compile(r"messages\[(\d+)\](?:\.content\[(\d+)\])?")


def in_conversation(
    rows: Iterable[Loss], projected: Sequence[Message], messages: Sequence[Message], before: Iterable[Loss]
) -> tuple[Loss, ...]:
    """Return an adapter's rows with their paths counted in the caller's messages and blocks.

    Args:
        rows: the adapter's.
        projected: what it was given.
        messages: what the caller gave.
        before: projection's own rows, which say what blocks are gone.
    """
    places = {message.id: index for index, message in enumerate(messages)}
    gone = {row.path for row in before if row.verdict != "rewritten"}
    return tuple([_moved(row, projected, messages, places, gone) for row in rows])


def _moved(
    row: Loss, projected: Sequence[Message], messages: Sequence[Message], places: Mapping[str, int], gone: set[str]
) -> Loss:
    match = _PATH.match(row.path)
    if match is None or int(match[1]) >= len(projected):
        return row
    given = projected[int(match[1])]
    index = places.get(given.id)
    if index is None:
        return row
    path = f"messages[{index}]"
    block = _block(given, messages[index], index, match[2], gone)
    if block is not None:
        path += f".content[{block}]"
    return attrs.evolve(row, path=path + row.path[match.end() :], message_id=given.id)


def _block(given: Message, message: Message, index: int, at: str | None, gone: set[str]) -> int | None:
    """Return the block's place in the caller's message; None for a message that projection put in beside it."""
    if at is None or (given.role is not message.role and message.role is not Role.SYSTEM):
        return None
    content = message.content
    if given.role is Role.TOOL and len(given.content) == 1 < len(content):  # one result of several
        result = given.content[0]
        same = [place for place, block in enumerate(content) if block is result]
        return same[0] if same else int(at)
    kept = [place for place in range(len(content)) if f"messages[{index}].content[{place}]" not in gone]
    return kept[int(at)] if int(at) < len(kept) else int(at)
