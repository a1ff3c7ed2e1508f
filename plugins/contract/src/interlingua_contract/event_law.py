"""The legal sequence of stream events, as a pure check over a list of them.

A block starts before its deltas, with one kind per index; a call starts once, its pieces come before its end and add up
to its arguments, and its end has the id and the name of its start; nothing follows the end of a block or the terminal
event; there is at most one terminal event, and no call is open at `message_complete`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from interlingua.types import (
    BlockEnd,
    BlockStart,
    ErrorEvent,
    MessageComplete,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolUseBlock,
    ToolUseEnd,
    ToolUseInputDelta,
    ToolUseStart,
    read_tool_input,
)

_KINDS = {TextDelta: "text", ThinkingDelta: "thinking"}


class _EventChecker:
    def __init__(self) -> None:
        self.kinds: dict[int, str] = {}
        self.ended: set[int] = set()
        self.ids: set[str] = set()
        self.starts: dict[int, ToolUseStart] = {}
        self.pieces: dict[int, list[str]] = {}
        self.done: str | None = None

    def event(self, event: StreamEvent) -> Iterator[str]:
        if self.done is not None:
            yield f"{event.type} after the terminal {self.done}"
        if isinstance(event, (MessageComplete, ErrorEvent)):
            self.done = event.type
            return
        index = getattr(event, "index", None)
        if index is None:
            return
        if index in self.ended:
            yield f"{event.type} for block {index}, which has ended"
        yield from self.block(event, index)

    def block(self, event: StreamEvent, index: int) -> Iterator[str]:
        if isinstance(event, ToolUseStart):
            if index in self.kinds:
                yield f"call {index} starts on a block that has already started"
            if event.id in self.ids:
                yield f"call id {event.id} is given twice"
            self.ids.add(event.id)
            self.starts[index] = event
            self.kinds[index] = "tool_use"
        elif isinstance(event, (ToolUseInputDelta, ToolUseEnd)):
            if self.kinds.get(index) != "tool_use":
                yield f"{event.type} for block {index}, but no call has started there"
            if isinstance(event, ToolUseInputDelta):
                self.pieces.setdefault(index, []).append(event.partial_json)
            else:
                self.ended.add(index)
                yield from self.agrees(index, event.block)
                yield from self.adds_up(index, event.block)
        else:
            kind = event.block.type if isinstance(event, (BlockStart, BlockEnd)) else _KINDS.get(type(event), "")
            if self.kinds.setdefault(index, kind) != kind:
                yield f"{event.type} makes block {index} a {kind}; it was a {self.kinds[index]}"
            if isinstance(event, BlockEnd):
                self.ended.add(index)

    def agrees(self, index: int, block: ToolUseBlock | None) -> Iterator[str]:
        start = self.starts.get(index)
        if block is None or start is None:
            return
        for name in ("id", "name"):
            if getattr(start, name) != getattr(block, name):
                yield f"call {index} has the {name} {getattr(start, name)!r} and at its end {getattr(block, name)!r}"

    def adds_up(self, index: int, block: ToolUseBlock | None) -> Iterator[str]:
        text = "".join(self.pieces.get(index, ()))
        if block is None or not text:
            return
        value, error = read_tool_input(text)
        if error is None and block.parse_error is None and value != block.input:
            yield f"the pieces of call {index} add up to {value!r}, but its end has {block.input!r}"

    def finish(self) -> Iterator[str]:
        if self.done == "message_complete":
            open_calls = [index for index, kind in self.kinds.items() if kind == "tool_use" and index not in self.ended]
            if open_calls:
                yield f"call {open_calls[0]} is still open at message_complete"


def broken_laws(events: Iterable[StreamEvent]) -> Iterator[str]:
    """Yield what is illegal about a sequence of events; nothing when it is in order."""
    watch = _EventChecker()
    for event in events:
        yield from watch.event(event)
    yield from watch.finish()
