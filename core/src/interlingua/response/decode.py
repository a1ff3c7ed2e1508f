"""Decode one streamed answer: bytes in, events out, a message at the end.

There is no I/O and no waiting here: the adapter's async generator is driven by hand, so both clients share it.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Generator

from interlingua.errors import InterlinguaError, MalformedResponseError, PluginError, StreamInterruptedError
from interlingua.plugins.provider import Provider
from interlingua.plugins.wire import RequestContext, WireChunk
from interlingua.response.assemble import Assembler
from interlingua.response.framing import Framer
from interlingua.types.events import ErrorEvent, StreamEvent
from interlingua.types.messages import Message, MessageStatus

_MORE = object()
_ONCE = (_MORE,)
_UNREADABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError)


class _Pause:
    """Awaiting it gives control back, once, to whoever drives the adapter."""

    __slots__ = ()

    def __await__(self) -> Generator[object, None, None]:
        return iter(_ONCE)  # type: ignore[return-value]  # any iterator will do; this one is cheapest


_pause = _Pause()


class StreamDecoder:
    """Turns the bytes of one streamed answer into events and, at the end, into its message."""

    def __init__(self, provider: Provider, framer: Framer, context: RequestContext) -> None:
        self._provider = provider
        self._framer = framer
        self._frame = framer.feed
        self._context = context
        self._assembler = Assembler(context)
        self._batch: list[WireChunk] | None = None
        self._out: list[StreamEvent] = []
        self._assemble = self._assembler.feed
        self._pump = self._run()
        self._resume = self._pump.send
        self._done = False
        self._closed = False
        self._complete_before_end = False
        hooks = sys.get_asyncgen_hooks()
        if hooks.finalizer is None:
            self._drive(None)
            return
        # an event loop must not close in a task what is driven and closed by hand (Python asks for its hooks here)
        sys.set_asyncgen_hooks(None, None)
        try:
            self._drive(None)
        finally:
            sys.set_asyncgen_hooks(*hooks)

    async def _source(self) -> AsyncIterator[WireChunk]:
        while True:
            await _pause
            if self._batch is None:
                return
            for chunk in self._batch:
                yield chunk

    async def _run(self) -> None:
        async for event in self._provider.stream_response(self._source(), self._context):
            self._out.append(event)

    def _drive(self, batch: list[WireChunk] | None) -> None:
        """Let the adapter work until it wants more; what it raises becomes a terminal error event."""
        self._batch = batch
        try:
            wanted = self._resume(None)
        except BaseException as error:  # StopIteration too
            self._handle_end(error)
        else:
            if wanted is not _MORE:
                self._refuse_await()

    def _handle_end(self, error: BaseException) -> None:
        """Note that the adapter has ended, well or not; what is no fault of the wire is raised."""
        if isinstance(error, StopIteration):
            self._done = True
        elif isinstance(error, InterlinguaError):
            self._fail(error)
        elif isinstance(error, _UNREADABLE):
            why = f"the stream is not what the wire format allows: {type(error).__name__}: {error}"
            malformed = MalformedResponseError(why)
            malformed.__cause__ = error
            self._fail(malformed)
        else:
            raise error

    def _refuse_await(self) -> None:
        self._pump.close()
        self._fail(PluginError("stream_response awaited something other than its stream"))

    def _fail(self, error: InterlinguaError) -> None:
        self._done = True
        self._out.append(ErrorEvent(error=error))

    def feed(self, data: bytes) -> list[StreamEvent]:
        """Take bytes as they arrive; return the events they complete."""
        try:
            batch = self._frame(data)
        except InterlinguaError as error:
            if not self._done:
                self._fail(error)
            return self._take_events()
        if not batch or self._done:
            return []
        self._batch = batch
        try:
            wanted = self._resume(None)  # as `_drive` does, without a further call per chunk
        except BaseException as error:  # StopIteration too
            self._handle_end(error)
        else:
            if wanted is not _MORE:
                self._refuse_await()
        events = self._out
        if events:
            self._out = []
            self._assemble(events)
            if self._assembler.error is not None:
                self._annotate_error()
        return events

    def end(self, *, broken: bool = False) -> list[StreamEvent]:
        """The body is over (`broken`: the connection was lost); return the last events."""
        if self._closed:
            return []
        self._closed = True
        self._complete_before_end = self.complete
        if not self._done and not broken:
            try:
                batch = self._framer.close()
            except InterlinguaError as error:
                self._fail(error)
            else:
                if batch:
                    self._drive(batch)
        if not self._done:
            self._drive(None)
        if not self._done:
            self._pump.close()
            self._fail(PluginError("stream_response went on waiting after its stream had ended"))
        return self._take_events()

    def _take_events(self) -> list[StreamEvent]:
        events, self._out = self._out, []
        self._assemble(events)
        if self._assembler.error is not None:
            self._annotate_error()
        return events

    def _annotate_error(self) -> None:
        error = self._assembler.error
        if error is not None and error.provider is None:
            error.provider, error.model = self._context.origin.provider, self._context.origin.model

    @property
    def complete(self) -> bool:
        """True once the terminal event of a good end was read."""
        return self._assembler.complete is not None and self._assembler.error is None

    @property
    def failed(self) -> InterlinguaError | None:
        """The error the stream reported, once it has."""
        return self._assembler.error

    def partial(self, status: MessageStatus = MessageStatus.PARTIAL, error: BaseException | None = None) -> Message:
        """Return what was received so far."""
        return self._assembler.message(status, error)

    def message(self, *, broken: BaseException | None = None) -> Message:
        """Return the whole message, after `end`.

        Raises:
            InterlinguaError: what the stream reported, with `.partial`.
            StreamInterruptedError: it ended before its terminal event, or the connection broke; with `.partial`.
        """
        error = self._assembler.error
        # a connection that breaks after the terminal event takes nothing away; one the flush made up for does
        if error is None and (
            self._assembler.complete is None or (broken is not None and not self._complete_before_end)
        ):
            why = f"the connection broke: {broken}" if broken else "the stream ended before its terminal event"
            origin = self._context.origin
            error = StreamInterruptedError(why, provider=origin.provider, model=origin.model)
            error.__cause__ = broken
        if error is not None:
            error.partial = self.partial(MessageStatus.ERROR, error)
            raise error
        return self._assembler.message(MessageStatus.COMPLETE)

    def close(self) -> None:
        """Drop the adapter's generator; safe at any time."""
        self._done = True
        self._pump.close()
