"""Rules of some services about which role may follow which, and which may be last."""

from __future__ import annotations

from collections.abc import Sequence

from interlingua.errors import CapabilityError
from interlingua.plugins import Loss, dumps, json_object_with, message_loss, option_loss
from interlingua.types import Message, Role
from interlingua_chat_completions.dialect import Dialect

_NOT_AFTER_RESULTS = (Role.USER, Role.SYSTEM)


def order_turns(
    messages: Sequence[Message], wire: Sequence[bytes], dialect: Dialect, losses: list[Loss], *, prefilled: bool = False
) -> list[bytes]:
    """Return a conversation's wire messages with the short turns between them that the service requires.

    No message is dropped or moved; each inserted turn has a loss.

    Args:
        messages: the conversation.
        wire: each message on the wire; empty if it is not sent.
        dialect: determines the rules.
        losses: receives a row for each inserted turn.
        prefilled: the last message is the beginning of the answer, which the service should continue.

    Raises:
        CapabilityError: there is no user message, and the service requires one.
    """
    out: list[bytes] = []
    last: Role | None = None
    for at, (message, written) in enumerate(zip(messages, wire, strict=True)):
        if not written:
            continue
        if dialect.after_results is not None and last is Role.TOOL and message.role in _NOT_AFTER_RESULTS:
            out.append(dumps({"role": "assistant", "content": dialect.after_results}))
            reason = (
                f"only the assistant may follow tool results; its turn {dialect.after_results!r} was inserted before it"
            )
            losses.append(message_loss(at, reason, message.id))
        out.append(written)
        last = message.role
    asked = not dialect.needs_user or any(message.role is Role.USER for message in messages)
    if last is not None and (not asked or (last is Role.SYSTEM and dialect.prefill_field is not None)):
        raise CapabilityError("this service answers only user messages: add a user message", path="messages")
    if dialect.prefill_field is not None:
        if prefilled:
            _mark_prefill(out, last, dialect.prefill_field, losses)
        elif last is Role.ASSISTANT:
            reason = (
                "the history ends with an assistant message, which this service answers with 400; add a user message, "
                f"or continue the answer: provider_options={{'{dialect.prefill_field}': True}}"
            )
            losses.append(message_loss(len(messages) - 1, reason, messages[-1].id))
    return out


def _mark_prefill(out: list[bytes], last: Role | None, field: str, losses: list[Loss]) -> None:
    if last is Role.ASSISTANT:
        out[-1] = json_object_with(out[-1], field, b"true")
        return
    reason = "the conversation does not end with the assistant's words, so there is no answer to continue"
    losses.append(option_loss(f"provider_options.{field}", "dropped", reason))
