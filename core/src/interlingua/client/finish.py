"""What an answer gets when it is whole: its cost, its latency, and a look at the calls it makes.

Never changes what was said: a bad tool input is told to observers, and the message stays (seed 003).
The client's exchange comes in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from interlingua.blocks import ToolUseBlock
from interlingua.messages import Message, MessageStatus

if TYPE_CHECKING:
    from interlingua.client.exchange import Exchange

UNFINISHED_COST = "the answer was cut off before the provider's final count"


def finished(exchange: Exchange, message: Message, latency_ms: int) -> Message:
    """Return the message with its usage completed; calls with bad inputs are told to observers.

    Args:
        exchange: the request it answers.
        message: as the adapter made it.
        latency_ms: milliseconds from sending to now.
    """
    metadata = message.metadata
    usage = metadata.usage
    if usage is not None:
        if metadata.status is MessageStatus.COMPLETE:
            from interlingua.pricing import cost_of  # noqa: PLC0415  not needed until there is an answer

            info = exchange.core.info(exchange.provider, exchange.options.model)
            usage = attrs.evolve(cost_of(usage, info, message.created_at), latency_ms=latency_ms)
        else:
            usage = attrs.evolve(usage, cost_note=UNFINISHED_COST, latency_ms=latency_ms)
        message = attrs.evolve(message, metadata=attrs.evolve(metadata, usage=usage))
    if metadata.status is MessageStatus.COMPLETE and exchange.tools:
        _tell_bad_inputs(exchange, message)
    return message


def _tell_bad_inputs(exchange: Exchange, message: Message) -> None:
    """Check inputs only where somebody listens: checking a large one costs more than receiving it."""
    registry = exchange.core.registry
    calls = message.tool_calls()
    if not calls or not any(hasattr(plugin, "observe") for plugin in registry.plugins):
        return
    definitions = {tool.name: tool for tool in exchange.tools}
    for call in calls:
        for path, why in _violations(call, definitions.get(call.name)):
            registry.observe(
                {
                    "type": "tool_input_invalid",
                    "session_id": message.session_id,
                    "message_id": message.id,
                    "tool_use_id": call.id,
                    "tool": call.name,
                    "path": path,
                    "message": why,
                }
            )


def _violations(call: ToolUseBlock, definition: Any) -> list[tuple[str, str]]:
    if call.parse_error is not None:
        return [("", call.parse_error)]
    if definition is None:
        return [("", f"no tool {call.name!r} was offered")]
    from interlingua.tools import validate_input  # noqa: PLC0415  loads the validator

    return [(one.path, one.message) for one in validate_input(definition, call.input)]
