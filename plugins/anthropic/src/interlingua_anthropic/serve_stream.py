"""Write the events of an answer of any model as a stream of the Messages API (WIRE.md, Serving)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from interlingua.errors import InterlinguaError
from interlingua.plugins import dumps
from interlingua.types import (
    BlockEnd,
    ContentBlock,
    MessageComplete,
    RawUpdate,
    StreamEvent,
    TextBlock,
    TextDelta,
    ThinkingBlock,
    ThinkingDelta,
    ToolUseBlock,
    ToolUseEnd,
    ToolUseInputDelta,
    ToolUseStart,
)
from interlingua_anthropic.errors import error_detail
from interlingua_anthropic.serve_answer import (
    AnswerBlocks,
    call_input,
    envelope,
    to_wire_stop,
    to_wire_thinking_block,
    to_wire_usage,
)
from interlingua_serving import BaseStreamWriter, ServeContext, dumps_line, read_call

_PING = b'event: ping\ndata: {"type": "ping"}\n\n'
_DELTA = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":{"type":"%b_delta","%b":'


class MessagesWriter(BaseStreamWriter):
    """Writes the events of one answer as a stream of this API, one block after the other.

    Calls of other origins wait until they are complete: their origin attaches state at the end of a call, and the seal
    must precede the call.
    """

    def __init__(self, context: ServeContext) -> None:
        super().__init__(context)
        self._blocks = AnswerBlocks(context)
        self.losses = self._blocks.losses
        self._own = context.is_own
        self._started = False
        self._index = -1  # of the block written last
        self._open: int | None = None  # the canonical index of the block that is open
        self._live: int | None = None  # the same if it is a call, which no other block may interrupt
        self._called = False
        self._moved = False  # arguments of that call were written
        self._written: set[int] = set()  # canonical indexes of text and thinking blocks
        self._queue: list[StreamEvent] = []
        self._ending: ContentBlock | None = None  # the open block, complete except for state that may follow it
        self._prefix = b""
        self._starts: dict[int, ToolUseStart] = {}
        self._pieces: dict[int, list[str]] = {}
        self._whole: list[ToolUseBlock] = []
        self._stop_sequence: Any = None

    def feed(self, events: Iterable[StreamEvent]) -> bytes:
        """Return the bytes for these events; a ping if all of them have to wait."""
        data = super().feed(events)
        return _PING if not data and self._pieces and not self.ended else data

    def take(self, event: StreamEvent) -> None:
        """Call the method for one event, unless the event has to wait."""
        if isinstance(event, (TextDelta, ThinkingDelta)) and event.index == self._open and self._ending is None:
            self.feed_open(event)
        elif self._live is not None and getattr(event, "index", self._live) != self._live:
            self._queue.append(event)
        else:
            super().take(event)

    def write_delta(self, event: TextDelta | ThinkingDelta) -> None:
        """Write a piece of text or thinking."""
        self._begin(event.index, "text" if isinstance(event, TextDelta) else "thinking")
        self.feed_open(event)

    def note_raw(self, event: RawUpdate) -> None:
        """Note state of the origin."""
        self._note(event)
        if self._own and event.trace:
            self._stop_sequence = event.trace.get("stop_sequence", self._stop_sequence)

    def feed_open(self, event: TextDelta | ThinkingDelta) -> None:
        """Write a delta of the open block."""
        self._note(event)
        self.out.append(self._prefix + dumps_line(event.text) + b"}}\n\n")

    def _note(self, event: StreamEvent, wire_id: str = "") -> None:
        if not self._own:
            self._blocks.state.note(event, wire_id)

    # -- blocks

    def _begin(self, index: int, kind: str) -> None:
        """Open a block of text or thinking, unless it is open."""
        if self._open == index and self._ending is None:
            return
        self._written.add(index)
        self._settle()
        if kind == "text" and self._blocks.state.has_blocks:
            self._carry()
        empty = to_wire_thinking_block("", "") if kind == "thinking" else {"type": "text", "text": ""}
        self._start_block(empty)
        self._open = index
        self._prefix = _DELTA % (self._index, kind.encode(), kind.encode())
        self._kind = kind

    def _start_block(self, block: Mapping[str, Any]) -> None:
        self._start()
        self._index += 1
        self._event("content_block_start", index=self._index, content_block=block)

    def _delta(self, kind: str, **fields: Any) -> None:
        self._event("content_block_delta", index=self._index, delta={"type": kind, **fields})

    def _stop_block(self) -> None:
        self._event("content_block_stop", index=self._index)
        self._open, self._ending = None, None

    def _write_block(self, block: dict[str, Any]) -> None:
        """Write a whole block as its start, deltas and stop."""
        kind = block["type"]
        if kind == "thinking":
            self._start_block({**block, "signature": ""})
            self._delta("signature_delta", signature=block["signature"])
        elif kind == "tool_use":
            self._start_block({**block, "input": {}})
            self._delta("input_json_delta", partial_json=dumps(block["input"]).decode())
        else:
            self._start_block(block)
        self._stop_block()

    def _carry(self) -> None:
        if (carrier := self._blocks.carrier()) is not None:
            self._write_block(carrier)

    def end_block(self, event: BlockEnd) -> None:
        """End another block, or write it whole."""
        block = event.block
        self._note(event)
        if isinstance(block, (TextBlock, ThinkingBlock)):
            if self._open != event.index or self._ending is not None:
                if event.index in self._written or (not block.text and isinstance(block, TextBlock)):
                    return  # state after its block goes into the next seal
                self._begin(event.index, block.type)
                if block.text:
                    self.feed_open(
                        (TextDelta if isinstance(block, TextBlock) else ThinkingDelta)(
                            index=event.index, text=block.text
                        )
                    )
            self._ending = block
            return
        self._settle()
        if (made := self._blocks.to_wire(block)) is not None:
            self._write_block(made)

    def _settle(self) -> None:
        """Close the open block, and write the calls that are complete."""
        if self._open is not None:
            if self._kind == "thinking":
                own = self._ending.signature if isinstance(self._ending, ThinkingBlock) else None
                self._delta("signature_delta", signature=(own or "") if self._own else self._blocks.seal())
            elif self._own and isinstance(self._ending, TextBlock):
                for citation in self._ending.citations:
                    self._delta("citations_delta", citation=citation)
            self._stop_block()
        calls, self._whole = self._whole, []
        for call in calls:
            self._carry()
            if (made := self._blocks.to_wire(call)) is not None:
                self._write_block(made)

    # -- calls

    def start_call(self, event: ToolUseStart) -> None:
        """Begin a call."""
        wire_id = self._blocks.call_id(event)
        self._called = True
        self._note(event, wire_id)
        self._settle()
        self._starts[event.index] = event
        if self._own:
            self._start_block({"type": "tool_use", "id": wire_id, "name": event.name, "input": {}})
            self._live, self._moved = event.index, False
        else:
            self._start()
            self._pieces[event.index] = []

    def write_arguments(self, event: ToolUseInputDelta) -> None:
        """Write a piece of a call's arguments, or keep it until the call is whole."""
        self._note(event)
        if event.index == self._live:
            self._moved = True
            self._delta("input_json_delta", partial_json=event.partial_json)
        elif event.index in self._pieces:
            self._pieces[event.index].append(event.partial_json)

    def end_call(self, event: ToolUseEnd) -> None:
        """End a call."""
        start = self._starts.pop(event.index, None)
        if start is None:
            return
        self._note(event)
        if event.index == self._live:
            self._end_live(event.block)
            return
        raw = "".join(self._pieces.pop(event.index))
        self._whole.append(event.block or read_call(start, raw))

    def _end_live(self, block: ToolUseBlock | None = None) -> None:
        """End the open call, and write what waited for it."""
        if self._live is None:
            return
        if block is not None and not self._moved:
            self._delta("input_json_delta", partial_json=dumps(call_input(block)).decode())
        self._live = None
        self._stop_block()
        waiting, self._queue = self._queue, []
        for event in waiting:
            self.take(event)

    # -- the answer

    def _event(self, name: str, **fields: Any) -> None:
        self.out.append(b"event: %b\ndata: %b\n\n" % (name.encode(), dumps_line({"type": name, **fields})))

    def _start(self) -> None:
        if not self._started:
            self._started = True
            usage = {**to_wire_usage(self.usage), "output_tokens": self.usage.output_tokens or 0}
            message = {
                **envelope(self.context),
                "content": [],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": usage,
            }
            self._event("message_start", message=message)

    def complete(self, event: MessageComplete) -> None:
        """Write the end of a whole answer."""
        self._start()
        self._end_live()
        self._settle()
        self._blocks.end()
        stop = to_wire_stop(event.stop_reason, event.stop_reason_raw, self.context, called=self._called)
        delta = {"stop_reason": stop, "stop_sequence": self._stop_sequence}
        self._event("message_delta", delta=delta, usage=to_wire_usage(self.usage))
        self._event("message_stop")
        self.ended = True

    def fail(self, error: InterlinguaError) -> None:
        """Write an error, the end of an answer that failed."""
        self._event("error", error=error_detail(error)[1])
        self.ended = True
