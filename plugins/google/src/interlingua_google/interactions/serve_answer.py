"""Write answers of any model as interactions and their events (WIRE.md, Interactions served)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from interlingua.errors import InterlinguaError, ServerError
from interlingua.plugins import EMPTY, BlockLoss, Loss, WireResponse, dumps
from interlingua.types import (
    BlockEnd,
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
    read_tool_input,
    replace,
)
from interlingua_google.errors import interaction_error, to_wire_error
from interlingua_google.interactions.messages import OWN_STEPS, to_wire_answer, to_wire_media
from interlingua_google.interactions.steps import BETWEEN, CALL, IN_BLOCKS, OUTPUT, THOUGHT
from interlingua_google.interactions.stream import SPAN
from interlingua_google.messages import MEDIA, Media
from interlingua_serving import AnswerState, BaseStreamWriter, ServeContext, dumps_line

_STATUSES = {
    StopReason.TOOL_USE: "requires_action",
    StopReason.MAX_TOKENS: "incomplete",
    StopReason.CONTEXT_WINDOW: "incomplete",
    StopReason.REFUSAL: "incomplete",  # this API has no word for it
    StopReason.PAUSE_TURN: "incomplete",
}
_JSON = {"content-type": "application/json; charset=UTF-8"}
_OWN = ("created", "updated", "service_tier", "usage", "errors", "continuation_token", "environment_id")
_STATELESS = "state of the model that answered has no place here; there is nothing to seal it with"


def to_wire_response(message: Message, context: ServeContext) -> WireResponse:
    """Write a whole answer: this API's own steps unchanged, else the steps of its stream."""
    metadata = message.metadata
    if metadata.stop_reason is StopReason.ERROR:
        return to_wire_error(ServerError("the model's answer ended with an error"), context)
    raw = metadata.provider_raw or EMPTY
    writer = InteractionWriter(context)
    writer.feed([RawUpdate(replay=raw.get("replay") or None, trace=raw.get("trace") or None)])
    if context.is_own and context.origin is not None:
        rows: list[BlockLoss] = []
        steps = to_wire_answer(_with_own_ids(message), context.origin.model, rows)
        writer.losses += [row.at(0, message.id) for row in rows]
    else:
        writer.feed([BlockEnd(index=at, block=block) for at, block in enumerate(message.content)])
        steps = writer.finish_steps()
    reason, word = metadata.stop_reason, metadata.stop_reason_raw
    body = writer.interaction(reason, word, metadata.usage)
    if not context.is_own and reason is None:  # an answer that does not say that it is whole
        body["status"] = "incomplete"
    if not body["id"]:
        del body["id"]
    return WireResponse(headers=_JSON, body=dumps({**body, "steps": steps}), losses=tuple(writer.losses))


def _with_own_ids(message: Message) -> Message:
    """Return the message with the ids that the service issued for its calls."""
    own = [
        replace(one, id=one.provider_id) if isinstance(one, ToolUseBlock) and one.provider_id else one
        for one in message.content
    ]
    return replace(message, content=tuple(own))


@attrs.define
class _Step:
    """An open step: its place, the step so far, and the block that it is about.

    Attributes:
        place: its `index`.
        key: the index of its first block.
        step: the step so far, without the text that is arriving.
        said: index of the block whose text is the last content; -1 without one.
        pieces: pieces of that text, of the arguments of a call, or of the summary that is arriving.
        signature: the signature of a thought of this API's own service.
        start: the event that began a call.
    """

    place: int
    key: int
    step: dict[str, Any]
    said: int = -1
    pieces: list[str] = attrs.field(factory=list)
    signature: str | None = None
    start: ToolUseStart | None = None


