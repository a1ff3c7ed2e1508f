"""Rules of some services about which role may follow which, and which may stand last."""

from __future__ import annotations

from collections.abc import Sequence

from interlingua.errors import CapabilityError
from interlingua.plugins import Loss, append_member, dumps, message_loss, option_loss
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

    Raises:
        CapabilityError: an assistant or system message stands last, or no user speaks, and the service refuses that.
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
    if dialect.needs_user and not any(
        written and message.role is Role.USER for message, written in zip(messages, wire, strict=True)
    ):
        raise CapabilityError("this service wants at least one user message: add one", path="messages")
    if dialect.prefill_field is not None:
        if prefilled:
            _mark_prefill(out, last, dialect.prefill_field, losses)
        elif last is not Role.USER and last is not Role.TOOL:
            text = "an assistant or system message stands last, and this service answers the user or a tool"
            option = f"provider_options={{'{dialect.prefill_field}': True}}"
            raise CapabilityError(f"{text}: add a user message, or go on with the answer: {option}", path="messages")
    return out


def _mark_prefill(out: list[bytes], last: Role | None, field: str, losses: list[Loss]) -> None:
    if last is Role.ASSISTANT:
        out[-1] = append_member(out[-1], field, b"true")
        return
    reason = "the conversation does not end with the assistant's words, so there is nothing to go on with"
    losses.append(option_loss(f"provider_options.{field}", "dropped", reason))
