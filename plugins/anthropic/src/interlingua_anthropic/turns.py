"""Elements -> the `messages` and `system` of a request: turns of one role, system placement, cache markers.

Never renders a block. A wire turn holds all neighbouring messages of its role, so results of a batch stand together,
before the user's text (sheet anthropic §4). `to_wire` comes in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import attrs

from interlingua.json import dumps
from interlingua.plugins.encoding import Json, append_member, keep_grown, remembered, take_grown, was_answered
from interlingua.plugins.wire import BlockLoss, Loss, message_loss
from interlingua.types.blocks import OpaqueBlock, TextBlock
from interlingua.types.messages import SILENTLY_ANSWERED, Message, Role, StopReason
from interlingua_anthropic.body import Body
from interlingua_anthropic.elements import Elements, Mark, to_wire_elements
from interlingua_anthropic.usual import WRITTEN, usual_blocks

_ASSISTANT, _SYSTEM = Role.ASSISTANT, Role.SYSTEM  # an enum's member is found by a slow call before Python 3.12
_KEY = ("anthropic", "elements")
_GROWN_KEY = ("anthropic", "grown")
_SYSTEM_KEY = ("anthropic", "system")
_TAGGED_KEY = ("anthropic", "tagged")
_TRIMMED_KEY = ("anthropic", "trim_trace")
MAX_MARKS = 4
FIRST_USER = b'{"type":"text","text":"(The conversation begins with the assistant.)"}'
NO_ANSWER = b'{"type":"text","text":"(No answer.)"}'


class Turns(NamedTuple):
    """The conversation on this wire."""

    system: bytes | None
    messages: Json
    losses: tuple[Loss, ...]
    ends_with: str | None


class Spent(NamedTuple):
    """Cache markers that stand before the conversation: how many, and whether one of them is short-lived."""

    markers: int = 0
    short: bool = False


def elements_of(message: Message) -> Elements:
    """Return a message's elements, made once."""
    return remembered(message, _KEY, to_wire_elements)


def to_wire_turns(
    messages: Sequence[Message], spent: Spent, without_thinking: Callable[[Message], Elements | None] | None = None
) -> Turns:
    """Join all messages.

    Args:
        messages: the projected conversation.
        spent: cache markers already on the tools.
        without_thinking: returns replacement elements for messages whose thinking is no longer valid.
    """
    usual = _usual(messages) if without_thinking is None else None
    if usual is not None:
        return usual
    leading = _leading_system(messages)
    pieces: list[Elements] = []
    noted = False
    for at, message in enumerate(messages):
        if message.role is Role.SYSTEM:
            known = at < leading
            piece = remembered(message, _SYSTEM_KEY, _system_elements) if known else _later_system(messages, at)
        else:
            replaced = without_thinking(message) if without_thinking is not None else None
            piece = replaced or message.memo.get(_KEY) or elements_of(message)
            if piece.loose_end:
                piece = _trimmed(piece, messages, at)
        pieces.append(piece)
        noted = noted or piece.rows != () or piece.marks != ()
    losses: list[Loss] = []
    if noted:
        losses = [row.at(at, messages[at].id) for at, piece in enumerate(pieces) for row in piece.rows]
        pieces = _marked(pieces, messages, spent, losses)
    system = b",".join([piece.joined for piece in pieces[:leading] if piece.joined])
    spoken = pieces[leading:]
    if next((piece.role for piece in spoken if piece.joined), "user") == "assistant":
        reason = "this wire's first message is the user's; one that says so was put before it"
        losses.append(message_loss(leading, reason))
        spoken.insert(0, Elements("user", (FIRST_USER,), FIRST_USER, (), ()))
    body = Body()
    for at, piece in enumerate(spoken, len(messages) - len(spoken)):
        if not piece.joined:
            continue
        if body.last == "system" and piece.role == "user":
            reason = "behind a system message stands an answer; one that says so was put before it, for it said nothing"
            losses.append(message_loss(at, reason))
            body.put("assistant", NO_ANSWER)
        body.put(piece.role, piece.joined)
    return Turns(b"[" + system + b"]" if system else None, body.closed(), tuple(losses), body.last)


def _usual(messages: Sequence[Message]) -> Turns | None:
    """Join a conversation in which nothing is lost, marked or moved, from where it was joined last; None: it is not."""
    leading = _leading_system(messages)
    first = [remembered(message, _SYSTEM_KEY, _system_elements) for message in messages[:leading]]
    spoken = messages[leading:]
    known, made = take_grown(spoken, _GROWN_KEY)
    body: Body = made or Body()
    if any(piece.rows or piece.marks for piece in first) or (spoken and spoken[0].role is Role.ASSISTANT):
        return None
    for at in range(known, len(spoken)):
        message = spoken[at]
        if message.role is _SYSTEM:
            return None
        role = "assistant" if message.role is _ASSISTANT else "user"
        memo = message.memo
        joined: bytes | None = memo.get(WRITTEN) if memo else None
        if joined is None:
            blocks = usual_blocks(message)
            if blocks is not None:
                body.say(role, blocks)
                continue
            _, _, joined, marks, rows, loose_end = elements_of(message)
            if rows or marks or (loose_end and was_answered(spoken, at)):
                return None
        if joined:
            body.put(role, joined)
    keep_grown(spoken, _GROWN_KEY, body)
    system = b",".join([piece.joined for piece in first if piece.joined])
    return Turns(b"[" + system + b"]" if system else None, body.closed(), (), body.last)


