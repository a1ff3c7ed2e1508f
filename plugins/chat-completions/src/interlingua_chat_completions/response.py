"""Read a whole answer, or the chunks of one: wire objects in, stream events out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.errors import MalformedResponseError, OverloadedError, ProviderError, ServerError
from interlingua.plugins import MessageAssembler, RequestContext, WireResponse, loads
from interlingua.types import (
    BlockEnd,
    Message,
    MessageComplete,
    MessageStatus,
    RawUpdate,
    StopReason,
    StreamEvent,
    TextBlock,
    TextDelta,
    ThinkingDelta,
    Usage,
    UsageUpdate,
)
from interlingua_chat_completions.calls import CallTable
from interlingua_chat_completions.content import (
    IMAGES,
    REFUSAL,
    TEXT,
    THINKING,
    Extras,
    ReasoningReader,
    from_wire_content,
    from_wire_image,
)
from interlingua_chat_completions.dialect import Dialect
from interlingua_chat_completions.errors import error_in, from_wire_error_body

_CACHED = (
    ("prompt_tokens_details", "cached_tokens"),
    ("prompt_token_details", "cached_tokens"),  # Mistral
    ("prompt_cache_hit_tokens",),
    ("num_cached_tokens",),
    ("cached_tokens",),
    ("cache_read_input_tokens",),
)
_WRITTEN = (("prompt_tokens_details", "cache_write_tokens"), ("cache_creation_input_tokens",))
_WRITTEN_1H = (("cache_creation", "ephemeral_1h_input_tokens"),)
_REASONING = (("completion_tokens_details", "reasoning_tokens"), ("reasoning_tokens",))
_EXTRA_UNITS = {  # units with their own price (WIRE.md, Usage)
    "audio_output_tokens": (("completion_tokens_details", "audio_tokens"),),
    "image_output_tokens": (("completion_tokens_details", "image_tokens"),),
    "web_search": (("server_tool_use_details", "web_search_requests"), ("server_tool_use", "web_search_requests")),
    "search_source": (("num_sources_used",),),
}
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
}
_FAILURES: dict[str, tuple[type[ProviderError], str]] = {
    "error": (ServerError, "the generation failed"),
    "network_error": (ServerError, "the service lost its connection to the model"),
    "insufficient_system_resource": (OverloadedError, "the service had too little capacity to finish"),
}


def from_wire_response(response: WireResponse, context: RequestContext, dialect: Dialect) -> Message:
    """Read a complete body; an answer without a finish reason is PARTIAL, but for one that calls tools.

    Raises:
        ProviderError: the body or its first choice has an error despite the status, or its finish reason reports
            one; `partial` holds the answer in it, if any.
        MalformedResponseError: not JSON, or no choice in it.
    """
    try:
        body = loads(response.body)
    except ValueError as error:
        raise MalformedResponseError(f"the body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise MalformedResponseError(f"the body is a JSON {type(body).__name__}, not an object")
    choices = body.get("choices")
    reader = ChatAnswerReader(context, dialect, whole=True)
    assembler = MessageAssembler(context)
    if (holder := error_in(body)) is not None:
        failure = from_wire_error_body(holder, dialect, headers=response.headers, context=context)
        if isinstance(choices, list) and choices:
            assembler.feed(reader.read(body) + reader.end(complete=False))
            failure.partial = assembler.message(MessageStatus.ERROR, failure)
        raise failure
    if not isinstance(choices, list) or not choices:
        raise MalformedResponseError("the body holds no choices", path="/choices")
    assembler.feed(reader.read(body))
    if (failed := reader.failure()) is not None:
        assembler.feed(reader.end(complete=False))
        failed.partial = assembler.message(MessageStatus.ERROR, failed)
        raise failed
    finished = reader.finish is not None or bool(reader.calls.calls)
    assembler.feed(reader.end(complete=finished))
    return assembler.message(MessageStatus.COMPLETE if finished else MessageStatus.PARTIAL)


class ChatAnswerReader:
    """Reads the first choice into events; `extras` keeps other choices and additional members."""

    def __init__(self, context: RequestContext, dialect: Dialect, *, whole: bool = False) -> None:
        self._context = context
        self._whole = whole
        self.calls = CallTable(context)
        self.reasoning = ReasoningReader(dialect.reasoning_fields, context.origin.provider)
        self.extras = Extras(context.origin.provider, dialect.citation_fields)
        self.finish: str | None = None
        self.has_finish = False
        self.has_text = False
        self.has_refusal = False
        self._images = 0
        self._tier: str | None = None  # what the last usage event had

    def read(self, body: dict[str, Any]) -> list[StreamEvent]:
        """Read one chunk, or the whole body."""
        out: list[StreamEvent] = []
        self.extras.read_body(body)
        self._usage(body, out)
        choices = body.get("choices")
        if isinstance(choices, list):
            listed = [choice for choice in choices if isinstance(choice, dict)]
            for number, choice in zip(_numbers(listed, whole=self._whole), listed, strict=True):
                self._choice(number, choice, out)
        return out

    def failure(self) -> ProviderError | None:
        """Return the error that the finish reason alone reports."""
        found = _FAILURES.get((self.finish or "").lower())
        return found[0](f"{found[1]} (finish_reason {self.finish!r})", code=self.finish) if found else None

    def end(self, *, complete: bool) -> list[StreamEvent]:
        """End the open blocks; `complete` if the wire showed that the answer is complete."""
        out: list[StreamEvent] = []
        citations = self.extras.citations
        if citations and self.has_text:
            out.append(BlockEnd(index=TEXT, block=TextBlock(text="", citations=tuple(citations))))
        elif citations:
            self.extras.trace["annotations"] = citations
        if complete:
            out += self.calls.end()
        out += self.reasoning.end()
        out += self.extras.end()
        if self.extras.service_tier != self._tier:
            out.append(UsageUpdate(usage=Usage(service_tier=self.extras.service_tier)))
        if self.extras.units:
            out.append(UsageUpdate(usage=Usage(extra_units=self.extras.units)))
        out.append(RawUpdate(replay=self._replay() or None, trace=self.extras.trace or None))
        if complete:
            reason = from_wire_finish(self.finish, calls=bool(self.calls.calls), refused=self.has_refusal)
            out.append(MessageComplete(stop_reason=reason, stop_reason_raw=self.finish))
        return out

    def _replay(self) -> dict[str, Any]:
        replay = {**self.calls.replay(), **self.extras.replay}
        if self.has_refusal:
            replay["refusal"] = True
        if self.reasoning.details:
            replay["reasoning_details"] = self.reasoning.details
        return replay

    def _usage(self, holder: Mapping[str, Any], out: list[StreamEvent]) -> None:
        usage = holder.get("usage")
        if usage is None and isinstance(holder.get("x_groq"), dict):
            usage = holder["x_groq"].get("usage")
        if isinstance(usage, dict) and usage:
            self._tier = self.extras.service_tier
            out.append(UsageUpdate(usage=from_wire_usage(usage, self._tier)))
            self.extras.trace["usage"] = usage

    def _choice(self, number: int, choice: dict[str, Any], out: list[StreamEvent]) -> None:
        names = ("message", "delta") if self._whole else ("delta", "message")
        delta: Any = next((found for name in names if isinstance(found := choice.get(name), dict)), None)
        if number > 0:
            self.extras.read_choice(number, choice, delta)
            return
        self._usage(choice, out)
        finish = choice.get("finish_reason")
        self.has_finish = self.has_finish or "finish_reason" in choice
        if isinstance(finish, str) and (finish or self.finish is None):
            self.finish = finish
        self.extras.read_first_choice(choice)
        if delta is not None:
            self._delta(delta, out)
        elif isinstance(choice.get("text"), str):  # as the older completions have it
            self._text(choice["text"], out)

    def _delta(self, delta: dict[str, Any], out: list[StreamEvent]) -> None:
        thought = self.reasoning.read(delta, whole=self._whole)
        if thought:
            out.append(ThinkingDelta(index=THINKING, text=thought))
        content = delta.get("content")
        if isinstance(content, str):
            self._text(content, out)
        elif content is not None:
            self._parts(content, out)
        refusal = delta.get("refusal")
        if isinstance(refusal, str):
            self._refusal(refusal, out)
        fragments = delta.get("tool_calls")
        if fragments:
            self._calls(fragments if isinstance(fragments, list) else [fragments], out)
        legacy = delta.get("function_call")
        if isinstance(legacy, dict):
            self.calls.read_function_call(legacy, out)
        self._image_list(delta.get("images"), out)
        self.extras.read_delta(delta, whole=self._whole)

    def _calls(self, fragments: list[Any], out: list[StreamEvent]) -> None:
        for place, fragment in enumerate(fragments):
            if isinstance(fragment, dict):
                known = {**fragment, "index": place} if self._whole else fragment
                self.calls.read(known, place, len(fragments), out)

    def _text(self, text: str, out: list[StreamEvent]) -> None:
        if text:
            self.has_text = True
            out.append(TextDelta(index=TEXT, text=text))

    def _refusal(self, text: str, out: list[StreamEvent]) -> None:
        if text:
            self.has_refusal = True
            out.append(TextDelta(index=REFUSAL, text=text))

    def _parts(self, content: Any, out: list[StreamEvent]) -> None:
        pieces = from_wire_content(content)
        for thought in pieces.thinking:
            if thought:
                self.reasoning.has_parts = True
                out.append(ThinkingDelta(index=THINKING, text=thought))
        self.reasoning.signature = pieces.signature or self.reasoning.signature
        if pieces.closed is not None:
            self.extras.replay["thinking_closed"] = pieces.closed
        for text in pieces.text:
            self._text(text, out)
        for refusal in pieces.refusal:
            self._refusal(refusal, out)
        for image in pieces.images:
            out.append(BlockEnd(index=IMAGES + self._images, block=image))
            self._images += 1
        self.extras.parts += pieces.other

    def _image_list(self, images: Any, out: list[StreamEvent]) -> None:
        for part in images if isinstance(images, list) else ():
            image = from_wire_image(part)
            if image is None:
                self.extras.parts.append(part if isinstance(part, dict) else {"type": "image", "image": part})
                continue
            out.append(BlockEnd(index=IMAGES + self._images, block=image))
            self._images += 1


def _numbers(choices: list[dict[str, Any]], *, whole: bool) -> list[int]:
    """Number choices by their index; by place if an index is missing, or if a whole body has no index 0."""
    given = [choice.get("index") for choice in choices]
    numbers = [index if type(index) is int else place for place, index in enumerate(given)]
    if whole and (0 not in numbers or len(set(numbers)) < len(numbers)):
        return list(range(len(choices)))
    return numbers


def from_wire_usage(usage: Mapping[str, Any], tier: str | None = None) -> Usage:
    """Read a `usage` object; `prompt_tokens` already includes cached tokens (WIRE.md, Usage).

    Args:
        usage: the wire's object.
        tier: the service tier in the body, if any; it has precedence over the object's own.
    """
    prompt = _count(usage.get("prompt_tokens"))
    output = _count(usage.get("completion_tokens"))
    reasoning = _first(usage, _REASONING)
    total = _count(usage.get("total_tokens"))
    if reasoning and output is not None and total == (prompt or 0) + output + reasoning:
        output += reasoning  # xAI counts reasoning beside the output, not inside
    audio = _first(usage, (("prompt_tokens_details", "audio_tokens"),))
    if audio and prompt is not None and total == prompt + (output or 0) + audio:
        prompt += audio  # Mistral counts audio beside the prompt, not inside
    own = usage.get("service_tier")
    extra = {name: count for name, paths in _EXTRA_UNITS.items() if (count := _first(usage, paths))}
    return Usage(
        input_tokens=prompt,
        output_tokens=output,
        cached_input_tokens=_first(usage, _CACHED),
        cache_creation_input_tokens=_first(usage, _WRITTEN),
        cache_creation_1h_input_tokens=_first(usage, _WRITTEN_1H),
        audio_input_tokens=audio,
        reasoning_tokens=reasoning,
        extra_units=extra or None,
        service_tier=tier or (own if isinstance(own, str) and own else None),
    )


def _first(usage: Mapping[str, Any], paths: tuple[tuple[str, ...], ...]) -> int | None:
    for path in paths:
        value: Any = usage.get(path[0])
        for key in path[1:]:
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None and (count := _count(value)) is not None:
            return count
    return None


def _count(value: Any) -> int | None:
    """Read a count; None if it is not a number or is negative."""
    if type(value) is int:
        return value if value >= 0 else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        return None
    return int(value)


def from_wire_finish(raw: str | None, *, calls: bool, refused: bool) -> StopReason:
    """Return why the model stopped.

    Args:
        raw: `finish_reason` as sent; None when the stream ended well without one.
        calls: the answer holds tool calls; forced ones finish with `stop` (WIRE.md, Finish reasons).
        refused: the answer holds a refusal; there is no finish reason for it (WIRE.md, Finish reasons).
    """
    reason = _REASONS.get((raw or "").lower())
    if reason is None or reason is StopReason.END_TURN:
        if refused:
            return StopReason.REFUSAL
        if calls:
            return StopReason.TOOL_USE
    return reason or StopReason.OTHER
