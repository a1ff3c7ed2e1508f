"""The conversation -> `instructions` and `input`: system placement, cache markers, the ledger (sheet §2, §3).

Never renders a block; a message's bytes are made once and joined here (DESIGN 8).
`to_wire` comes in.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from interlingua.plugins import BlockLoss, Loss, remembered, was_answered
from interlingua.types import Message, Role
from interlingua_openai.responses.element import Elements
from interlingua_openai.responses.elements import text_of_system, to_wire_elements

_NAME = "openai.responses"
MAX_MARKS = 4


class Input(NamedTuple):
    """The conversation on this wire."""

    instructions: str | None
    items: bytes
    losses: tuple[Loss, ...]
    hinted: bool


def to_wire_input(messages: Sequence[Message], model: str) -> Input:
    """Join all messages."""
    hoisted = _hoisted(messages)
    plain, own = (_NAME,), (_NAME, model)
    make = partial(to_wire_elements, model=model)
    found = [
        remembered(message, own if message.role is Role.ASSISTANT else plain, make) for message in messages[hoisted:]
    ]
    losses = [_unmarked(message, at) for at, message in enumerate(messages[:hoisted]) if _hinted(message)]
    # few messages need more than their bytes
    special = [(at, element) for at, element in enumerate(found, hoisted) if any(element[1:])]
    if special:
        custom = {call_id for _, element in special for call_id in element.custom}
        if custom:
            _answer_custom(found, messages, hoisted, model, custom)
        losses += [row.at(at, messages[at].id) for at, element in special for row in element.rows]
        losses += _mark(found, [(at, block) for at, element in special for block in element.hints], messages, hoisted,
                        model, custom)  # fmt: skip
    instructions = "\n\n".join(filter(None, map(text_of_system, messages[:hoisted])))
    items = b",".join([element.joined for element in found if element.joined])
    hinted = any(element.hints for _, element in special) or any(map(_hinted, messages[:hoisted]))
    return Input(instructions or None, b"[" + items + b"]", tuple(losses), hinted)


def _hoisted(messages: Sequence[Message]) -> int:
    """Count the leading system messages that become `instructions`.

    They stay in the input where nothing or an assistant message follows: an empty input is refused, and what one
    turn said as an item the next must say so too.
    """
    for at, message in enumerate(messages):
        if message.role is not Role.SYSTEM:
            return 0 if at == 0 or was_answered(messages, at - 1) else at
    return 0


def _hinted(message: Message) -> bool:
    return any(getattr(block, "cache", None) is not None for block in message.content)


def _unmarked(message: Message, at: int) -> Loss:
    return BlockLoss(0, "text", "dropped", "instructions carry no cache marker").at(at, message.id)


def _elements(message: Message, model: str, marked: tuple[int, ...], custom: set[str]) -> Elements:
    """Return elements that depend on more than the message itself; the key says on what."""
    was_answered = tuple(block.tool_use_id for block in message.tool_results() if block.tool_use_id in custom)
    key = (_NAME, marked, was_answered)
    return remembered(message, key, partial(to_wire_elements, model=model, marked=marked, custom=was_answered))


def _answer_custom(
    found: list[Elements], messages: Sequence[Message], hoisted: int, model: str, custom: set[str]
) -> None:
    """Results of custom calls have an item type of their own."""
    for at in range(hoisted, len(messages)):
        if messages[at].role is Role.TOOL:
            found[at - hoisted] = _elements(messages[at], model, (), custom)


def _mark(
    found: list[Elements],
    hints: list[tuple[int, int]],
    messages: Sequence[Message],
    hoisted: int,
    model: str,
    custom: set[str],
) -> list[Loss]:
    """Write the last hints' messages again with markers: a request takes four (sheet §2, caching)."""
    wanted: dict[int, list[int]] = {}
    for at, block in hints[-MAX_MARKS:]:
        wanted.setdefault(at, []).append(block)
    for at, blocks in wanted.items():
        found[at - hoisted] = _elements(messages[at], model, tuple(blocks), custom)
    reason = "more cache hints than fit"
    return [
        BlockLoss(block, messages[at].content[block].type, "dropped", reason).at(at, messages[at].id)
        for at, block in hints[:-MAX_MARKS]
    ]
