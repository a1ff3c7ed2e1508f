"""The conversation -> `instructions` and `input`: system placement, cache markers, the ledger (sheet §2, §3).

Never renders a block; a message's bytes are made once and joined here (DESIGN 8).
`to_wire` comes in.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from interlingua.fragments import remembered
from interlingua.messages import Message, Role
from interlingua.wire import Loss
from interlingua_openai.responses.elements import Elements, Row, text_of_system, to_wire_elements

_NAME = "openai.responses"
MAX_MARKS = 4


class Input(NamedTuple):
    """The conversation on this wire."""

    instructions: str | None
    items: bytes
    losses: tuple[Loss, ...]


def to_wire_input(messages: Sequence[Message], model: str) -> Input:
    """Join all messages."""
    hoisted = _hoisted(messages)
    losses = [_loss(Row(0, "text", "dropped", "instructions carry no cache marker"), message, at)
              for at, message in enumerate(messages[:hoisted])
              if any(getattr(block, "cache", None) for block in message.content)]  # fmt: skip
    pieces: list[bytes] = []
    hints: list[tuple[int, int, int]] = []
    custom: set[str] = set()
    plain, own = (_NAME,), (_NAME, model)
    make = partial(to_wire_elements, model=model)
    for at in range(hoisted, len(messages)):
        message = messages[at]
        role = message.role
        if role is Role.TOOL and custom:
            made = _elements(message, model, (), custom)
        else:
            made = remembered(message, own if role is Role.ASSISTANT else plain, make)
        if made.joined:
            hints.extend([(at, block, len(pieces)) for block in made.hints])
            pieces.append(made.joined)
        if made.rows:
            losses.extend([_loss(row, message, at) for row in made.rows])
        if made.custom:
            custom.update(made.custom)
    if hints:
        _mark(pieces, hints, messages, model, custom, losses)
    instructions = "\n\n".join(filter(None, map(text_of_system, messages[:hoisted])))
    return Input(instructions or None, b"[" + b",".join(pieces) + b"]", tuple(losses))


def _hoisted(messages: Sequence[Message]) -> int:
    """Count the leading system messages that become `instructions`.

    They stay in the input where nothing or an assistant message follows: an empty input is refused, and what one
    turn said as an item the next must say so too.
    """
    for at, message in enumerate(messages):
        if message.role is not Role.SYSTEM:
            return 0 if message.role is Role.ASSISTANT else at
    return 0


def _elements(message: Message, model: str, marked: tuple[int, ...], custom: set[str]) -> Elements:
    """Return elements that depend on more than the message itself; the key says on what."""
    answered = tuple(block.tool_use_id for block in message.tool_results() if block.tool_use_id in custom)
    key = (_NAME, marked, answered)
    return remembered(message, key, partial(to_wire_elements, model=model, marked=marked, custom=answered))


def _mark(
    pieces: list[bytes],
    hints: list[tuple[int, int, int]],
    messages: Sequence[Message],
    model: str,
    custom: set[str],
    losses: list[Loss],
) -> None:
    """Write the last hints' messages again with markers: a request takes four (sheet §2, caching)."""
    for at, block, _ in hints[:-MAX_MARKS]:
        losses.append(_loss(Row(block, messages[at].content[block].type, "dropped", "more cache hints than fit"),
                            messages[at], at))  # fmt: skip
    wanted: dict[int, list[int]] = {}
    places: dict[int, int] = {}
    for at, block, place in hints[-MAX_MARKS:]:
        wanted.setdefault(at, []).append(block)
        places[at] = place
    for at, blocks in wanted.items():
        pieces[places[at]] = _elements(messages[at], model, tuple(blocks), custom).joined


def _loss(row: Row, message: Message, at: int) -> Loss:
    return Loss(
        path=f"messages[{at}].content[{row.block}]",
        block_type=row.block_type,
        verdict=row.verdict,
        reason=row.reason,
        message_id=message.id,
    )
