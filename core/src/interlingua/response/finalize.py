"""What only the client knows of an answer: cost, latency, and tool inputs that break their schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from interlingua.catalogue import ModelInfo
from interlingua.frozen import replace
from interlingua.plugins.registry import Registry
from interlingua.pricing import cost_fields
from interlingua.types.blocks import ToolUseBlock
from interlingua.types.messages import Message, MessageStatus, Usage
from interlingua.types.tools import ToolDefinition

UNFINISHED_COST = "the answer was cut off before the provider's final count"


def with_cost(message: Message, info: ModelInfo | None, latency_ms: int) -> Message:
    """Return the message with its usage completed.

    Args:
        message: as the adapter made it, with a usage.
        info: the catalogue's entry of its model, for a complete message.
        latency_ms: milliseconds from sending to now.
    """
    metadata = message.metadata
    usage: Usage = metadata.usage or Usage()
    if metadata.status is MessageStatus.COMPLETE:
        usage = replace(usage, latency_ms=latency_ms, **cost_fields(usage, info, message.created_at))
    else:
        usage = replace(usage, cost_note=UNFINISHED_COST, latency_ms=latency_ms)
    return replace(message, metadata=replace(metadata, usage=usage))


def report_invalid_tool_inputs(message: Message, tools: Sequence[ToolDefinition], registry: Registry) -> None:
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
    from interlingua.types.tools import validate_input  # noqa: PLC0415  loads the validator

    return [(one.path, one.message) for one in validate_input(definition, call.input)]
