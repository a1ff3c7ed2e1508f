"""Rules of some services about which role may follow which, and which may stand last."""

from __future__ import annotations

from collections.abc import Sequence

from interlingua.plugins import Loss, append_member, dumps, message_loss, option_loss, was_answered
from interlingua.types import Message, Role
from interlingua_chat_completions.dialect import Dialect

_NOT_AFTER_RESULTS = (Role.USER, Role.SYSTEM)


def order_turns(
    messages: Sequence[Message], wire: Sequence[bytes], dialect: Dialect, losses: list[Loss], *, prefilled: bool = False
) -> list[bytes]:
    """Return a conversation's wire messages with the short turns between them that the service asks for.

    Nothing is dropped or moved; a turn that is put in has a loss.

    Args:
        messages: the conversation.
        wire: what each became; empty for one that is not sent.
        dialect: which rules there are.
        losses: gets a row for each turn put in.
        prefilled: the last message is the beginning of the answer, which the service is to continue.
    """
    out: list[bytes] = []
    last: Role | None = None
    for at, (message, written) in enumerate(zip(messages, wire, strict=True)):
        if not written:
            continue
        if dialect.after_results is not None and last is Role.TOOL and message.role in _NOT_AFTER_RESULTS:
            out.append(dumps({"role": "assistant", "content": dialect.after_results}))
            reason = (
                f"nothing but the assistant may speak after tool results; {dialect.after_results!r} was put before it"
            )
            losses.append(message_loss(at, reason, message.id))
        out.append(written)
        last = message.role
        if dialect.after_answer is None or last is not Role.ASSISTANT:
            continue
        if prefilled and not any(wire[at + 1 :]):
            continue
        if _is_answered(messages, at, wire):
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


def _is_answered(messages: Sequence[Message], at: int, wire: Sequence[bytes]) -> bool:
    """Return whether a model was, or is, asked behind this message: a turn put there then must stay for the cache."""
    if was_answered(messages, at):
        return True
    for later, written in zip(messages[at + 1 :], wire[at + 1 :], strict=True):
        if later.role is Role.ASSISTANT:
            return True
        if written:
            return False
    return True
