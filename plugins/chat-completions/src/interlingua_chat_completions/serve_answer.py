"""Write answers of any model as Chat Completions bodies and streams (WIRE.md, Serving)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from interlingua.errors import InterlinguaError, ServerError
from interlingua.plugins import EMPTY, Loss, WireResponse, dumps, replay_state
from interlingua.types import (
    BlockEnd,
    ContentBlock,
    ImageBlock,
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
from interlingua_chat_completions.content import REFUSAL
from interlingua_chat_completions.dialect import Dialect
from interlingua_chat_completions.errors import error_detail, to_wire_error
from interlingua_serving import AnswerState, BaseStreamWriter, ServeContext, State, dumps_line

_FINISH = {
    StopReason.TOOL_USE: "tool_calls",
    StopReason.MAX_TOKENS: "length",
    StopReason.CONTEXT_WINDOW: "length",
    StopReason.REFUSAL: "content_filter",
}
_JSON = {"content-type": "application/json"}
_STATELESS = "state of the model that answered has no place here; there is nothing to seal it with"
_RAW = (RedactedThinkingBlock, OpaqueBlock)


def to_wire_response(message: Message, context: ServeContext, dialect: Dialect) -> WireResponse:
    """Write a whole answer."""
    metadata = message.metadata
    if metadata.stop_reason is StopReason.ERROR:
        return to_wire_error(ServerError("the model's answer ended with an error"))
    answer = _Answer(context)
    body = _message(message, answer, context, dialect)
    choice = {
        "index": 0,
        "message": body,
        "logprobs": None,
        "finish_reason": metadata.stop_reason and _finish(metadata.stop_reason, called="tool_calls" in body),
    }
    whole = {
        **answer.envelope("chat.completion"),
        "choices": [choice],
        "usage": to_wire_usage(metadata.usage or Usage()),
    }
    return WireResponse(headers=_JSON, body=dumps(whole), losses=tuple(answer.losses))


def _message(message: Message, answer: _Answer, context: ServeContext, dialect: Dialect) -> dict[str, Any]:
    """Write the message of a whole answer: this format has one field for each kind of block."""
    body: dict[str, Any] = {"role": "assistant", "content": None, "refusal": None}
    kinds: dict[type, list[Any]] = {TextBlock: [], ThinkingBlock: []}
    replay: Mapping[str, Any] = replay_state(message) if context.is_own else EMPTY
    for block in message.content:
        if isinstance(block, (TextBlock, ThinkingBlock)):
            kinds[type(block)].append(block.text)
        elif not isinstance(block, ToolUseBlock) and (image := answer.image(block)) is not None:
            body.setdefault("images", []).append(image)
    texts, thoughts = kinds[TextBlock], kinds[ThinkingBlock]
    if replay.get("refusal") and texts:
        body["refusal"] = texts.pop()
    if texts:
        body["content"] = "".join(texts)
    if thoughts:
        body[_reasoning_field(dialect)] = "".join(thoughts)
    if calls := [answer.call(call, replay) for call in message.tool_calls]:
        body["tool_calls"] = calls
    if context.is_own:
        _add_own(message, replay, body)
        return body
    state = AnswerState(context.origin, strings=True)
    state.add_message(message, answer.call_id)
    # reasoning goes back to its origin only, even if it is not signed
    if (
        details := answer.details(state.take(whole=True, always=bool(thoughts)), [call["id"] for call in calls])
    ) is not None:
        body["reasoning_details"] = details
    return body


def _add_own(message: Message, replay: Mapping[str, Any], body: dict[str, Any]) -> None:
    """Add the other members of this service's own answer."""
    if details := replay.get("reasoning_details"):
        body["reasoning_details"] = details
    if citations := [citation for block in message.content for citation in getattr(block, "citations", ())]:
        body["annotations"] = citations


def _finish(reason: StopReason | None, *, called: bool) -> str:
    """Return the stop reason; a model that waits for a tool of its service has not called the caller's tools."""
    if reason is StopReason.TOOL_USE and not called:
        return "stop"
    return _FINISH.get(reason or StopReason.OTHER, "stop")


def _reasoning_field(dialect: Dialect) -> str:
    return dialect.reasoning_fields[0] if dialect.reasoning_fields else "reasoning_content"


