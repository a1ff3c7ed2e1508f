"""Write answers of any model as bodies of the Messages API (WIRE.md, Serving)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.errors import ServerError
from interlingua.plugins import EMPTY, Loss, WireResponse, dumps
from interlingua.types import (
    ContentBlock,
    Message,
    OpaqueBlock,
    RawUpdate,
    RedactedThinkingBlock,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
    ToolUseStart,
    Usage,
)
from interlingua_anthropic.errors import to_wire_error
from interlingua_serving import AnswerState, ServeContext

_STOPS = {
    StopReason.END_TURN: "end_turn",
    StopReason.STOP_SEQUENCE: "stop_sequence",
    StopReason.TOOL_USE: "tool_use",
    StopReason.MAX_TOKENS: "max_tokens",
    StopReason.CONTEXT_WINDOW: "model_context_window_exceeded",
    StopReason.REFUSAL: "refusal",
    StopReason.PAUSE_TURN: "pause_turn",
    StopReason.OTHER: "end_turn",
}
_SEALED = (RedactedThinkingBlock, OpaqueBlock)  # blocks of other origins that only they can use
_JSON = {"content-type": "application/json"}
_STATELESS = "state of the model that answered has no place here; there is nothing to seal it with"
_LATE = "state of the model arrived after the last place at which it could be sealed"


def to_wire_response(message: Message, context: ServeContext) -> WireResponse:
    """Write a whole answer from the blocks of its stream."""
    metadata = message.metadata
    if metadata.stop_reason is StopReason.ERROR:
        return to_wire_error(ServerError("the model's answer ended with an error"), context)
    writer = AnswerBlocks(context)
    writer.add_message(message)
    raw = metadata.provider_raw or EMPTY
    trace = raw.get("trace", EMPTY) if context.is_own else EMPTY
    body = {
        **envelope(context),
        "content": writer.content,
        "stop_reason": metadata.stop_reason
        and to_wire_stop(metadata.stop_reason, metadata.stop_reason_raw, context, called=bool(message.tool_calls)),
        "stop_sequence": trace.get("stop_sequence"),
        "usage": to_wire_usage(metadata.usage or Usage()),
    }
    if stop_details := trace.get("stop_details"):
        body["stop_details"] = stop_details
    return WireResponse(headers=_JSON, body=dumps(body), losses=tuple(writer.losses))


def envelope(context: ServeContext) -> dict[str, Any]:
    """Return the first members of every answer."""
    return {"id": f"msg_{context.answer_id}", "type": "message", "role": "assistant", "model": context.model}


def to_wire_stop(reason: StopReason | None, raw: str | None, context: ServeContext, *, called: bool) -> str:
    """Return the stop reason in this API's words; `called` is True if the answer has calls."""
    if context.is_own and raw:
        return raw
    if not context.is_own and (reason is StopReason.PAUSE_TURN or (reason is StopReason.TOOL_USE and not called)):
        return "end_turn"  # it waits for a tool of the service, which the caller does not know
    return _STOPS.get(reason or StopReason.OTHER, "end_turn")


def to_wire_usage(usage: Usage) -> dict[str, Any]:
    """Write the counts, which this API requires: an unknown count is 0."""
    parts = usage.buckets()
    written: dict[str, Any] = {
        "input_tokens": parts.uncached_input,
        "cache_creation_input_tokens": parts.cache_creation_input,
        "cache_read_input_tokens": parts.cached_input,
        "output_tokens": usage.output_tokens or 0,
    }
    if (hour := usage.cache_creation_1h_input_tokens) is not None:
        short = max(parts.cache_creation_input - hour, 0)
        written["cache_creation"] = {"ephemeral_5m_input_tokens": short, "ephemeral_1h_input_tokens": hour}
    if usage.reasoning_tokens is not None:
        written["output_tokens_details"] = {"thinking_tokens": usage.reasoning_tokens}
    if searches := (usage.extra_units or EMPTY).get("web_search"):
        written["server_tool_use"] = {"web_search_requests": searches}
    if usage.service_tier in ("standard", "priority", "batch"):
        written["service_tier"] = usage.service_tier
    return written


