"""`MessageStream`: a streamed answer for blocking code.

Never decodes by itself (the reading does) and never tries again once an event was given out.
The blocking client makes these; applications use them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from types import TracebackType

from interlingua.client.exchange import FAILED, Exchange
from interlingua.client.outcome import Outcome
from interlingua.client.reading import Reading
from interlingua.errors import CallerError, InterlinguaError, TransportError
from interlingua.events import ErrorEvent, StreamEvent, TextDelta
from interlingua.messages import Message
from interlingua.transport import Answer, SyncTransport
from interlingua.wire import WireRequest


class MessageStream:
    """A streamed answer; use it in a `with` statement and iterate over its events.

    Entering sends the request and waits for the first event: what fails before that is tried again as the client's
    `Retry` says, and raised from here. A failure later comes as a terminal `ErrorEvent`, then is raised with
    `.partial`. Leaving early, `cancel` and Ctrl-C keep what was received as a CANCELLED message.
    """

    def __init__(self, exchange: Exchange, transport: SyncTransport, sleep: Callable[[float], None]) -> None:
        self._outcome = Outcome(exchange)
        self._transport = transport
        self._sleep = sleep
        self._answer: Answer | None = None
        self._chunks: Iterator[bytes] = iter(())
        self._begun: list[StreamEvent] = []
        self._events: Iterator[StreamEvent] | None = None

    def __enter__(self) -> MessageStream:
        exchange = self._outcome.exchange
        try:
            while self._events is None:
                try:
                    self._begun = self._open(exchange)
                    self._events = self._run()
                except InterlinguaError as error:
                    self._close()
                    self._sleep(exchange.pause(error))
        except InterlinguaError as error:
            self._outcome.fail(error)
            raise
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._leave()

    def __iter__(self) -> Iterator[StreamEvent]:
        if self._events is None:
            raise CallerError("the stream is not open: use it in a with statement")
        return self._events

    @property
    def text_stream(self) -> Iterator[str]:
        """The pieces of text alone, as they arrive."""
        return (event.text for event in self if type(event) is TextDelta)

    @property
    def message(self) -> Message:
        """The message; reading it waits for the rest of the answer.

        Raises:
            InterlinguaError: what ended the stream, with `.partial`.
        """
        if not self._outcome.settled:
            for _ in self:
                pass
        return self._outcome.result()

    @property
    def partial(self) -> Message:
        """What was received so far, as a message; made anew each time it is asked for."""
        return self._outcome.partial()

    @property
    def request(self) -> WireRequest:
        """What was sent, with its losses."""
        return self._outcome.request

    def cancel(self) -> None:
        """Stop; what was received stays as a CANCELLED message. May be called from another thread."""
        self._outcome.stopped = True
        if self._answer is not None and not self._outcome.settled:
            self._answer.break_off()

    def _open(self, exchange: Exchange) -> list[StreamEvent]:
        answer = self._answer = self._transport.open(exchange.outgoing(), exchange.limits)
        if answer.status >= FAILED:
            exchange.read(answer.status, answer.headers, answer.read())
        reading = self._outcome.begin(Reading(exchange, answer.status, answer.headers))
        self._chunks = answer.chunks()
        try:
            for raw in self._chunks:
                events = reading.feed(raw)
                if events:
                    return self._outcome.begun(events)
        except TransportError as error:
            return self._outcome.begun(reading.end(error))
        return self._outcome.begun(reading.end())

    def _run(self) -> Iterator[StreamEvent]:
        outcome, reading = self._outcome, self._outcome.reading
        assert reading is not None  # noqa: S101
        broken: InterlinguaError | None = None
        events, feed = self._begun, reading.feed
        try:
            try:
                for raw in chain((b"",), self._chunks):  # the first events are there already
                    if raw:
                        events = feed(raw)
                    for event in events:
                        if outcome.stopped:
                            break
                        yield event
                    if outcome.stopped or (events and type(events[-1]) is ErrorEvent):
                        break
            except TransportError as error:
                broken = error
            if outcome.stopped:
                outcome.cancel()
                return
            yield from reading.end(broken)
            outcome.settle()
        except InterlinguaError as error:
            outcome.fail(error)
            raise
        except BaseException:  # Ctrl-C while waiting, or the stream was left
            outcome.cancel()
            raise
        finally:
            self._close()

    def _close(self) -> None:
        if self._answer is not None:
            self._answer.close()

    def _leave(self) -> None:
        self._outcome.cancel()
        self._close()
