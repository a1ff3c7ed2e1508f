"""Streamed answers that are stored while they arrive, for blocking and asynchronous code."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import suppress
from threading import Event, Thread
from typing import Any, Generic, Self, TypeVar

import attrs

from interlingua import AsyncClient, AsyncMessageStream, CallerError, Client, InterlinguaError, MessageStream
from interlingua.plugins import LiveOutput, WireRequest
from interlingua.types import Message, MessageStatus, StreamEvent, TextDelta, ToolDefinition
from interlingua_sessions.routing.router import RouteDecision, TurnPlan
from interlingua_sessions.store import StoreError
from interlingua_sessions.turn import ClientT, SessionState, TurnBase, with_refused

StreamT = TypeVar("StreamT", MessageStream, AsyncMessageStream)
T = TypeVar("T")
_log = logging.getLogger("interlingua")
SAVE_EVERY = 0.15  # seconds between two saves; with the save itself a kill loses less than 250 ms of text


async def in_thread(work: Callable[..., T], *given: Any) -> T:
    """Run store work in a worker thread. A task cancelled meanwhile ends only when the work is done.

    So a task's writes stay in order, and none happens after the task has ended.
    """
    done = asyncio.ensure_future(asyncio.to_thread(work, *given))
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        while not done.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([done])
        if not done.cancelled():
            done.exception()  # or asyncio warns that it was never retrieved
        raise


class SnapshotThread:
    """Calls `save` from a separate thread: at once on the first `touch`, then at most every `SAVE_EVERY` seconds.

    A thread, because text may arrive and then nothing for a minute: no later event would save it.
    """

    def __init__(self, save: Callable[[], None], every: float = SAVE_EVERY) -> None:
        self._save = save
        self._every = every
        self._dirty = Event()
        self._stopped = Event()
        self._thread = Thread(target=self._run, name="interlingua-sessions-saver", daemon=True)
        self._started = False

    def touch(self) -> None:
        """Record that something arrived that is not saved yet."""
        if not self._dirty.is_set():  # cheaper than to set it for each event
            self._dirty.set()
        if not self._started:
            self._started = True
            self._thread.start()

    def stop(self) -> None:
        """Save no more, and wait for a save that is running."""
        self._stopped.set()
        self._dirty.set()
        if self._started:
            self._thread.join()

    def _run(self) -> None:
        while True:
            self._dirty.wait()
            if self._stopped.is_set():
                return
            self._dirty.clear()
            try:
                self._save()
            except InterlinguaError as error:  # the end of the stream saves all of it, and raises then
                _log.warning("an unfinished answer could not be saved: %s", error)
            self._stopped.wait(self._every)


class AnswerWriter:
    """Stores one streamed answer: as PARTIAL while it grows, then in its final state.

    Args:
        state: the session.
        snapshot: returns the answer received so far; called in the saving thread.
        fallback: the decision for the model that answers, if it is a fallback.
    """

    def __init__(self, state: SessionState, snapshot: Callable[[], Message], fallback: RouteDecision | None) -> None:
        self._state = state
        self._fallback = fallback
        self._snapshot = snapshot
        self._seen = state.last_id
        self._partial: list[Message] = []  # as it was stored first, behind what others stored meanwhile
        self._saver = SnapshotThread(self._save)
        self.touch = self._saver.touch
        self.stored: Message | None = None

    def settle(self, message: Message) -> Message:
        """Store the answer in its final state, once. An incomplete answer without content leaves no message."""
        if self.stored is None:
            self._saver.stop()
            named, state = self._named(message), self._state
            try:
                if self._partial:
                    rows = [*self._partial[:-1], state.store.finish(named)]
                elif named.content or named.metadata.status is MessageStatus.COMPLETE:
                    rows = state.store.extend([named], after=state.last_id)
                else:
                    rows = []
            except StoreError as error:  # the answer was paid for: the error has it
                error.partial = self.stored = named
                raise
            state.add_rows(rows)
            self.stored = rows[-1] if rows else named
        return self.stored

    def fail(self, error: InterlinguaError) -> None:
        """Store the part received before an error, and set the error's `partial` to the stored message."""
        if isinstance(error.partial, Message):
            error.partial = self.settle(error.partial)
        self._saver.stop()

    def _save(self) -> None:
        message = self._snapshot()
        if not message.content or message.metadata.status is not MessageStatus.PARTIAL:
            return
        if self._partial:
            self._state.store.save_partial(self._named(message))
        else:
            self._partial = self._state.store.extend([self._named(message)], after=self._seen)

    def _named(self, message: Message) -> Message:
        """Return a message as this session's, under the id that the answer has in the store."""
        owned = self._state.as_own(with_refused(message, self._fallback))
        return attrs.evolve(owned, id=self._partial[-1].id) if self._partial else owned


class _Stream(Generic[ClientT, StreamT]):
    """Shared code of both streams: the client's stream, and the writer that stores the answer."""

    def __init__(
        self,
        state: SessionState,
        turn: TurnBase[ClientT],
        client: ClientT,
        tools: Sequence[ToolDefinition],
        options: Mapping[str, Any],
        start: Callable[[], Any],
    ) -> None:
        self._state = state
        self._turn: TurnBase[ClientT] = turn
        self._client: ClientT = client
        self._tools = tools
        self._options = options
        self._start = start
        self._inner: StreamT | None = None
        self._writer: AnswerWriter | None = None

    @property
    def partial(self) -> Message:
        """The answer received so far; built at each read."""
        inner, writer = self._opened()
        return writer.stored or inner.partial

    @property
    def request(self) -> WireRequest:
        """The request that was sent, with its losses."""
        return self._opened()[0].request

    def cancel(self) -> None:
        """Stop; what was received stays as a CANCELLED message. May be called from another thread."""
        self._opened()[0].cancel()

    def _set_open(self, inner: StreamT, plan: TurnPlan) -> AnswerWriter:
        self._inner = inner
        self._writer = AnswerWriter(self._state, lambda: inner.partial, self._turn.note_model(plan, inner.partial))
        return self._writer

    def _opened(self) -> tuple[StreamT, AnswerWriter]:
        if self._inner is None or self._writer is None:
            word = "a with" if isinstance(self, SessionStream) else "an async with"
            raise CallerError(f"the stream is not open: use it in {word} statement")
        return self._inner, self._writer


