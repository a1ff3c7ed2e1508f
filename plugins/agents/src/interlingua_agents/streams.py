"""A run as a stream of events, for blocking and asynchronous code: nothing goes on unless somebody iterates."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, Generic, Self, TypeVar

import attrs

from interlingua import CallerError
from interlingua.types import Message
from interlingua_agents.events import TextDelta, ThinkingDelta
from interlingua_agents.results import AgentRun, OutputPartial, OutputT, RunEvent
from interlingua_agents.run import Run

ResultT = TypeVar("ResultT")
_T = TypeVar("_T")


@attrs.frozen(kw_only=True)
class StartedRun:
    """A run that has begun.

    Attributes:
        run: its state.
        batches: does its steps when iterated over, and yields its events, those of one moment together; one that never
            suspends for blocking code.
        result: gives what it came to, after the last event.
        cancel: stops it; any thread may call it.
    """

    run: Run
    batches: AsyncGenerator[list[RunEvent], None]
    result: Callable[[], AgentRun[Any]]
    cancel: Callable[[], None]

    def still_shown(self, batch: list[RunEvent]) -> Iterator[RunEvent]:
        """Yield the events of a batch; nobody is shown more of an answer after they cancelled it."""
        for event in batch:
            if not (self.run.cancelled and isinstance(event, _GROWING)):
                yield event


_GROWING = (TextDelta, ThinkingDelta, OutputPartial)


def iterate_blocking(events: AsyncGenerator[_T, None]) -> Iterator[_T]:
    """Iterate over an asynchronous generator that never suspends, and close it."""
    proceed = events.__anext__
    try:
        while True:
            try:
                proceed().send(None)
            except StopIteration as end:  # as a coroutine returns
                yield end.value
            except StopAsyncIteration:
                return
            else:
                raise AssertionError("a blocking driver suspended")
    finally:
        run_blocking(events.aclose())


def run_blocking(body: Awaitable[_T]) -> _T:
    """Run something that never suspends."""
    work = body.__await__()
    try:
        next(work)
    except StopIteration as end:
        value: _T = end.value
        return value
    raise AssertionError("a blocking driver suspended")


class _Stream(Generic[OutputT]):
    _started: StartedRun | None = None
    _with = "a with"

    @property
    def messages(self) -> tuple[Message, ...]:
        """What the run has added so far: question, answers and tool results; also after a failure."""
        return self._open().run.messages

    def cancel(self) -> None:
        """Stop the run; any thread may call it.

        A streaming answer ends as CANCELLED, calls without a result get one that says so, and the events end.
        """
        self._open().cancel()

    def _open(self) -> StartedRun:
        if self._started is None:
            raise CallerError(f"the stream is not open: use it in {self._with} statement")
        return self._started


class RunStream(_Stream[OutputT]):
    """The events of a run, in a `with` statement.

    Iterating makes the run go on: asks, runs the calls, asks again. Leaving early ends it: what was received of an
    answer is kept as CANCELLED, and calls without a result get one that says so.

    Args:
        opening: entered with the stream.
    """

    def __init__(self, opening: AbstractContextManager[StartedRun]) -> None:
        self._opening = opening
        self._events: Iterator[RunEvent]

    def __enter__(self) -> Self:
        self._started = self._opening.__enter__()
        self._events = self._iterate(self._started)
        return self

    def __exit__(self, *exc: Any) -> None:
        try:
            run_blocking(self._open().batches.aclose())
        finally:
            self._opening.__exit__(*exc)

    def __iter__(self) -> Iterator[RunEvent]:
        self._open()
        return self._events

    @staticmethod
    def _iterate(started: StartedRun) -> Iterator[RunEvent]:
        for batch in iterate_blocking(started.batches):
            yield from started.still_shown(batch)

    @property
    def text_stream(self) -> Iterator[str]:
        """The pieces of text alone, of all answers, as they arrive."""
        return (event.text for event in self if type(event) is TextDelta)

    @property
    def result(self) -> AgentRun[OutputT]:
        """What the run came to; reading it waits for the rest.

        Raises:
            InterlinguaError: what ended the run; `messages` has all that was done before.
        """
        for _ in self:
            pass
        return self._open().result()

    @property
    def message(self) -> Message:
        """The last answer; reading it waits for the rest, as `result`."""
        return self.result.stop.message


class AsyncRunStream(_Stream[OutputT]):
    """As `RunStream`, with `async with`, `async for` and `await stream.result`."""

    _with = "an async with"

    def __init__(self, opening: AbstractAsyncContextManager[StartedRun]) -> None:
        self._opening = opening
        self._events: AsyncGenerator[RunEvent, None]

    async def __aenter__(self) -> Self:
        self._started = await self._opening.__aenter__()
        self._events = self._iterate(self._started)
        return self

    async def __aexit__(self, *exc: Any) -> None:
        try:
            await self._events.aclose()
            await self._open().batches.aclose()
        finally:
            await self._opening.__aexit__(*exc)

    def __aiter__(self) -> AsyncIterator[RunEvent]:
        self._open()
        return self._events

    @staticmethod
    async def _iterate(started: StartedRun) -> AsyncGenerator[RunEvent, None]:
        async for batch in started.batches:
            for event in started.still_shown(batch):
                yield event

    @property
    def text_stream(self) -> AsyncIterator[str]:
        """As `RunStream.text_stream`."""
        return (event.text async for event in self if type(event) is TextDelta)

    @property
    def result(self) -> Awaitable[AgentRun[OutputT]]:
        """As `RunStream.result`, to be awaited."""
        return _Later(self._rest)

    @property
    def message(self) -> Awaitable[Message]:
        """As `RunStream.message`, to be awaited."""
        return _Later(self._last)

    async def _rest(self) -> AgentRun[OutputT]:
        async for _ in self:
            pass
        return self._open().result()

    async def _last(self) -> Message:
        return (await self._rest()).stop.message


class _Later(Generic[ResultT]):
    """What is to be awaited; nothing runs before, so reading the property alone leaves no coroutine."""

    def __init__(self, make: Callable[[], Coroutine[Any, Any, ResultT]]) -> None:
        self._make = make

    def __await__(self) -> Generator[Any, None, ResultT]:
        return self._make().__await__()
