"""Rules some services have about which message may follow which, and what they want on the last one (sheet mistral §2).

Never drops or moves a message: a short assistant turn is put in between, and told.
The request writer comes in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from interlingua.fragments import spliced
from interlingua.jsontext import dumps
from interlingua.messages import Message, Role
from interlingua.wire import Loss
from interlingua_chat_completions.dialect import Dialect

_NOT_BEHIND_RESULTS = (Role.USER, Role.SYSTEM)


def breaks_order(
    messages: Sequence[Message], at: int, dialect: Dialect, wire_of: Callable[[Message], Sequence[bytes]]
) -> bool:
    """True when this message needs one put before it, or a field for standing last.

    Args:
        messages: the conversation.
        at: the message asked about.
        dialect: which rules there are.
        wire_of: gives a message's elements; one without any is not there for the service.
    """
    role = messages[at].role
    if role is Role.ASSISTANT:
        return dialect.prefill_field is not None and at == len(messages) - 1
    if dialect.after_results is None or role not in _NOT_BEHIND_RESULTS:
        return False
    for place in range(at - 1, -1, -1):
        earlier = messages[place]
        if earlier.role is not Role.SYSTEM and wire_of(earlier):
            return earlier.role is Role.TOOL
    return False


def ordered(
    messages: Sequence[Message], wire: Sequence[Sequence[bytes]], dialect: Dialect, losses: list[Loss]
) -> list[bytes]:
    """Return the elements of a conversation in an order the service takes."""
    out: list[bytes] = []
    last: Role | None = None
    for at, (message, parts) in enumerate(zip(messages, wire, strict=True)):
        if not parts:
            continue
        if dialect.after_results is not None and last is Role.TOOL and message.role in _NOT_BEHIND_RESULTS:
            out.append(dumps({"role": "assistant", "content": dialect.after_results}))
            reason = (
                f"nothing but the assistant may speak after tool results; {dialect.after_results!r} was put before it"
            )
            path = f"messages[{at}]"
            loss = Loss(path=path, block_type="message", verdict="rewritten", reason=reason, message_id=message.id)
            losses.append(loss)
        out += parts
        last = message.role
    if dialect.prefill_field is not None and last is Role.ASSISTANT:
        out[-1] = spliced(out[-1], dialect.prefill_field, b"true")
    return out
