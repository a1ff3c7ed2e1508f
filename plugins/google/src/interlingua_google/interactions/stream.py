"""Events of an interaction -> canonical events (WIRE.md, Interactions streaming)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any

import attrs

from interlingua.errors import MalformedResponseError
from interlingua.plugins import RequestContext, WireChunk, loads, loads_lossy, repair_surrogates
from interlingua.types import (
    BlockEnd,
    ErrorEvent,
    MessageComplete,
    OpaqueBlock,
    RawUpdate,
    StreamEvent,
    TextBlock,
    TextDelta,
    ThinkingBlock,
    ThinkingDelta,
    ToolUseEnd,
    ToolUseInputDelta,
    ToolUseStart,
    UsageUpdate,
    read_tool_input,
)
from interlingua_google.errors import error_from_envelope
from interlingua_google.interactions.response import (
    find_failure,
    from_wire_stop,
    from_wire_trace,
    from_wire_usage,
    replay_of,
)
from interlingua_google.interactions.steps import (
    BETWEEN,
    CALL,
    INPUT,
    OUTPUT,
    THOUGHT,
    from_wire_call,
    from_wire_content,
    from_wire_thought,
    shell_of,
    signature_of,
    steps_in,
    summary_text,
)

_OF_EVENTS = ("event_type", "event_id", "interaction_id", "index")
SPAN = 1024
"""Blocks that a step may have: the index of a block is the place of its step times this, plus its own."""


async def stream_response(
    response_stream: AsyncIterator[WireChunk], context: RequestContext
) -> AsyncIterator[StreamEvent]:
    """Translate framed chunks into events."""
    reader = InteractionReader(context)
    async for _, data in response_stream:
        if data.strip() == b"[DONE]":
            break
        event = loads_lossy(data)
        if not _is_text(event):
            event = loads(data)  # may hold arguments or objects, whose numbers are to stay exact
        for made in reader.read(event):
            yield made
        if reader.over:
            return
    for made in reader.close():
        yield made


def _is_text(event: Any) -> bool:
    delta = event.get("delta") if isinstance(event, dict) else None
    return isinstance(delta, dict) and delta.get("type") == "text"


@attrs.define
class _Step:
    """A step that arrives in pieces.

    Attributes:
        index: index of its first block.
        whole: the step so far, as a whole answer has it.
        pieces: pieces of the text or of the arguments that is arriving.
        call: the event that began its call.
        done: its end arrived.
    """

    index: int
    whole: dict[str, Any]
    pieces: list[str] = attrs.field(factory=list)
    call: ToolUseStart | None = None
    done: bool = False

    @property
    def contents(self) -> list[Any]:
        """The contents of an output so far."""
        found: list[Any] = self.whole.setdefault("content", [])
        return found


class InteractionReader:
    """The state of one answer; once an error made it `over`, later events are not read."""

    def __init__(self, context: RequestContext) -> None:
        self.over = False
        self._end_event: MessageComplete | None = None
        self._context = context
        self._steps: dict[int, _Step] = {}
        self._facts: dict[str, Any] = {}

    def read(self, event: Any) -> Iterator[StreamEvent]:
        """Translate one event; unknown ones say nothing that this version can use."""
        if not isinstance(event, dict):
            return
        kind = event.get("event_type")
        handler = _HANDLERS.get(kind) if isinstance(kind, str) else None
        if handler is not None:
            if self._end_event is None:
                yield from handler(self, event)
        elif kind == "error" or "error" in event:
            if self._end_event is None:
                yield from self._flush()
            given = event.get("error")
            yield ErrorEvent(error=error_from_envelope(given if isinstance(given, dict) else {"message": given}))
            self.over = True

    # ---- the interaction

    def _created(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        self._facts.update(_object(event, "interaction"))
        yield RawUpdate(replay=replay_of(self._facts, [], self._context), trace=from_wire_trace(self._facts))

    def _status(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        facts: dict[str, Any] = {name: value for name, value in event.items() if name not in _OF_EVENTS}
        self._facts.update(facts)
        yield RawUpdate(trace=facts)

    def _completed(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        whole = _object(event, "interaction")
        self._facts.update({name: value for name, value in whole.items() if name != "steps"})
        if not self._steps:  # the steps may also come whole
            for index, step in enumerate(steps_in(whole)):
                yield from self._start({"index": index, "step": step})
        yield from self._flush()
        steps = [step.whole for step in self._steps.values()]
        if (failure := find_failure({**self._facts, "steps": steps})) is not None:
            yield ErrorEvent(error=error_from_envelope(failure))
            self.over = True
            return
        calls = any(step.call is not None for step in self._steps.values())
        reason, raw = from_wire_stop(self._facts.get("status"), calls=calls)
        self._end_event = MessageComplete(stop_reason=reason, stop_reason_raw=raw)

    def close(self) -> Iterator[StreamEvent]:
        """End the answer: an error may still follow its last event, so it is complete only now."""
        if self._end_event is not None:
            yield self._end_event
        else:
            yield from self._flush()

    def _flush(self) -> Iterator[StreamEvent]:
        """End the steps that are open, complete or not, and report facts and counts."""
        whole = self._facts.get("status") not in (None, "in_progress")
        for step in self._steps.values():
            if not step.done:
                yield from self._end(step, whole=whole)
        rows = [shell_of(step.whole) for _, step in sorted(self._steps.items())]
        yield RawUpdate(replay=replay_of(self._facts, rows, self._context), trace=from_wire_trace(self._facts))
        if (usage := from_wire_usage(self._facts)) is not None:
            yield UsageUpdate(usage=usage)

    # ---- steps

    def _start(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        index, given = event.get("index"), _object(event, "step")
        if type(index) is not int or index in self._steps:
            raise MalformedResponseError("a step begins with a new index", path="/index")
        step = self._steps[index] = _Step(index * SPAN, dict(given))
        kind = given.get("type")
        if kind == INPUT and len(self._steps) == 1:
            del self._steps[index]  # a repetition of what was asked, as `steps_in` leaves it out
        elif kind == CALL:
            issued: Any = given.get("id")
            step.call = ToolUseStart(
                index=step.index,
                id=self._context.mint_tool_use_id(),
                name=self._context.tool_name(given.get("name")),  # type: ignore[arg-type]
                provider_id=issued if isinstance(issued, str) and issued else None,
                keep_raw=False,
            )
            yield step.call
        elif kind == THOUGHT:
            step.whole["summary"] = []
            for item in given.get("summary") or ():
                yield from self._summary(step, item)
        elif kind == OUTPUT:
            step.whole["content"] = []
            for item in given.get("content") or ():
                yield from self._content(step, item)

    def _delta(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        index: Any = event.get("index")
        step, delta = self._steps.get(index), _object(event, "delta")
        if step is None:
            raise MalformedResponseError("a piece of a step that was not started", path="/index")
        kind, of = delta.get("type"), step.whole.get("type")
        if kind == "thought_signature":
            if signature_of(delta):  # empty ones arrive between summaries
                step.whole["signature"] = delta["signature"]
        elif kind == "arguments_delta" and of == CALL:
            piece = delta.get("arguments")
            if isinstance(piece, str) and piece:
                step.pieces.append(piece)
                yield ToolUseInputDelta(index=step.index, partial_json=piece)
        elif of == THOUGHT and kind == "thought_summary":
            yield from self._summary(step, delta.get("content"))
        elif of == OUTPUT and kind == "text_annotation_delta":
            self._annotate(step, delta.get("annotations"))
        elif of == OUTPUT:
            yield from self._content(step, delta)
        else:
            _merge(step.whole, delta)

    def _stop(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        index: Any = event.get("index")
        step = self._steps.get(index)
        if event.get("step_usage"):
            self._facts.setdefault("step_usage", {})[str(index)] = event["step_usage"]
        if event.get("usage"):
            self._facts["usage"] = event["usage"]  # so far
        if step is not None and not step.done:
            yield from self._end(step, whole=True)
            rows = [shell_of(step.whole) for _, step in sorted(self._steps.items()) if step.done]
            yield RawUpdate(replay={"steps": rows})

    def _summary(self, step: _Step, item: Any) -> Iterator[StreamEvent]:
        step.whole["summary"].append(item)
        if text := summary_text(item):
            piece = BETWEEN + text if step.pieces else text
            step.pieces.append(text)
            yield ThinkingDelta(index=step.index, text=piece)

    def _content(self, step: _Step, item: Any) -> Iterator[StreamEvent]:
        """Take a content, or the next piece of the text that is open."""
        text = item.get("text") if isinstance(item, Mapping) and item.get("type") == "text" else None
        contents = step.contents
        if not isinstance(text, str):
            self._close_text(step)
            contents.append(item)
            yield BlockEnd(index=step.index + len(contents) - 1, block=from_wire_content(item, self._context))
            return
        if not step.pieces:
            contents.append({**item, "text": ""})
        else:
            contents[-1].update({name: value for name, value in item.items() if name not in ("text", "annotations")})
            self._annotate(step, item.get("annotations"))
        step.pieces.append(text)
        if text:
            yield TextDelta(index=step.index + len(contents) - 1, text=text)

    def _annotate(self, step: _Step, annotations: Any) -> None:
        """Add citations to the last text of an output."""
        texts = [item for item in step.contents if isinstance(item, dict) and item.get("type") == "text"]
        if isinstance(annotations, list):
            if not texts:
                step.contents.append({"type": "text", "text": ""})
                texts = step.contents
            texts[-1]["annotations"] = [*texts[-1].get("annotations", ()), *annotations]

    def _close_text(self, step: _Step) -> None:
        if step.pieces:
            step.contents[-1]["text"] = repair_surrogates("".join(step.pieces))
            step.pieces.clear()

    def _end(self, step: _Step, *, whole: bool) -> Iterator[StreamEvent]:
        """Yield the ends of a step's blocks, which hold citations, signatures and objects."""
        step.done = True
        kind = step.whole.get("type")
        if kind == OUTPUT:
            self._close_text(step)
            for at, item in enumerate(step.contents):
                block = from_wire_content(item, self._context)
                if isinstance(block, TextBlock):
                    yield BlockEnd(index=step.index + at, block=attrs.evolve(block, text=""))
        elif kind == THOUGHT:
            if not step.whole["summary"]:
                del step.whole["summary"]
            thought = from_wire_thought(step.whole)
            if thought is not None:
                yield BlockEnd(index=step.index, block=ThinkingBlock(text="", signature=thought.signature))
        elif kind == CALL:
            yield from self._end_call(step, whole=whole)
        else:
            opaque = OpaqueBlock(provider=self._context.origin.provider, kind=str(kind), data=step.whole)
            yield BlockEnd(index=step.index, block=opaque)

    def _end_call(self, step: _Step, *, whole: bool) -> Iterator[StreamEvent]:
        """End a call; the arguments of its start are a placeholder if pieces of them followed."""
        if not whole or step.call is None:
            step.done = False
            return
        if step.pieces:
            text = repair_surrogates("".join(step.pieces))
            value, error = read_tool_input(text)
            step.whole["arguments"] = text if error else value
        yield ToolUseEnd(index=step.index, block=from_wire_call(step.whole, self._context, step.call.id))


def _object(event: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = event.get(name)
    if isinstance(found, dict):
        return found
    raise MalformedResponseError(f"{name} of an event is not an object", path=f"/{name}")


def _merge(whole: dict[str, Any], delta: Mapping[str, Any]) -> None:
    """Add a piece of a step without a canonical form: lists and strings grow, empty signatures are ignored."""
    for name, value in delta.items():
        before: Any = whole.get(name)
        piece: Any = value
        if name == "type" or (name == "signature" and not value):
            continue
        if name != "signature" and isinstance(value, (str, list)) and type(before) is type(value):
            whole[name] = before + piece
        else:
            whole[name] = value


_HANDLERS: dict[str, Callable[[InteractionReader, dict[str, Any]], Iterator[StreamEvent]]] = {
    "interaction.created": InteractionReader._created,
    "interaction.status_update": InteractionReader._status,
    "interaction.completed": InteractionReader._completed,
    "step.start": InteractionReader._start,
    "step.delta": InteractionReader._delta,
    "step.stop": InteractionReader._stop,
}
