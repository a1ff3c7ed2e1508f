"""Elements -> the `messages` and `system` of a request: turns of one role, system placement, cache markers.

Never renders a block. A wire turn holds all neighbouring messages of its role, so results of a batch stand together,
before the user's text (sheet anthropic §4). `to_wire` comes in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from interlingua.fragments import json_array, remembered, spliced
from interlingua.jsontext import dumps
from interlingua.messages import Message, Role
from interlingua.wire import Loss
from interlingua_anthropic.elements import Elements, Mark, Row, to_wire_elements

_KEY = ("anthropic", "elements")
_SYSTEM_KEY = ("anthropic", "system")
_TAGGED_KEY = ("anthropic", "tagged")
_OPEN = {
    "user": b'{"role":"user","content":[',
    "assistant": b'{"role":"assistant","content":[',
    "system": b'{"role":"system","content":[',
}
MAX_MARKS = 4


class Turns(NamedTuple):
    """The conversation on this wire."""

    system: bytes | None
    messages: bytes
    losses: tuple[Loss, ...]
    ends_with: str | None


def elements_of(message: Message) -> Elements:
    """Return a message's elements, made once."""
    return remembered(message, _KEY, to_wire_elements)


def to_wire_turns(
    messages: Sequence[Message], marks_used: int = 0, without_thinking: Callable[[Message], Elements | None] | None = None
) -> Turns:
    """Join all messages.

    Args:
        messages: the projected conversation.
        marks_used: cache markers already spent on tools.
        without_thinking: returns replacement elements for messages whose thinking is no longer valid.
    """
    leading = _leading_system(messages)
    pieces: list[Elements] = []
    for at, message in enumerate(messages):
        if at < leading:
            pieces.append(remembered(message, _SYSTEM_KEY, _system_elements))
        elif message.role is Role.SYSTEM:
            pieces.append(_later_system(messages, at))
        else:
            replaced = without_thinking(message) if without_thinking is not None else None
            pieces.append(replaced or elements_of(message))
    losses = [_loss(row, messages[at], at) for at, piece in enumerate(pieces) if piece.rows for row in piece.rows]
    if any(piece.marks for piece in pieces):
        pieces = _marked(pieces, messages, MAX_MARKS - marks_used, losses)
    system = b",".join([piece.joined for piece in pieces[:leading] if piece.joined])
    body, last = _joined(pieces[leading:])
    return Turns(b"[" + system + b"]" if system else None, body, tuple(losses), last)


def _leading_system(messages: Sequence[Message]) -> int:
    for at, message in enumerate(messages):
        if message.role is not Role.SYSTEM:
            return at
    return len(messages)


def _joined(pieces: Sequence[Elements]) -> tuple[bytes, str | None]:
    out: list[bytes] = []
    role: str | None = None
    for piece in pieces:
        if not piece.joined:
            continue
        if piece.role == role:
            out.append(b",")
        else:
            out.append(b"]}," + _OPEN[piece.role] if role else _OPEN[piece.role])
            role = piece.role
        out.append(piece.joined)
    if role:
        out.append(b"]}")
    return b"[" + b"".join(out) + b"]", role


def _system_elements(message: Message) -> Elements:
    made = to_wire_elements(message)
    return made._replace(role="system")


def _later_system(messages: Sequence[Message], at: int) -> Elements:
    """A later system message stands in the list where the wire allows it, else as tagged user text (sheet §2)."""
    before = next((message.role for message in reversed(messages[:at]) if message.role is not Role.SYSTEM), None)
    after = next((message.role for message in messages[at + 1 :] if message.role is not Role.SYSTEM), None)
    if before in (Role.USER, Role.TOOL) and after in (None, Role.ASSISTANT):
        return remembered(messages[at], _SYSTEM_KEY, _system_elements)
    return remembered(messages[at], _TAGGED_KEY, _tagged)


def _tagged(message: Message) -> Elements:
    part = dumps({"type": "text", "text": f"<system>\n{message.text_content()}\n</system>"})
    row = Row(0, "text", "rewritten", "no system message may stand here on this wire; sent as tagged user text")
    return Elements("user", (part,), part, (), (row,))


def _marked(pieces: list[Elements], messages: Sequence[Message], room: int, losses: list[Loss]) -> list[Elements]:
    """Splice the cache markers in: the last ones count, a long-lived one may not follow a short-lived one (sheet §7)."""
    wanted = [(at, mark) for at, piece in enumerate(pieces) for mark in piece.marks]
    kept = wanted[max(len(wanted) - room, 0) :]
    for at, mark in wanted[: len(wanted) - len(kept)]:
        losses.append(_loss(Row(mark.element, "text", "dropped", "more cache hints than the wire takes"), messages[at], at))
    short = False
    by_piece: dict[int, list[Mark]] = {}
    for at, mark in kept:
        if mark.ttl == "1h" and short:
            row = Row(mark.element, "text", "rewritten", "a 1h cache marker may not follow a 5m one; sent as 5m")
            losses.append(_loss(row, messages[at], at))
            mark = Mark(mark.element, None)  # noqa: PLW2901
        short = short or mark.ttl != "1h"
        by_piece.setdefault(at, []).append(mark)
    return [_with_marks(piece, by_piece[at]) if at in by_piece else piece for at, piece in enumerate(pieces)]


def _with_marks(piece: Elements, marks: list[Mark]) -> Elements:
    parts = list(piece.parts)
    for mark in marks:
        parts[mark.element] = spliced(parts[mark.element], "cache_control", cache_control(mark.ttl))
    return piece._replace(joined=b",".join(parts))


def cache_control(ttl: str | None) -> bytes:
    """Write a cache marker."""
    return dumps({"type": "ephemeral"} if ttl is None else {"type": "ephemeral", "ttl": ttl})


def _loss(row: Row, message: Message, at: int) -> Loss:
    path = f"messages[{at}].content[{row.block}]"
    return Loss(path=path, block_type=row.block_type, verdict=row.verdict, reason=row.reason, message_id=message.id)


def empty_messages() -> bytes:
    """Return the messages of a request without any."""
    return json_array(())
