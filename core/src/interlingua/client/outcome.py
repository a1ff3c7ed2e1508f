"""What became of a stream: still running, whole, cancelled or failed, and the message in each case.

Never waits and never reads bytes.
The two message streams come in.
"""

from __future__ import annotations

from interlingua.client.exchange import Exchange
from interlingua.client.reading import Reading
from interlingua.errors import CallerError, InterlinguaError
from interlingua.events import ErrorEvent, StreamEvent
from interlingua.messages import Message, MessageStatus
from interlingua.wire import WireRequest


class Outcome:
    """The state both message streams keep.

    Attributes:
        stopped: somebody called `cancel`.
        reading: the attempt that is being read; None before the first answer.
    """

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.stopped = False
        self.reading: Reading | None = None
        self._message: Message | None = None
        self._error: InterlinguaError | None = None

    @property
    def request(self) -> WireRequest:
        """What was sent."""
        return self.exchange.wire

    @property
    def settled(self) -> bool:
        """True when nothing more will come."""
        return self._message is not None or self._error is not None

    def begin(self, reading: Reading) -> Reading:
        """Take up a fresh attempt's answer."""
        self.reading = reading
        return reading

    @staticmethod
    def begun(events: list[StreamEvent]) -> list[StreamEvent]:
        """Pass the first events on; a failure before all others is raised, so that it can be tried again."""
        if events and isinstance(events[0], ErrorEvent):
            raise events[0].error
        return events

    def settle(self) -> None:
        """All events were delivered: keep the message.

        Raises:
            InterlinguaError: what ended the stream, with `.partial`.
        """
        assert self.reading is not None  # noqa: S101
        self._message = self.reading.message()

    def fail(self, error: InterlinguaError) -> None:
        """Keep what ended the stream."""
        self._error = error
        if error.partial is None:
            error.partial = self._snapshot(MessageStatus.ERROR)

    def cancel(self) -> None:
        """Keep what was received as a cancelled message, unless the stream had ended."""
        if not self.settled:
            whole = self.reading is not None and self.reading.complete
            self._message = self._snapshot(MessageStatus.COMPLETE if whole else MessageStatus.CANCELLED)
            if self.reading is not None:
                self.reading.close()

    def result(self) -> Message:
        """Return the message.

        Raises:
            InterlinguaError: what ended the stream, with `.partial`.
        """
        if self._error is not None:
            raise self._error
        if self._message is None:
            raise CallerError("the stream is not open: use it in a with statement")
        return self._message

    def partial(self) -> Message:
        """Return what was received so far, or the message if it is whole."""
        if self._message is not None:
            return self._message
        if self._error is not None and isinstance(self._error.partial, Message):
            return self._error.partial
        return self._snapshot(MessageStatus.PARTIAL)

    def _snapshot(self, status: MessageStatus) -> Message:
        if self.reading is None:
            return self.exchange.context.message([], stop_reason=None, status=status)
        return self.reading.partial(status)