class InteractionWriter(BaseStreamWriter):
    """Writes the events of one answer as a stream of this API.

    A step of output or of a thought is open until the next one starts, a call until it is complete. The state of
    another origin is sealed into signatures of thoughts: those of its thinking, and one after the last step for the
    rest.
    """

    def __init__(self, context: ServeContext) -> None:
        super().__init__(context)
        self._own = context.is_own
        self._id = "" if context.echo.get("store") is False else f"v1_{context.answer_id}"
        self._now = context.clock().strftime("%Y-%m-%dT%H:%M:%SZ")
        self._state = AnswerState(context.origin, strings=False)
        self._begun = False
        self._steps: list[dict[str, Any]] = []
        self._open: _Step | None = None  # the open step of output or of a thought
        self._head = b""  # of the next piece of its text
        self._calls: dict[int, _Step] = {}
        self._spoken: dict[int, tuple[_Step, int]] = {}  # blocks whose text was written, with the place of the content
        self._held: tuple[int, Media | OpaqueBlock] | None = None  # an own block until the state of its step is known
        self._trace: dict[str, Any] = {}

    def take(self, event: StreamEvent) -> None:
        """Begin the stream with the first event, and call the method for the event."""
        if not isinstance(event, RawUpdate):
            self._begin()
            self._write_held()
        super().take(event)

    def write_delta(self, event: TextDelta | ThinkingDelta) -> None:
        """Write a piece of text or thinking."""
        self._note(event)
        if isinstance(event, TextDelta):
            self._say(event.index, event.text)
        else:
            self._think(event.index, event.text)

    def write_arguments(self, event: ToolUseInputDelta) -> None:
        """Write a piece of a call's arguments."""
        self._note(event)
        if (opened := self._calls.get(event.index)) is not None:
            self._arguments(opened, event.partial_json)

    def _note(self, event: StreamEvent, wire_id: str = "") -> None:
        if not self._own:
            self._state.note(event, wire_id)

    def _lose(self, kind: str, reason: str) -> None:
        self.losses.append(Loss(path="content", block_type=kind, verdict="dropped", reason=reason))

    # -- the interaction

    def _event(self, kind: str, **fields: Any) -> None:
        self.out.append(b"event: %b\ndata: %b\n\n" % (kind.encode(), dumps_line({"event_type": kind, **fields})))

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            self._event("interaction.created", interaction={**self._names(), "status": "in_progress"})
            self._event("interaction.status_update", interaction_id=self._id, status="in_progress")

    def _names(self) -> dict[str, Any]:
        kind = "agent" if self.context.echo.get("agent") else "model"
        return {"id": self._id, "object": "interaction", kind: self.context.model}

    def interaction(self, reason: StopReason | None, word: str | None, usage: Usage | None) -> dict[str, Any]:
        """Return the interaction of an ended answer, without its steps."""
        status = word if self._own and word else _STATUSES.get(reason, "completed") if reason else "completed"
        body = {**self._names(), "status": status, "created": self._now, "updated": self._now}
        if previous := self.context.echo.get("previous_interaction_id"):
            body["previous_interaction_id"] = previous
        if counts := to_wire_usage(usage):
            body["usage"] = counts
        if self._own:
            body |= {name: self._trace[name] for name in _OWN if name in self._trace}
        return body

    def complete(self, event: MessageComplete) -> None:
        """Write the end of a whole answer."""
        self.finish_steps()
        self._event(
            "interaction.completed", interaction=self.interaction(event.stop_reason, event.stop_reason_raw, self.usage)
        )
        self.out.append(b"event: done\ndata: [DONE]\n\n")
        self.ended = True

    def fail(self, error: InterlinguaError) -> None:
        """Write an error, the end of an answer that failed."""
        self._begin()
        self._event("error", error=interaction_error(error)[1])
        self.ended = True

    def finish_steps(self) -> list[dict[str, Any]]:
        """Close the open steps, seal the remaining state, and return all steps."""
        self._settle()
        for opened in list(self._calls.values()):
            self._close_call(opened, None)
        if not self._own and (state := self._state.take(whole=True)) is not None and (seal := self._sealed(state)):
            self._begin()
            opened = self._start(-1, {"type": THOUGHT})
            self._sign(seal, opened)
            self._event("step.stop", index=opened.place)
        return self._steps

    def _sealed(self, state: Mapping[str, Any]) -> str | None:
        if self.context.seal is not None:
            # the SDK reads base64 in the standard alphabet
            return self.context.seal(state).replace("-", "+").replace("_", "/")
        if state["blocks"] or state["replay"]:
            self._lose("thinking", _STATELESS)
        return None

    def note_raw(self, event: RawUpdate) -> None:
        """Note state of the origin."""
        if not self._own:
            self._note(event)
            self._begin()
            return
        self._trace.update(event.trace or {})
        if not self._begun and isinstance(self._trace.get("id"), str) and self._trace["id"]:
            self._id = self._trace["id"]
        self._begin()
        self._write_held((event.replay or EMPTY).get("steps") or ())

    # -- steps

    def _start(self, key: int, step: dict[str, Any]) -> _Step:
        opened = _Step(len(self._steps), key, step)
        self._event("step.start", index=opened.place, step=step)
        self._steps.append(step)
        return opened

    def _delta(self, opened: _Step, kind: str, **fields: Any) -> None:
        self._event("step.delta", index=opened.place, delta={"type": kind, **fields})

    def _settle(self) -> None:
        """Close the open step."""
        self._write_held()
        opened, self._open, self._head = self._open, None, b""
        if opened is None:
            return
        if opened.step["type"] == THOUGHT:
            self._summarise(opened, "".join(opened.pieces))
            opened.pieces.clear()
            self._sign(self._signature_of(opened), opened)
        else:
            self._close_text(opened)
        self._event("step.stop", index=opened.place)

    def _output(self, index: int, *, text: bool) -> _Step:
        """Return the open step of output for a block, or a new one.

        Only this API's own service has several contents in a step; text that follows text would join it.
        """
        opened = self._open
        if opened is not None and opened.step["type"] == OUTPUT:
            same = self._own and index // SPAN == opened.key // SPAN and not (text and opened.said >= 0)
            if index == opened.said or same:
                return opened
        self._settle()
        self._open = opened = self._start(index, {"type": OUTPUT})
        opened.step["content"] = []
        return opened

    def _say(self, index: int, text: str) -> None:
        if not text:
            return
        opened = self._output(index, text=True)
        if index != opened.said:
            opened.said = index
            opened.step["content"].append({"type": "text", "text": ""})
            self._spoken[index] = opened, len(opened.step["content"]) - 1
            head = dumps({"event_type": "step.delta", "index": opened.place})[:-1]
            self._head = b'event: step.delta\ndata: %b,"delta":{"type":"text","text":' % head
        opened.pieces.append(text)
        self.out.append(b"%b%b}}\n\n" % (self._head, dumps_line(text)))

    def _close_text(self, opened: _Step) -> None:
        if opened.said >= 0:
            opened.step["content"][-1]["text"] = "".join(opened.pieces)
            opened.said = -1
            opened.pieces.clear()

    # -- thoughts

    def _think(self, index: int, text: str) -> None:
        """Add to a summary; readers join summaries with a blank line, so that they begin at blank lines only."""
        opened = self._open
        if opened is None or opened.step["type"] != THOUGHT or opened.key != index:
            self._settle()
            self._open = opened = self._start(index, {"type": THOUGHT})
            self._spoken[index] = opened, 0
        if self._own:  # its summaries come whole
            if opened.pieces and text.startswith(BETWEEN) and text != BETWEEN:
                self._summarise(opened, "".join(opened.pieces))
                opened.pieces, text = [], text.removeprefix(BETWEEN)
            opened.pieces.append(text)
            return
        whole = "".join([*opened.pieces, text])
        cut = whole.rfind(BETWEEN, 1, len(whole) - 1)
        if cut > 0:
            self._summarise(opened, whole[:cut])
            whole = whole[cut + len(BETWEEN) :]
        opened.pieces = [whole]

    def _summarise(self, opened: _Step, text: str) -> None:
        if text:
            item = {"type": "text", "text": text}
            opened.step.setdefault("summary", []).append(item)
            self._delta(opened, "thought_summary", content=item)

    def _signature_of(self, opened: _Step) -> str | None:
        if self._own:
            return opened.signature
        state = self._state.take(always=True)
        return self._sealed(state) if state is not None else None

    def _sign(self, signature: str | None, opened: _Step) -> None:
        if signature:
            opened.step["signature"] = signature
            self._delta(opened, "thought_signature", signature=signature)

    # -- ends of blocks

    def end_block(self, event: BlockEnd) -> None:
        """End another block, or write it whole."""
        block, index = event.block, event.index
        if isinstance(block, ToolUseBlock):
            self._whole_call(index, block)
            return
        if not self._own and isinstance(block, (RedactedThinkingBlock, OpaqueBlock)):
            self._settle()  # or the seal of an open thought would hold it too, and it would be read before the thought
        self._note(event)
        if isinstance(block, TextBlock):
            self._say(index, block.text)
            self._cite(index, block)
        elif isinstance(block, ThinkingBlock):
            if block.text or (self._own and index not in self._spoken):
                self._think(index, block.text)
            if (spoken := self._spoken.get(index)) is not None:
                spoken[0].signature = block.signature
        elif self._own and isinstance(block, (OpaqueBlock, *MEDIA)):
            self._held = index, block
        elif isinstance(block, MEDIA):
            if block.source.kind == "file_id":
                self._lose(block.type, "only the service of the model that answered has the file")
            else:
                self._content(index, to_wire_media(block))
        elif not isinstance(block, (RedactedThinkingBlock, OpaqueBlock)):
            self._lose(block.type, f"this API has no {block.type} in an answer")

    def _cite(self, index: int, block: TextBlock) -> None:
        """Write the citations of an own block of text, which readers attach to the last text of a step."""
        if not self._own or not block.citations:
            return
        opened, place = self._spoken.get(index, (None, -1))
        if opened is None or opened is not self._open or place != _last_text(opened.step):
            self._lose("text", "citations of text before the last one of its step have no place in a stream")
            return
        opened.step["content"][place]["annotations"] = block.citations
        self._delta(opened, "text_annotation_delta", annotations=block.citations)

    def _write_held(self, rows: Any = ()) -> None:
        """Write an own block with the members of its content in the newest step, if that is known."""
        held, self._held = self._held, None
        if held is None:
            return
        index, block = held
        shell: Mapping[str, Any] = rows[-1]["step"] if rows else EMPTY
        if isinstance(block, OpaqueBlock):
            data = block.data
            if block.kind.endswith(OWN_STEPS) or shell.get("type") == block.kind:
                self._settle()
                self._event("step.stop", index=self._start(index, dict(data)).place)
            else:
                self._content(index, dict(data))
            return
        made = to_wire_media(block)
        contents = shell.get("content") or ()
        known = contents[-1] if contents else EMPTY
        if isinstance(known, Mapping) and known.get("type") == made["type"]:
            made = {name: made.get(name) if value is IN_BLOCKS else value for name, value in known.items()}
        self._content(index, made)

    def _content(self, index: int, item: dict[str, Any]) -> None:
        opened = self._output(index, text=False)
        self._close_text(opened)
        opened.step["content"].append(item)
        self._event("step.delta", index=opened.place, delta=item)

    # -- calls

    def start_call(self, event: ToolUseStart) -> None:
        """Begin a call."""
        self._settle()
        wire_id = (event.provider_id if self._own else None) or event.id
        self._note(event, wire_id)
        step: dict[str, Any] = {"type": CALL, "id": wire_id, "name": event.name, "arguments": {}}
        opened = self._start(event.index, step)
        opened.start = event
        self._calls[event.index] = opened

    def _arguments(self, opened: _Step, text: str) -> None:
        if text:
            opened.pieces.append(text)
            self._delta(opened, "arguments_delta", arguments=text)

    def end_call(self, event: ToolUseEnd) -> None:
        """End a call."""
        opened = self._calls.pop(event.index, None)
        if opened is not None:
            self._note(event)
            self._close_call(opened, event.block)

    def _whole_call(self, index: int, block: ToolUseBlock) -> None:
        self.start_call(ToolUseStart(index=index, id=block.id, name=block.name, provider_id=block.provider_id))
        self.end_call(ToolUseEnd(index=index, block=block))

    def _close_call(self, opened: _Step, block: ToolUseBlock | None) -> None:
        if block is not None and not opened.pieces and block.input_json != "{}":
            self._arguments(opened, block.input_json)
        raw = "".join(opened.pieces) or "{}"
        value, error = read_tool_input(raw)
        opened.step["arguments"] = {"invalid_json": raw} if error else value
        if self._own and block is not None:
            self._sign(block.signature, opened)
        self._event("step.stop", index=opened.place)


def _last_text(step: Mapping[str, Any]) -> int:
    """Return the place of the last text in a step of output; -1 without one."""
    contents = step["content"]
    return next((at for at in range(len(contents) - 1, -1, -1) if contents[at].get("type") == "text"), -1)


def to_wire_usage(usage: Usage | None) -> dict[str, int]:
    """Return the counts; an unknown count is left out."""
    if usage is None:
        return {}
    visible = None if usage.output_tokens is None else usage.output_tokens - (usage.reasoning_tokens or 0)
    counts = {
        "total_input_tokens": usage.input_tokens,
        "total_cached_tokens": usage.cached_input_tokens,
        "total_output_tokens": visible,
        "total_thought_tokens": usage.reasoning_tokens,
    }
    known = {name: count for name, count in counts.items() if count is not None}
    if known:
        known["total_tokens"] = (usage.input_tokens or 0) + (usage.output_tokens or 0)
    return known
