"""Write answers of any model as bodies and chunks of this API (WIRE.md, Serving)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.errors import InterlinguaError, ServerError
from interlingua.plugins import EMPTY, FrozenDict, Loss, WireResponse, dumps
from interlingua.types import (
    BlockEnd,
    ContentBlock,
    Message,
    MessageComplete,
    OpaqueBlock,
    RawUpdate,
    RedactedThinkingBlock,
    StopReason,
    StreamEvent,
    TextBlock,
    TextDelta,
    ThinkingBlock,
    ThinkingDelta,
    ToolUseBlock,
    ToolUseEnd,
    ToolUseInputDelta,
    ToolUseStart,
    Usage,
)
from interlingua_google.errors import error_envelope, to_wire_error
from interlingua_google.messages import MEDIA, OTHER_CANDIDATE, media_key, to_wire_media, with_extras
from interlingua_google.stream import TRACED_OF_ANSWER
from interlingua_serving import AnswerState, BaseStreamWriter, ServeContext, dumps_line, read_call

_STOPS = {
    StopReason.MAX_TOKENS: "MAX_TOKENS",
    StopReason.CONTEXT_WINDOW: "MAX_TOKENS",
    StopReason.REFUSAL: "SAFETY",
}
_JSON = {"content-type": "application/json; charset=UTF-8"}
_STATELESS = "state of the model that answered has no place here; there is nothing to seal it with"


def to_wire_response(message: Message, context: ServeContext) -> WireResponse:
    """Write a whole answer: the parts of its stream."""
    metadata = message.metadata
    if metadata.stop_reason is StopReason.ERROR:
        return to_wire_error(ServerError("the model's answer ended with an error"), context)
    raw = metadata.provider_raw or EMPTY
    parts = AnswerParts(context)
    parts.note_raw(raw.get("replay"), raw.get("trace"))
    for index, block in enumerate(message.content):
        parts.add(index, block)
    last = parts.take_last()
    made = [*parts.ready, *last]
    candidate = parts.ending(metadata.stop_reason, metadata.stop_reason_raw)
    if made:
        candidate = {"content": {"parts": made, "role": "model"}, **candidate}
    usage = parts.usage(metadata.usage)
    body: dict[str, Any] = {"candidates": [candidate], **({"usageMetadata": usage} if usage else {})}
    return WireResponse(headers=_JSON, body=dumps({**body, **_names(context)}), losses=tuple(parts.losses))


def to_wire_auxiliary(kind: str, value: Any, context: ServeContext) -> WireResponse | None:
    """Write a list of models, one model, or a count of tokens."""
    if kind == "count_tokens":
        return WireResponse(headers=_JSON, body=dumps({"totalTokens": value}))
    if kind not in ("models", "model"):
        return None
    methods = ["generateContent", "countTokens", "streamGenerateContent"]
    names = value if kind == "models" else [value.name]
    listed = [{"name": f"models/{name}", "displayName": name, "supportedGenerationMethods": methods} for name in names]
    if kind == "model":
        can = value.capabilities
        limits = {"inputTokenLimit": can.max_context_tokens, "outputTokenLimit": can.max_output_tokens}
        return WireResponse(
            headers=_JSON, body=dumps(listed[0] | {name: most for name, most in limits.items() if most})
        )
    return WireResponse(headers=_JSON, body=dumps({"models": listed}))


def _names(context: ServeContext) -> dict[str, str]:
    return {"modelVersion": context.model, "responseId": context.answer_id}


class AnswerParts:
    """Converts the blocks of whole answers and streams to parts.

    A part waits for the next one. The last part is sent with the finish reason and carries the seal of the whole
    answer, because an SDK drops an answer if a chunk has no part. A call carries the seal of the blocks before it.

    Attributes:
        ready: parts that need not wait.
        losses: the parts of the answer that this API cannot express.
    """

    def __init__(self, context: ServeContext) -> None:
        self.ready: list[dict[str, Any]] = []
        self.losses: list[Loss] = []
        self._context = context
        self._state = AnswerState(context.origin, strings=False)
        self._last: dict[str, Any] | None = None
        self._index = -1  # the block of the last part
        self._spoken: set[int] = set()
        self._released = False  # a part of a stream, which an SDK sends back as a separate content
        self._stateful = False  # there is state to restore
        self._media: Mapping[str, Any] = EMPTY
        self._trace: dict[str, Any] = {}

    def say(self, event: TextDelta | ThinkingDelta) -> None:
        """Add text or thinking as a separate part."""
        self.note(event)
        self._spoken.add(event.index)
        thought = isinstance(event, ThinkingDelta)
        self._stateful = self._stateful or thought
        if event.text:
            self.release()
            self._index = event.index
            self._last = {"text": event.text, "thought": True} if thought else {"text": event.text}

    def note(self, event: StreamEvent, wire_id: str = "") -> None:
        """Add state of another origin."""
        if not self._context.is_own:
            self._state.note(event, wire_id)

    def note_raw(self, replay: dict[str, Any] | FrozenDict | None, trace: Mapping[str, Any] | None) -> None:
        """Add replay state of the origin."""
        if not self._context.is_own:
            self._state.note(RawUpdate(replay=replay))
            return
        self._trace.update(trace or {})
        self._media = (replay or EMPTY).get("media", self._media)

    def add(self, index: int, block: ContentBlock) -> None:
        """Add a whole block; if its text or thinking was added in pieces, only its end."""
        own = self._context.is_own
        if isinstance(block, ToolUseBlock):
            self._stateful = self._stateful or self._released  # the seal says that the parts are one answer
        signature = getattr(block, "signature", None) if own else None
        part = None if index in self._spoken else self._part(block)
        if part is not None and (signature or part.get("text") != ""):
            self.release()  # its seal covers the blocks before it
            self._last, self._index = {**part, "thoughtSignature": signature} if signature else part, index
        elif signature and self._index == index and self._last is not None:
            self._last["thoughtSignature"] = signature
        if not own:
            self._state.add(index, block, block.id if isinstance(block, ToolUseBlock) else "")

    def _part(self, block: ContentBlock) -> dict[str, Any] | None:
        """Return a block's part; None if it is sealed, or lost."""
        own = self._context.is_own
        if isinstance(block, TextBlock):
            return {"text": block.text}
        if isinstance(block, ThinkingBlock):
            self._stateful = True
            return {"text": block.text, "thought": True}
        if isinstance(block, ToolUseBlock):
            call_id = block.provider_id if own else block.id
            args: Any = block.input if block.parse_error is None else {"invalid_json": block.raw_input}
            return {"functionCall": {**({"id": call_id} if call_id else {}), "name": block.name, "args": args}}
        if isinstance(block, MEDIA):
            return with_extras(to_wire_media(block), self._media.get(media_key(block), {}))
        if own and isinstance(block, OpaqueBlock) and isinstance(block.data, Mapping):
            if block.kind != OTHER_CANDIDATE:
                return dict(block.data)
            self._lose(block.type, "an alternative answer that was not chosen")
        elif not isinstance(block, (OpaqueBlock, RedactedThinkingBlock)):
            self._lose(block.type, f"this API has no {block.type} in an answer")
        return None

    def release(self) -> None:
        """Release the waiting part."""
        if self._last is None:
            return
        if "functionCall" in self._last and not self._context.is_own and (state := self._state.take()) is not None:
            self._attach(self._last, state)
        self._stateful = self._stateful or "functionCall" in self._last
        self.ready.append(self._last)
        self._last, self._released = None, True

    def _attach(self, part: dict[str, Any], state: Mapping[str, Any]) -> None:
        self._stateful = True
        if self._context.seal is not None:
            # `bytes` of protocol buffers, which a caller may check: https://protobuf.dev/programming-guides/json/
            part["thoughtSignature"] = self._context.seal(state).replace("-", "+").replace("_", "/")
        elif state["blocks"] or state["replay"]:
            self._lose("thinking", _STATELESS)

    def take_last(self) -> list[dict[str, Any]]:
        """Return the last part, with the state that is not yet sealed."""
        part, self._last = self._last, None
        # some clients read a signed text as another kind of content: what repeats a plain text is left to the host
        plain = self._context.stores_answers and not (self._stateful or self._state.has_blocks)
        state = None if self._context.is_own or plain else self._state.take(whole=True, always=self._stateful)
        if state is not None:
            if part is None and self._context.seal is not None:
                part = {"text": ""}
            self._attach(part if part is not None else {}, state)
        return [] if part is None else [part]

    def ending(self, reason: StopReason | None, raw: str | None) -> dict[str, Any]:
        """Return the members at a candidate's end."""
        own = self._context.is_own
        known = raw if own and raw else reason and _STOPS.get(reason, "STOP")
        more = {name: self._trace[name] for name in TRACED_OF_ANSWER if name in self._trace} if own else {}
        return {**({"finishReason": known} if known else {}), "index": 0, **more}

    def usage(self, usage: Usage | None) -> dict[str, Any]:
        """Return the counts; an unknown count is left out."""
        if self._context.is_own and isinstance(self._trace.get("usage"), Mapping):
            return dict(self._trace["usage"])
        if usage is None:
            return {}
        visible = None if usage.output_tokens is None else usage.output_tokens - (usage.reasoning_tokens or 0)
        counts = {
            "promptTokenCount": usage.input_tokens,
            "cachedContentTokenCount": usage.cached_input_tokens,
            "candidatesTokenCount": visible,
            "thoughtsTokenCount": usage.reasoning_tokens,
        }
        known = {name: count for name, count in counts.items() if count is not None}
        if known:
            known["totalTokenCount"] = (usage.input_tokens or 0) + (usage.output_tokens or 0)
        return known

    def _lose(self, kind: str, reason: str) -> None:
        self.losses.append(Loss(path="content", block_type=kind, verdict="dropped", reason=reason))


