"""What adapters that also serve their API share, and how their serving hooks are called."""

from __future__ import annotations

from interlingua_serving.answers import AnswerState, State, dumps_line, restore_answer
from interlingua_serving.hooks import (
    InboundRequest,
    ServeContext,
    StreamWriter,
    from_wire_request,
    stream_to_wire,
    to_wire_auxiliary,
    to_wire_error,
    to_wire_response,
)

__all__ = [
    "AnswerState",
    "InboundRequest",
    "ServeContext",
    "State",
    "StreamWriter",
    "dumps_line",
    "from_wire_request",
    "restore_answer",
    "stream_to_wire",
    "to_wire_auxiliary",
    "to_wire_error",
    "to_wire_response",
]
