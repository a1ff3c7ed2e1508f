"""What one target would say of a conversation: what it cannot do, what its linter knows, and whether it fits.

Never sends anything: the request is written and looked at. The command line comes in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from interlingua.errors import CapabilityError, InvalidConversationError
from interlingua.plugins import estimate_input_tokens
from interlingua.request.prepare import Exchange
from interlingua.types.messages import Message
from interlingua_cli.doctor.finding import Finding
from interlingua_cli.lint import lint_request


def ask_target(messages: Sequence[Message], plan: Callable[[Sequence[Message]], Exchange]) -> tuple[Finding, ...]:
    """Return what the target would refuse.

    Args:
        messages: the conversation, repaired as far as it goes.
        plan: writes the request of a conversation to the target, without sending it.
    """
    if not messages:
        return ()
    try:
        exchange = plan(messages)
    except CapabilityError as error:
        hint = "choose another target, or change what it cannot take"
        refused = Finding(
            rule="cannot",
            line=None,
            path=error.path,
            message=str(error),
            citation="the target's capabilities",
            hint=hint,
        )
        return (refused,)
    except InvalidConversationError:
        return ()  # told by the rules themselves
    return tuple(_of_request(exchange))


def _of_request(exchange: Exchange) -> Iterator[Finding]:
    for found in lint_request(exchange.provider, exchange.wire):
        yield Finding(
            rule=found.rule,
            line=None,
            path=f"request.{found.path}" if found.path else "request",
            message=found.message,
            citation=found.citation,
            hint="see the loss ledger (`explain`) for what this part of the request was made of",
        )
    window = exchange.capabilities.max_context_tokens
    tokens = estimate_input_tokens(exchange.provider, exchange.messages, exchange.tools, exchange.options)
    if window and tokens > window:
        yield Finding(
            rule="too-long",
            line=None,
            path="request",
            message=f"about {tokens:,} input tokens, and the window has {window:,}",
            citation="the target's capabilities",
            hint="compact the conversation",
        )
