"""The base of the writers of streams."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from interlingua.errors import InterlinguaError, ServerError, StreamInterruptedError
from interlingua.plugins import Loss
from interlingua.types import (
    BlockEnd,
    ErrorEvent,
    MessageComplete,
    RawUpdate,
    StopReason,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolUseBlock,
    ToolUseEnd,
    ToolUseInputDelta,
    ToolUseStart,
    Usage,
    UsageUpdate,
    read_tool_input,
)
from interlingua_serving.values import ServeContext


class BaseStreamWriter(ABC):
    """A `StreamWriter` to derive from. It calls a method for each event until the answer has ended.

    A method appends bytes to `out`; `complete` and `fail` also set `ended`. An answer that ends with
    `StopReason.ERROR`, or that no event ended, has failed.

    Args:
        context: the facts of the request.

    Attributes:
        context: the same.
        content_type: the media type of the HTTP response.
        losses: the parts of the answer that this API cannot express.
        out: bytes that are not yet returned.
        ended: True after the end of the stream was written; later events are ignored.
        usage: the counts so far.
    """

    content_type = "text/event-stream; charset=utf-8"

    def __init__(self, context: ServeContext) -> None:
        self.context = context
        self.losses: list[Loss] = []
        self.out: list[bytes] = []
        self.ended = False
        self.usage = Usage()

    def feed(self, events: Iterable[StreamEvent]) -> bytes:
        """Return the bytes for these events."""
        for event in events:
            if not self.ended:
                self.take(event)
        data = b"".join(self.out)
        self.out.clear()
        return data

    def end(self) -> bytes:
        """Return the rest of the stream: an error if no event ended the answer."""
        return b"" if self.ended else self.feed([ErrorEvent(error=StreamInterruptedError("the answer broke off"))])

    def take(self, event: StreamEvent) -> None:
        """Call the method for one event."""
        if isinstance(event, (TextDelta, ThinkingDelta)):
            self.write_delta(event)
        elif isinstance(event, ToolUseInputDelta):
            self.write_arguments(event)
        elif isinstance(event, ToolUseStart):
            self.start_call(event)
        elif isinstance(event, ToolUseEnd):
            self.end_call(event)
        elif isinstance(event, BlockEnd):
            self.end_block(event)
        elif isinstance(event, RawUpdate):
            self.note_raw(event)
        elif isinstance(event, UsageUpdate):
            self.usage = self.usage.updated(event.usage)
        elif isinstance(event, MessageComplete):
            if event.stop_reason is StopReason.ERROR:
                self.fail(ServerError("the model's answer ended with an error"))
            else:
                self.complete(event)
        elif isinstance(event, ErrorEvent):
            self.fail(event.error)

    @abstractmethod
    def write_delta(self, event: TextDelta | ThinkingDelta) -> None:
        """Write a piece of text or thinking."""

    @abstractmethod
    def start_call(self, event: ToolUseStart) -> None:
        """Begin a call."""

    @abstractmethod
    def write_arguments(self, event: ToolUseInputDelta) -> None:
        """Write a piece of a call's arguments."""

    @abstractmethod
    def end_call(self, event: ToolUseEnd) -> None:
        """End a call."""

    @abstractmethod
    def end_block(self, event: BlockEnd) -> None:
        """End another block, or write it whole."""

    @abstractmethod
    def note_raw(self, event: RawUpdate) -> None:
        """Note state of the origin."""

    @abstractmethod
    def complete(self, event: MessageComplete) -> None:
        """Write the end of a whole answer."""

    @abstractmethod
    def fail(self, error: InterlinguaError) -> None:
        """Write an error, the end of an answer that failed."""


def read_call(start: ToolUseStart, arguments: str) -> ToolUseBlock:
    """Return a call whose origin sent no block at its end.

    Args:
        start: the event that began it.
        arguments: the pieces of its arguments, joined.
    """
    value, error = read_tool_input(arguments)
    return ToolUseBlock(
        id=start.id,
        name=start.name,
        input=value,
        provider_id=start.provider_id,
        raw_input=arguments,
        parse_error=error,
    )