class SessionStream(_Stream[Client, MessageStream]):
    """As core's `MessageStream`; use it in a `with` statement.

    Entering stores the question, chooses a model and waits for the first event; if its service fails, the next allowed
    model is asked there. While events arrive the answer is saved as PARTIAL; at the end, on
    leaving early, on `cancel` and on Ctrl-C it is stored as what it became.
    """

    _events: Iterator[StreamEvent]
    _batches: Iterator[list[StreamEvent]]

    def __enter__(self) -> Self:
        self._start()
        plan = self._turn.plan(self._tools, self._options)
        inner = self._client.stream(plan.messages, **plan.arguments).__enter__()
        writer = self._set_open(inner, plan)
        self._events = self._run(inner, inner, writer)
        self._batches = self._run(inner.batches(), inner, writer)
        return self

    def __exit__(self, *exc: object) -> None:
        inner, writer = self._opened()
        inner.__exit__(None, None, None)
        writer.settle(inner.partial)

    def __iter__(self) -> Iterator[StreamEvent]:
        self._opened()
        return self._events

    def batches(self) -> Iterator[list[StreamEvent]]:
        """Iterate over the events of each read of the answer, together, instead of iterating over the stream."""
        self._opened()
        return self._batches

    @property
    def text_stream(self) -> Iterator[str]:
        """The pieces of text alone, as they arrive."""
        return (event.text for event in self if type(event) is TextDelta)

    @property
    def message(self) -> Message:
        """The answer as stored; reading it waits for the rest.

        Raises:
            InterlinguaError: the error that ended the stream, with `.partial`.
        """
        inner, writer = self._opened()
        if writer.stored is None:
            for _ in self._events:
                pass
        return writer.settle(inner.message)

    def show(self) -> Message:
        """As core's `MessageStream.show`."""
        live = LiveOutput()
        for text in self.text_stream:
            live.add(text)
        live.end([self.message])
        return self.message

    @staticmethod
    def _run(items: Iterable[T], inner: MessageStream, writer: AnswerWriter) -> Iterator[T]:
        try:
            for item in items:
                writer.touch()
                yield item
            writer.settle(inner.message)
        except InterlinguaError as error:
            writer.fail(error)
            raise


class AsyncSessionStream(_Stream[AsyncClient, AsyncMessageStream]):
    """As `SessionStream`, with `async with`, `async for` and `await stream.message`."""

    _events: AsyncIterator[StreamEvent]
    _batches: AsyncIterator[list[StreamEvent]]

    async def __aenter__(self) -> Self:
        await self._start()
        plan = self._turn.plan(self._tools, self._options)
        inner = await self._client.stream(plan.messages, **plan.arguments).__aenter__()
        writer = self._set_open(inner, plan)
        self._events = self._run(inner, inner, writer)
        self._batches = self._run(inner.batches(), inner, writer)
        return self

    async def __aexit__(self, *exc: object) -> None:
        inner, writer = self._opened()
        await inner.__aexit__(None, None, None)
        await in_thread(writer.settle, inner.partial)

    def __aiter__(self) -> AsyncIterator[StreamEvent]:
        self._opened()
        return self._events

    def batches(self) -> AsyncIterator[list[StreamEvent]]:
        """As `SessionStream.batches`."""
        self._opened()
        return self._batches

    @property
    def text_stream(self) -> AsyncIterator[str]:
        """The pieces of text alone, as they arrive."""
        return (event.text async for event in self if type(event) is TextDelta)

    @property
    def message(self) -> Awaitable[Message]:
        """The answer as stored, to be awaited; that waits for the rest.

        Raises:
            InterlinguaError: the error that ended the stream, with `.partial`; raised by awaiting.
        """
        return _Rest(self._rest)

    async def show(self) -> Message:
        """As core's `MessageStream.show`."""
        live = LiveOutput()
        async for text in self.text_stream:
            live.add(text)
        live.end([await self.message])
        return await self.message

    async def _rest(self) -> Message:
        inner, writer = self._opened()
        if writer.stored is None:
            async for _ in self._events:
                pass
        return await in_thread(writer.settle, await inner.message)

    @staticmethod
    async def _run(items: AsyncIterable[T], inner: AsyncMessageStream, writer: AnswerWriter) -> AsyncIterator[T]:
        try:
            async for item in items:
                writer.touch()
                yield item
            await in_thread(writer.settle, await inner.message)
        except InterlinguaError as error:
            await in_thread(writer.fail, error)
            raise


class _Rest:
    """The rest of an answer; nothing runs before it is awaited, so reading `message` alone leaves no coroutine."""

    def __init__(self, rest: Callable[[], Any]) -> None:
        self._rest = rest

    def __await__(self) -> Generator[Any, None, Message]:
        message: Message = yield from self._rest().__await__()
        return message