class AnswerBlocks:
    """Converts the blocks of whole answers and streams: this API's own unchanged, the state of others sealed.

    A seal is the signature of a thinking block. Before a block without a thinking block, an empty one is added, because
    callers send thinking blocks back. No block is added after the last one, where some callers leave it out.
    """

    def __init__(self, context: ServeContext) -> None:
        self.context = context
        self.content: list[dict[str, Any]] = []
        self.losses: list[Loss] = []
        self.state = AnswerState(context.origin, strings=False)

    def add_message(self, message: Message) -> None:
        """Add all blocks of an answer; state after the last block of this API is sealed before that block."""
        if self.context.is_own:
            self.content += [made for block in message.content if (made := self.to_wire(block)) is not None]
            return
        if replay := (message.metadata.provider_raw or EMPTY).get("replay"):
            self.state.note(RawUpdate(replay=replay))
        blocks = list(enumerate(message.content))
        last = max((at for at, block in blocks if not isinstance(block, _SEALED)), default=-1)
        for index, block in blocks[: last + 1]:
            ended = index == last and last + 1 < len(blocks)
            for at, each in blocks[index:] if ended else [(index, block)]:
                self.state.add(at, each, each.id if isinstance(each, ToolUseBlock) else "")
            if isinstance(block, (TextBlock, ToolUseBlock)) and (carrier := self.carrier(whole=ended)) is not None:
                self.content.append(carrier)
            if (made := self.to_wire(block, whole=ended)) is not None:
                self.content.append(made)
        if last < 0:
            for at, each in blocks:
                self.state.add(at, each)
            if (carrier := self.carrier(whole=True)) is not None:
                self.content.append(carrier)
        self.end()

    def end(self) -> None:
        """Record state that is not yet sealed as lost: callers would not send a block after the last one."""
        if not self.context.is_own and self.state.take() is not None:
            self.losses.append(Loss(path="content", block_type="message", verdict="dropped", reason=_LATE))

    def carrier(self, *, whole: bool = False) -> dict[str, Any] | None:
        """Return an empty thinking block with the state since the last seal, or with all; None if there is no state."""
        state = None if self.context.is_own else self.state.take(whole=whole)
        return None if state is None or not (seal := self._sealed(state)) else to_wire_thinking_block("", seal)

    def to_wire(self, block: ContentBlock, *, whole: bool = False) -> dict[str, Any] | None:
        """Return the block of this API; None if it is sealed, or lost. A thinking block carries new or all state."""
        own = self.context.is_own
        if isinstance(block, TextBlock):
            text: dict[str, Any] = {"type": "text", "text": block.text}
            return {**text, "citations": block.citations} if own and block.citations else text
        if isinstance(block, ToolUseBlock):
            return {"type": "tool_use", "id": self.call_id(block), "name": block.name, "input": call_input(block)}
        if isinstance(block, ThinkingBlock):
            return to_wire_thinking_block(block.text, (block.signature or "") if own else self.seal(whole=whole))
        if own and isinstance(block, RedactedThinkingBlock):
            return {"type": "redacted_thinking", "data": block.data}
        if own and isinstance(block, OpaqueBlock) and isinstance(block.data, Mapping):
            return dict(block.data)
        if not isinstance(block, _SEALED):
            reason = f"this API has no {block.type} in an answer"
            self.losses.append(Loss(path="content", block_type=block.type, verdict="dropped", reason=reason))
        return None

    def call_id(self, call: ToolUseBlock | ToolUseStart) -> str:
        """Return the id that the caller receives."""
        return (call.provider_id if self.context.is_own else None) or call.id

    def seal(self, *, whole: bool = False) -> str:
        """Return the signature of a thinking block: the state sealed here, which is at least the origin."""
        state = self.state.take(always=True, whole=whole)
        return self._sealed(state) if state is not None else ""

    def _sealed(self, state: Mapping[str, Any]) -> str:
        if self.context.seal is not None:
            return self.context.seal(state)
        if state["blocks"] or state["replay"]:
            self.losses.append(Loss(path="content", block_type="thinking", verdict="dropped", reason=_STATELESS))
        return ""


def to_wire_thinking_block(text: str, signature: str) -> dict[str, Any]:
    """Return a thinking block."""
    return {"type": "thinking", "thinking": text, "signature": signature}


def call_input(block: ToolUseBlock) -> Any:
    """Return a call's arguments, which must be an object in this API."""
    return block.input if block.parse_error is None else {"invalid_json": block.raw_input}


def to_wire_auxiliary(kind: str, value: Any, context: ServeContext) -> WireResponse | None:
    """Write a list of models, one model, or a count of tokens."""
    if kind == "count_tokens":
        return WireResponse(headers=_JSON, body=dumps({"input_tokens": value}))
    if kind not in ("models", "model"):
        return None
    created = context.clock().strftime("%Y-%m-%dT%H:%M:%SZ")
    names = value if kind == "models" else [value.name]
    data = [{"type": "model", "id": name, "display_name": name, "created_at": created} for name in names]
    if kind == "model":
        return WireResponse(headers=_JSON, body=dumps(data[0]))
    ends = {"first_id": value[0], "last_id": value[-1]} if value else {"first_id": None, "last_id": None}
    return WireResponse(headers=_JSON, body=dumps({"data": data, "has_more": False, **ends}))