def _leading_system(messages: Sequence[Message]) -> int:
    for at, message in enumerate(messages):
        if message.role is not Role.SYSTEM:
            return at
    return len(messages)


def _system_elements(message: Message) -> Elements:
    made = to_wire_elements(message)
    return made._replace(role="system")


def _later_system(messages: Sequence[Message], at: int) -> Elements:
    """A later system message stands in the list where the wire allows it, else as tagged user text (sheet §2).

    The wire allows it before an answer. One that said nothing is not sent back: what stood before it stays as it was
    sent, and the joining says that there was no answer (decision 151).
    """
    if _is_asked_behind(messages, at) and _may_precede_system(_before(messages, at)):
        return remembered(messages[at], _SYSTEM_KEY, _system_elements)
    return remembered(messages[at], _TAGGED_KEY, _tagged)


def _is_asked_behind(messages: Sequence[Message], at: int) -> bool:
    """Tell whether a model was, or is, asked behind this system message and others beside it."""
    for place in range(at, len(messages)):
        if messages[place].role is not Role.SYSTEM:
            return False
        if was_answered(messages, place):
            return True
    return True


def _before(messages: Sequence[Message], at: int) -> Message | None:
    """Return what stands before this system message and others beside it; None: an answer that said nothing."""
    for place in range(at - 1, -1, -1):
        message = messages[place]
        if message.role is not Role.SYSTEM:
            return message
        if SILENTLY_ANSWERED in message.memo:
            return None
    return None


def _may_precede_system(message: Message | None) -> bool:
    if message is None:
        return False
    if message.role in (Role.USER, Role.TOOL):
        return True
    last = message.content[-1] if message.content else None
    return isinstance(last, OpaqueBlock) and "tool" in last.kind  # an assistant turn that ends in server-tool use


def _tagged(message: Message) -> Elements:
    part = dumps({"type": "text", "text": f"<system>\n{message.text_content()}\n</system>"})
    row = BlockLoss(0, "text", "rewritten", "no system message may stand here on this wire; sent as tagged user text")
    marks = elements_of(message).marks[-1:]
    return Elements("user", (part,), part, tuple(mark._replace(element=0) for mark in marks), (row,))


def _trimmed(piece: Elements, messages: Sequence[Message], at: int) -> Elements:
    """Trim the end of assistant text that the model is to continue: trailing whitespace is refused there (sheet §4).

    Also once another assistant message followed it, so that the prefix stays what it was when this one was last.
    """
    message = messages[at]
    last = message.content[-1]
    if type(last) is not TextBlock or last.text == last.text.rstrip() or not piece.parts:
        return piece
    if not was_answered(messages, at):
        return piece
    if message.metadata.stop_reason is StopReason.PAUSE_TURN:
        return piece  # continued as it stands (sheet §7)
    text = attrs.evolve(last, text=last.text.rstrip())
    end = remembered(message, _TRIMMED_KEY, lambda old: elements_of(attrs.evolve(old, content=(text,))))
    parts = (*piece.parts[:-1], *end.parts)
    row = BlockLoss(len(message.content) - 1, "text", "rewritten", "white space at the end of the text was trimmed")
    return piece._replace(parts=parts, joined=b",".join(parts), rows=(*piece.rows, row))


def _marked(pieces: list[Elements], messages: Sequence[Message], spent: Spent, losses: list[Loss]) -> list[Elements]:
    """Splice the cache markers in: the last ones count, and 1h may not follow 5m (sheet §7)."""
    wanted = [(at, mark) for at, piece in enumerate(pieces) for mark in piece.marks]
    first = max(len(wanted) - (MAX_MARKS - spent.markers), 0)
    for at, mark in wanted[:first]:
        row = BlockLoss(mark.block, mark.block_type, "dropped", "more cache hints than the wire takes")
        losses.append(row.at(at, messages[at].id))
    short = spent.short
    by_piece: dict[int, list[Mark]] = {}
    for at, mark in wanted[first:]:
        kept = mark
        if mark.ttl == "1h" and short:
            reason = "a 1h cache marker may not follow a 5m one; sent as 5m"
            losses.append(BlockLoss(mark.block, mark.block_type, "rewritten", reason).at(at, messages[at].id))
            kept = mark._replace(ttl=None)
        short = short or kept.ttl != "1h"
        by_piece.setdefault(at, []).append(kept)
    return [_with_marks(piece, by_piece[at]) if at in by_piece else piece for at, piece in enumerate(pieces)]


def _with_marks(piece: Elements, marks: list[Mark]) -> Elements:
    parts = list(piece.parts)
    for mark in marks:
        parts[mark.element] = append_member(parts[mark.element], "cache_control", cache_control(mark.ttl))
    return piece._replace(joined=b",".join(parts))


def cache_control(ttl: str | None) -> bytes:
    """Write a cache marker."""
    return dumps({"type": "ephemeral"} if ttl is None else {"type": "ephemeral", "ttl": ttl})
