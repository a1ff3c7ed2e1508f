"""A run as a stream of events, for blocking and asynchronous code: nothing goes on unless somebody iterates."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, Generic, Self, TypeVar

from interlingua import CallerError
from interlingua.types import Message
from interlingua_agents.events import TextDelta
from interlingua_agents.results import AgentRun, OutputT, RunEvent
from interlingua_agents.run import StartedRun, iterate_blocking, run_without_waiting

ResultT = TypeVar("ResultT")


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
            run_without_waiting(self._open().batches.aclose())
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
