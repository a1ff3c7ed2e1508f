"""Rules some services have about who may speak behind whom, and about who may speak last (sheet mistral §2).

Never drops or moves a message: a short turn is put in between, and told.
The request writer comes in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from interlingua.json import dumps
from interlingua.plugins.encoding import append_member, was_answered
from interlingua.plugins.wire import Loss, message_loss, option_loss
from interlingua.types.messages import Message, Role
from interlingua_chat_completions.dialect import Dialect

_NOT_BEHIND_RESULTS = (Role.USER, Role.SYSTEM)


def breaks_order(
    messages: Sequence[Message], at: int, dialect: Dialect, wire_of: Callable[[Message], Sequence[bytes]]
) -> bool:
    """True when this message needs a turn put before or behind it.

    Args:
        messages: the conversation.
        at: the message asked about.
        dialect: which rules there are.
        wire_of: gives a message's elements; one without any is not there for the service.
    """
    role = messages[at].role
    if role is Role.ASSISTANT:
        return dialect.after_answer is not None and _asked_behind(messages, at, wire_of)
    if dialect.after_results is None or role not in _NOT_BEHIND_RESULTS:
        return False
    for place in range(at - 1, -1, -1):
        earlier = messages[place]
        if earlier.role is not Role.SYSTEM and wire_of(earlier):
            return earlier.role is Role.TOOL
    return False


def ordered(
    messages: Sequence[Message], wire: Sequence[Sequence[bytes]], dialect: Dialect, losses: list[Loss],
    *, prefilled: bool = False,
) -> list[bytes]:  # fmt: skip
    """Return the elements of a conversation in an order the service takes.

    Args:
        messages: the conversation.
        wire: the elements of each.
        dialect: which rules there are.
        losses: gets a row for each turn put in.
        prefilled: the last message is the beginning of the answer, which the service is to go on with.
    """
    out: list[bytes] = []
    last: Role | None = None
    parts_of = dict(zip(map(id, messages), wire, strict=True))
    for at, (message, parts) in enumerate(zip(messages, wire, strict=True)):
        if not parts:
            continue
        if dialect.after_results is not None and last is Role.TOOL and message.role in _NOT_BEHIND_RESULTS:
            out.append(dumps({"role": "assistant", "content": dialect.after_results}))
            reason = (
                f"nothing but the assistant may speak after tool results; {dialect.after_results!r} was put before it"
            )
            losses.append(message_loss(at, reason, message.id))
        out += parts
        last = message.role
        if dialect.after_answer is None or last is not Role.ASSISTANT:
            continue
        if prefilled and not any(wire[at + 1 :]):
            continue
        if _asked_behind(messages, at, lambda later: parts_of[id(later)]):
            out.append(dumps({"role": "user", "content": dialect.after_answer}))
            reason = f"the service answers nothing but the user or a tool; {dialect.after_answer!r} was put behind it"
            losses.append(message_loss(at, reason, message.id))
            last = Role.USER
    if prefilled and dialect.prefill_field is not None:
        _mark_prefill(out, last, dialect.prefill_field, losses)
    return out


def _mark_prefill(out: list[bytes], last: Role | None, field: str, losses: list[Loss]) -> None:
    if last is Role.ASSISTANT:
        out[-1] = append_member(out[-1], field, b"true")
        return
    reason = "the conversation does not end with the assistant's words, so there is nothing to go on with"
    losses.append(option_loss(f"provider_options.{field}", "dropped", reason))


def _asked_behind(messages: Sequence[Message], at: int, wire_of: Callable[[Message], Sequence[bytes]]) -> bool:
    """Tell whether a model was, or is, asked behind this message: what was put there then must stay (DESIGN 8)."""
    if was_answered(messages, at):
        return True
    for later in messages[at + 1 :]:
        if later.role is Role.ASSISTANT:
            return True
        if wire_of(later):
            return False
    return True
