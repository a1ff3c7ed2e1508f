"""One answer being read, choice by choice and field by field: wire objects in, stream events out.

Never frames bytes and never decides that a stream is over; a whole body is read as one large delta, so the two roads
agree by construction (DESIGN 5). The stream and the whole-body translators come in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.plugins.wire import RequestContext
from interlingua.types.blocks import TextBlock
from interlingua.types.events import (
    BlockEnd,
    MessageComplete,
    RawUpdate,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    UsageUpdate,
)
from interlingua.types.messages import Usage
from interlingua_chat_completions import slots
from interlingua_chat_completions.calls import CallTable
from interlingua_chat_completions.content import from_wire_content, from_wire_image
from interlingua_chat_completions.dialect import Dialect
from interlingua_chat_completions.extras import Extras
from interlingua_chat_completions.reasoning import Reasoning
from interlingua_chat_completions.stop import from_wire_finish
from interlingua_chat_completions.usage import from_wire_usage


class AnswerReader:
    """Reads the first choice into events; other choices and what this wire adds are kept in `extras`."""

    def __init__(self, context: RequestContext, dialect: Dialect, *, whole: bool = False) -> None:
        self._context = context
        self._whole = whole
        self.calls = CallTable(context)
        self.reasoning = Reasoning(dialect.reasoning_fields, context.origin.provider)
        self.extras = Extras(context.origin.provider, dialect.citation_fields)
        self.finish: str | None = None
        self.texted = False
        self.refused = False
        self._images = 0
        self._tier: str | None = None  # told with the last usage

    def read(self, body: dict[str, Any]) -> list[StreamEvent]:
        """Take one chunk, or the whole body."""
        out: list[StreamEvent] = []
        self.extras.read_body(body)
        self._usage(body, out)
        choices = body.get("choices")
        if isinstance(choices, list):
            listed = [choice for choice in choices if isinstance(choice, dict)]
            for number, choice in zip(_numbers(listed, whole=self._whole), listed, strict=True):
                self._choice(number, choice, out)
        return out

    def end(self, *, complete: bool) -> list[StreamEvent]:
        """Close what is open; `complete` when the wire said that the answer is whole."""
        out: list[StreamEvent] = []
        citations = self.extras.citations
        if citations and self.texted:
            out.append(BlockEnd(index=slots.TEXT, block=TextBlock(text="", citations=tuple(citations))))
        elif citations:
            self.extras.trace["annotations"] = citations
        if complete:
            out += self.calls.end()
        out += self.reasoning.end()
        out += self.extras.end()
        if self.extras.service_tier != self._tier:
            out.append(UsageUpdate(usage=Usage(service_tier=self.extras.service_tier)))
        out.append(RawUpdate(replay=self._replay() or None, trace=self.extras.trace or None))
        if complete:
            reason = from_wire_finish(self.finish, calls=bool(self.calls.calls), refused=self.refused)
            out.append(MessageComplete(stop_reason=reason, stop_reason_raw=self.finish))
        return out

    def _replay(self) -> dict[str, Any]:
        replay = {**self.calls.replay(), **self.extras.replay}
        if self.refused:
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
            out.append(ThinkingDelta(index=slots.THINKING, text=thought))
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
            self.texted = True
            out.append(TextDelta(index=slots.TEXT, text=text))

    def _refusal(self, text: str, out: list[StreamEvent]) -> None:
        if text:
            self.refused = True
            out.append(TextDelta(index=slots.REFUSAL, text=text))

    def _parts(self, content: Any, out: list[StreamEvent]) -> None:
        pieces = from_wire_content(content)
        for thought in pieces.thinking:
            if thought:
                self.reasoning.spoken = True
                out.append(ThinkingDelta(index=slots.THINKING, text=thought))
        self.reasoning.signature = pieces.signature or self.reasoning.signature
        if pieces.closed is not None:
            self.extras.replay["thinking_closed"] = pieces.closed
        for text in pieces.text:
            self._text(text, out)
        for refusal in pieces.refusal:
            self._refusal(refusal, out)
        for image in pieces.images:
            out.append(BlockEnd(index=slots.IMAGES + self._images, block=image))
            self._images += 1
        self.extras.parts += pieces.other

    def _image_list(self, images: Any, out: list[StreamEvent]) -> None:
        for part in images if isinstance(images, list) else ():
            image = from_wire_image(part)
            if image is None:
                self.extras.parts.append(part if isinstance(part, dict) else {"type": "image", "image": part})
                continue
            out.append(BlockEnd(index=slots.IMAGES + self._images, block=image))
            self._images += 1


def _numbers(choices: list[dict[str, Any]], *, whole: bool) -> list[int]:
    """Number choices by their index; by place where there is none, or where a whole body's leave no first one."""
    told = [choice.get("index") for choice in choices]
    numbers = [index if type(index) is int else place for place, index in enumerate(told)]
    if whole and (0 not in numbers or len(set(numbers)) < len(numbers)):
        return list(range(len(choices)))
    return numbers
