"""The finish reason: the wire's words to the closed list, never an exception (REGRESSIONS case 20).

Never decides whether a stream is complete (the stream reader does) and keeps no state.
The reader of answers comes in.
"""

from __future__ import annotations

from interlingua.types.messages import StopReason

_REASONS = {
    "stop": StopReason.END_TURN,
    "end": StopReason.END_TURN,
    "end_turn": StopReason.END_TURN,
    "eos": StopReason.END_TURN,
    "stop_sequence": StopReason.STOP_SEQUENCE,
    "tool_calls": StopReason.TOOL_USE,
    "function_call": StopReason.TOOL_USE,
    "tool_use": StopReason.TOOL_USE,
    "length": StopReason.MAX_TOKENS,
    "max_tokens": StopReason.MAX_TOKENS,
    "model_length": StopReason.CONTEXT_WINDOW,
    "model_context_window_exceeded": StopReason.CONTEXT_WINDOW,
    "content_filter": StopReason.REFUSAL,
    "sensitive": StopReason.REFUSAL,
    "refusal": StopReason.REFUSAL,
    "error": StopReason.ERROR,
    "network_error": StopReason.ERROR,
}


def from_wire_finish(raw: str | None, *, calls: bool, refused: bool) -> StopReason:
    """Return why the model stopped.

    Args:
        raw: `finish_reason` as sent; None when the stream ended well without one.
        calls: the answer holds tool calls; forced ones finish with `stop` (sheet openai_chat §4).
        refused: the answer holds a refusal; there is no finish reason for it (sheet openai_chat §4).
    """
    reason = _REASONS.get((raw or "").lower())
    if reason is None or reason is StopReason.END_TURN:
        if refused:
            return StopReason.REFUSAL
        if calls:
            return StopReason.TOOL_USE
    return reason or StopReason.OTHER