def to_wire_usage(usage: Usage) -> dict[str, Any]:
    """Write the counts, which this format requires: an unknown count is 0."""
    prompt, output = usage.input_tokens or 0, usage.output_tokens or 0
    written: dict[str, Any] = {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}
    details: dict[str, int] = {}
    for name, count in (
        ("cached_tokens", usage.cached_input_tokens),
        ("cache_write_tokens", usage.cache_creation_input_tokens),
        ("audio_tokens", usage.audio_input_tokens),
    ):
        if count is not None:
            details[name] = count
    if details:
        written["prompt_tokens_details"] = details
    if usage.reasoning_tokens is not None:
        written["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
    return written


class _Answer:
    """The parts that whole answers and streams have in common.

    The state of other origins is sealed into the last entry of `reasoning_details`: callers send that list back with
    the answer, and some send only entries of the type `reasoning.encrypted` with the id of a call.
    """

    def __init__(self, context: ServeContext) -> None:
        self._context = context
        self.losses: list[Loss] = []

    def envelope(self, kind: str) -> dict[str, Any]:
        """Return the first members of a body and of every chunk."""
        context = self._context
        created = int(context.clock().timestamp())
        return {"id": f"chatcmpl-{context.answer_id}", "object": kind, "created": created, "model": context.model}

    def call_id(self, call: ToolUseBlock | ToolUseStart) -> str:
        """Return the id that the caller receives."""
        return (call.provider_id if self._context.is_own else None) or call.id

    def call(self, block: ToolUseBlock, replay: Mapping[str, Any]) -> dict[str, Any]:
        """Return a call of a whole answer."""
        name = self.call_id(block)
        if name in (replay.get("custom_calls") or ()):
            return {"id": name, "type": "custom", "custom": {"name": block.name, **block.input}}
        function = {"name": block.name, "arguments": block.input_json or "{}"}
        return {"id": name, "type": "function", "function": function}

    def image(self, block: ContentBlock) -> dict[str, Any] | None:
        """Return the part of an image in an answer; None if the block is sealed, or lost."""
        if isinstance(block, ImageBlock) and block.source.kind in ("url", "base64"):
            source = block.source
            url = (
                source.data if source.kind == "url" else f"data:{block.media_type or 'image/png'};base64,{source.data}"
            )
            return {"type": "image_url", "image_url": {"url": url}}
        if not isinstance(block, _RAW) or self._context.is_own:
            reason = f"this API has no place for {block.type} in an answer"
            self.losses.append(Loss(path="content", block_type=block.type, verdict="dropped", reason=reason))
        return None

    def details(self, state: State | None, calls: list[str]) -> list[dict[str, Any]] | None:
        """Return `reasoning_details` that hold the state, or None."""
        if state is None:
            return None
        if self._context.seal is None:
            if state["replay"] or any(entry.keys() > {"type", "length", "id"} for entry in state["blocks"]):
                self.losses.append(Loss(path="content", block_type="message", verdict="dropped", reason=_STATELESS))
            return None
        name = calls[0] if calls else f"rs_{self._context.answer_id}"
        seal = self._context.seal(state)
        return [{"type": "reasoning.encrypted", "id": name, "data": seal, "format": "unknown", "index": 0}]


class ChatWriter(BaseStreamWriter):
    """Writes the events of one answer as chunks."""

    def __init__(self, context: ServeContext, dialect: Dialect) -> None:
        super().__init__(context)
        self._answer = _Answer(context)
        self.losses = self._answer.losses
        self._state = None if context.is_own else AnswerState(context.origin, strings=True)
        begun = dumps_line({**self._answer.envelope("chat.completion.chunk"), "choices": []})[:-2]
        self._head = b"data: " + begun + b'{"index":0,"delta":'
        self._tail = b',"logprobs":null,"finish_reason":null}]}\n\n'
        self._empty = b"data: " + begun
        self._reasoning = _reasoning_field(dialect)
        self._text_head = self._head + b'{"content":'
        self._text_tail = b"}" + self._tail
        self._calls: dict[int, tuple[str, bool]] = {}  # id, and whether arguments were written
        self._nameless: dict[int, ToolUseStart] = {}
        self._texts: set[int] = set()
        self._replay: dict[str, Any] = {}
        self._started = self._thought = False

    def take(self, event: StreamEvent) -> None:
        """Note the state of an event, and call the method for the event."""
        if self._state is not None:
            self._state.note(event, self._answer.call_id(event) if type(event) is ToolUseStart else "")
        if type(event) is TextDelta and self._started and event.index != REFUSAL:
            self._texts.add(event.index)
            self.out.append(self._text_head + dumps_line(event.text) + self._text_tail)
        else:
            super().take(event)

    def write_delta(self, event: TextDelta | ThinkingDelta) -> None:
        """Write a piece of text or thinking."""
        self._texts.add(event.index)
        if isinstance(event, TextDelta):
            refused = event.index == REFUSAL and self._state is None  # an index of another origin has no meaning here
            self._delta({"refusal" if refused else "content": event.text})
        else:
            self._thought = True
            self._delta({self._reasoning: event.text})

    def write_arguments(self, event: ToolUseInputDelta) -> None:
        """Write a piece of a call's arguments."""
        self._arguments(event.index, event.partial_json)

    def note_raw(self, event: RawUpdate) -> None:
        """Note state of the origin."""
        self._replay.update(event.replay or EMPTY)

    def _delta(self, delta: Mapping[str, Any]) -> None:
        if not self._started:
            self._started = True
            self.out.append(self._head + b'{"role":"assistant","content":""}' + self._tail)
        self.out.append(self._head + dumps_line(delta) + self._tail)

    def start_call(self, event: ToolUseStart) -> None:
        """Begin a call."""
        if not event.name:  # the name arrives at the end
            self._nameless[event.index] = event
            return
        name = self._answer.call_id(event)
        at = len(self._calls)
        self._calls[event.index] = name, False
        function = {"name": event.name, "arguments": ""}
        self._delta({"tool_calls": [{"index": at, "id": name, "type": "function", "function": function}]})

    def _arguments(self, index: int, text: str) -> None:
        if index not in self._calls or not text:
            return
        at = list(self._calls).index(index)
        self._calls[index] = self._calls[index][0], True
        self._delta({"tool_calls": [{"index": at, "function": {"arguments": text}}]})

    def end_call(self, event: ToolUseEnd) -> None:
        """End a call."""
        start = self._nameless.pop(event.index, None)
        if start is not None and event.block is not None:
            self.start_call(attrs.evolve(start, name=event.block.name or "unnamed"))
        if event.index in self._calls and not self._calls[event.index][1]:
            self._arguments(event.index, (event.block.input_json if event.block is not None else "") or "{}")

    def end_block(self, event: BlockEnd) -> None:
        """End another block, or write it whole."""
        block = event.block
        if isinstance(block, (TextBlock, ThinkingBlock)):
            self._thought = self._thought or isinstance(block, ThinkingBlock)
            if block.text and event.index not in self._texts:
                self._delta({"content" if isinstance(block, TextBlock) else self._reasoning: block.text})
            if self._state is None and isinstance(block, TextBlock) and block.citations:
                self._delta({"annotations": block.citations})
        elif (image := self._answer.image(block)) is not None:
            self._delta({"images": [image]})

    def complete(self, event: MessageComplete) -> None:
        """Write the end of a whole answer."""
        details: Any = self._replay.get("reasoning_details")
        if self._state is not None:
            state = self._state.take(whole=True, always=self._thought)
            details = self._answer.details(state, [name for name, _ in self._calls.values()])
        if details:
            self._delta({"reasoning_details": details})
        if not self._started:
            self._delta({})
        finish = _finish(event.stop_reason, called=bool(self._calls))
        self.out.append(self._head + b'{},"logprobs":null,"finish_reason":' + dumps(finish) + b"}]}\n\n")
        if self.context.echo.get("include_usage"):
            self.out.append(self._empty + b'],"usage":' + dumps(to_wire_usage(self.usage)) + b"}\n\n")
        self.out.append(b"data: [DONE]\n\n")
        self.ended = True

    def fail(self, error: InterlinguaError) -> None:
        """Write an error, the end of an answer that failed."""
        self.out.append(b"data: " + dumps_line({"error": error_detail(error)[1]}) + b"\n\n")
        self.ended = True
