"""What an answer gets when it is whole: its cost, its latency, and a look at the calls it makes.

Never changes what was said: a bad tool input is told to observers, and the message stays (seed 003).
The client's exchange comes in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from interlingua.blocks import ToolUseBlock
from interlingua.catalogue import ModelInfo
from interlingua.messages import Message, MessageStatus, Usage
from interlingua.pricing import cost_fields
from interlingua.registry import Registry
from interlingua.tools import ToolDefinition
from interlingua.values import evolve

UNFINISHED_COST = "the answer was cut off before the provider's final count"


def priced(message: Message, info: ModelInfo | None, latency_ms: int) -> Message:
    """Return the message with its usage completed.

    Args:
        message: as the adapter made it, with a usage.
        info: the catalogue's entry of its model, for a complete message.
        latency_ms: milliseconds from sending to now.
    """
    metadata = message.metadata
    usage: Usage = metadata.usage or Usage()
    if metadata.status is MessageStatus.COMPLETE:
        usage = evolve(usage, latency_ms=latency_ms, **cost_fields(usage, info, message.created_at))
    else:
        usage = evolve(usage, cost_note=UNFINISHED_COST, latency_ms=latency_ms)
    return evolve(message, metadata=evolve(metadata, usage=usage))


def tell_bad_inputs(message: Message, tools: Sequence[ToolDefinition], registry: Registry) -> None:
    """Check inputs only where somebody listens: checking a large one costs more than receiving it."""
    calls = message.tool_calls()
    if not calls or not any(hasattr(plugin, "observe") for plugin in registry.plugins):
        return
    definitions = {tool.name: tool for tool in tools}
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