class ChunkWriter(BaseStreamWriter):
    """Writes the events of one answer as chunks: events of a stream without names, or elements of an array."""

    def __init__(self, context: ServeContext) -> None:
        super().__init__(context)
        self._array = bool(context.echo.get("array"))
        self.content_type = "application/json; charset=UTF-8" if self._array else "text/event-stream"
        self._parts = AnswerParts(context)
        self.losses = self._parts.losses
        self._starts: dict[int, ToolUseStart] = {}
        self._pieces: dict[int, list[str]] = {}
        self._begun = False

    def take(self, event: StreamEvent) -> None:
        """Write the chunks for one event; the last part waits for the next one."""
        super().take(event)
        self._flush()

    def write_delta(self, event: TextDelta | ThinkingDelta) -> None:
        """Write a piece of text or thinking."""
        self._parts.say(event)

    def start_call(self, event: ToolUseStart) -> None:
        """Begin a call, which is written whole."""
        self._starts[event.index], self._pieces[event.index] = event, []

    def write_arguments(self, event: ToolUseInputDelta) -> None:
        """Keep a piece of a call's arguments."""
        self._pieces.setdefault(event.index, []).append(event.partial_json)

    def end_block(self, event: BlockEnd) -> None:
        """End another block, or write it whole."""
        self._parts.add(event.index, event.block)

    def note_raw(self, event: RawUpdate) -> None:
        """Note state of the origin."""
        self._parts.note_raw(event.replay, event.trace)

    def end_call(self, event: ToolUseEnd) -> None:
        """End a call."""
        start = self._starts.pop(event.index, None)
        if start is None:
            return
        raw = "".join(self._pieces.pop(event.index, ()))
        self._parts.add(event.index, event.block or read_call(start, raw))

    def _flush(self) -> None:
        ready = self._parts.ready
        for part in ready:
            self._chunk({"candidates": [{"content": {"parts": [part], "role": "model"}, "index": 0}]})
        ready.clear()

    def complete(self, event: MessageComplete) -> None:
        """Write the end of a whole answer."""
        last = self._parts.take_last()
        self._flush()
        candidate = self._parts.ending(event.stop_reason, event.stop_reason_raw)
        if last:
            candidate = {"content": {"parts": last, "role": "model"}, **candidate}
        usage = self._parts.usage(self.usage)
        self._chunk({"candidates": [candidate], **({"usageMetadata": usage} if usage else {})})
        self._close()

    def fail(self, error: InterlinguaError) -> None:
        """Write an error, the end of an answer that failed."""
        self._parts.release()
        self._flush()
        self._write(dumps_line(error_envelope(error)))
        self._close()

    def _chunk(self, body: dict[str, Any]) -> None:
        self._write(dumps_line({**body, **_names(self.context)}))

    def _write(self, data: bytes) -> None:
        if self._array:
            self.out.append((b",\r\n" if self._begun else b"[") + data)
        else:
            self.out.append(b"data: " + data + b"\r\n\r\n")
        self._begun = True

    def _close(self) -> None:
        if self._array:
            self.out.append(b"]")
        self.ended = True
