"""The events a whole message would have come as, for a stream whose server answered at once.

Never reads bytes; assembling these events gives the message's content again.
The client's reading comes in.
"""

from __future__ import annotations

from interlingua.blocks import TextBlock, ThinkingBlock, ToolUseBlock
from interlingua.events import (
    BlockEnd,
    BlockStart,
    MessageComplete,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolUseEnd,
    ToolUseInputDelta,
    ToolUseStart,
    UsageUpdate,
)
from interlingua.messages import Message, StopReason


def events_of(message: Message) -> list[StreamEvent]:
    """Return the events, the terminal one included."""
    events: list[StreamEvent] = []
    for index, block in enumerate(message.content):
        if isinstance(block, TextBlock):
            events.append(TextDelta(index=index, text=block.text))
        elif isinstance(block, ThinkingBlock):
            events.append(ThinkingDelta(index=index, text=block.text))
        elif isinstance(block, ToolUseBlock):
            keep_raw = block.raw_input is not None
            start = ToolUseStart(
                index=index, id=block.id, name=block.name, provider_id=block.provider_id, keep_raw=keep_raw
            )
            arguments = ToolUseInputDelta(index=index, partial_json=block.input_json)
            events += (start, arguments, ToolUseEnd(index=index, block=block))
            continue
        else:
            events.append(BlockStart(index=index, block=block))
        events.append(BlockEnd(index=index, block=block))
    metadata = message.metadata
    if metadata.usage is not None:
        events.append(UsageUpdate(usage=metadata.usage))
    reason = metadata.stop_reason or StopReason.OTHER
    events.append(MessageComplete(stop_reason=reason, stop_reason_raw=metadata.stop_reason_raw))
    return events
