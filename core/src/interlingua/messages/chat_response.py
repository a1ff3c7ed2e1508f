"""Seed 002's `ChatResponse` as a view of a Message.

Never stores anything of its own and never goes back: the Message is the value.
Applications that speak seed 002's format may come in, through `interlingua.messages`.
"""

from __future__ import annotations

from typing import Any, Literal

import attrs

from interlingua.messages.message import Message
from interlingua.messages.metadata import StopReason

ChatStop = Literal["end_turn", "tool_use", "max_tokens", "stop_sequence"]
_STOPS: dict[StopReason, ChatStop] = {
    StopReason.END_TURN: "end_turn",
    StopReason.TOOL_USE: "tool_use",
    StopReason.MAX_TOKENS: "max_tokens",
    StopReason.STOP_SEQUENCE: "stop_sequence",
}


@attrs.frozen
class ChatResponse:
    """What seed 002 calls a response; every field is read from the message when asked for."""

    message: Message

    @property
    def content(self) -> str:
        """All text."""
        return self.message.text_content()

    @property
    def tool_calls(self) -> list[dict[str, Any]] | None:
        """`{id, name, arguments, parseError?}` per call, or None."""
        calls = [
            {"id": call.id, "name": call.name, "arguments": call.input}
            | ({"parseError": call.parse_error} if call.parse_error else {})
            for call in self.message.tool_calls()
        ]
        return calls or None

    @property
    def usage(self) -> dict[str, Any] | None:
        """`{inputTokens, outputTokens, cacheReadTokens?, cacheWriteTokens?, cost?}`, or None."""
        usage = self.message.metadata.usage
        if usage is None:
            return None
        optional = {
            "cacheReadTokens": usage.cached_input_tokens,
            "cacheWriteTokens": usage.cache_creation_input_tokens,
            "cost": None if usage.cost_usd is None else float(usage.cost_usd),
        }
        required = {"inputTokens": usage.input_tokens or 0, "outputTokens": usage.output_tokens or 0}
        return required | {name: value for name, value in optional.items() if value is not None}

    @property
    def model(self) -> str | None:
        """Canonical model id."""
        return self.message.metadata.model

    @property
    def stop_reason(self) -> ChatStop | None:
        """One of seed 002's four, or None where it has no word for ours."""
        reason = self.message.metadata.stop_reason
        return _STOPS.get(reason) if reason else None

    @property
    def thinking(self) -> str | None:
        """All shown reasoning, or None."""
        return "\n\n".join(block.text for block in self.message.thinking() if block.text) or None
