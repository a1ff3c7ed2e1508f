"""A run as a stream of events, for blocking and asynchronous code. The run proceeds only while it is iterated over."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, aclosing, closing
from typing import Any, Generic, Self, TypeVar

from interlingua import CallerError
from interlingua.plugins import LiveOutput
from interlingua.types import Message
from interlingua_agents.events import AgentTextDelta, RunEvent, ToolEnd
from interlingua_agents.results import OutputT, RunResult
from interlingua_agents.run import AgentRun

ResultT = TypeVar("ResultT")


class _Stream(Generic[OutputT]):
    _started: AgentRun | None = None
    _with = "a with"

    @property
    def messages(self) -> tuple[Message, ...]:
        """Messages that the run has added: question, answers and tool results; available after a failure too."""
        return self._opened().messages

    def cancel(self) -> None:
        """Stop the run; any thread may call it.

        A streaming answer ends as CANCELLED, open calls get a result that reports the cancellation, and the events end.
        """
        self._opened().cancel()

    def _opened(self) -> AgentRun:
        if self._started is None:
            raise CallerError(f"the stream is not open: use it in {self._with} statement")
        return self._started


class RunStream(_Stream[OutputT]):
    """The events of a run, in a `with` statement.

    Iterating makes the run proceed: it asks, runs the calls and asks again. Leaving early ends it: the part of an
    answer that was received is kept as CANCELLED, and open calls get a result that reports it.

    Args:
        opening: a context manager that is entered with the stream.
    """

    def __init__(self, opening: AbstractContextManager[AgentRun]) -> None:
        self._opening = opening
        self._events: Generator[RunEvent, None, None]

    def __enter__(self) -> Self:
        self._started = run = self._opening.__enter__()
        self._events = self._iterate(run)
        return self

    def __exit__(self, *exc: Any) -> None:
        try:
            self._events.close()
        finally:
            self._opening.__exit__(*exc)

    def __iter__(self) -> Iterator[RunEvent]:
        self._opened()
        return self._events

    @staticmethod
    def _iterate(run: AgentRun) -> Generator[RunEvent, None, None]:
        with closing(run.events_blocking()) as batches:
            for batch in batches:
                yield from run.shown.visible(batch)

    @property
    def text_stream(self) -> Iterator[str]:
        """The text of all answers, in pieces as they arrive."""
        return (event.text for event in self if type(event) is AgentTextDelta)

    @property
    def result(self) -> RunResult[OutputT]:
        """The result of the run; reading it waits for the rest.

        Raises:
            InterlinguaError: the error that ended the run; `messages` has the messages added before.
        """
        for _ in self:
            pass
        return self._opened().result

    @property
    def message(self) -> Message:
        """The last answer; reading it waits for the rest, see `result`."""
        return self.result.stop.message

    def show(self) -> RunResult[OutputT]:
        """Print text and calls as they arrive, in a notebook into one output that is updated; return the result."""
        live = LiveOutput()
        for event in self:
            live.add(_line(event))
        live.end(self.messages)
        return self.result


class AsyncRunStream(_Stream[OutputT]):
    """`RunStream` with `async with`, `async for` and `await stream.result`."""

    _with = "an async with"

    def __init__(self, opening: AbstractAsyncContextManager[AgentRun]) -> None:
        self._opening = opening
        self._events: AsyncGenerator[RunEvent, None]

    async def __aenter__(self) -> Self:
        self._started = run = await self._opening.__aenter__()
        self._events = self._iterate(run)
        return self

    async def __aexit__(self, *exc: Any) -> None:
        try:
            await self._events.aclose()
        finally:
            await self._opening.__aexit__(*exc)

    def __aiter__(self) -> AsyncIterator[RunEvent]:
        self._opened()
        return self._events

    @staticmethod
    async def _iterate(run: AgentRun) -> AsyncGenerator[RunEvent, None]:
        async with aclosing(run.events()) as batches:
            async for batch in batches:
                for event in run.shown.visible(batch):
                    yield event

    @property
    def text_stream(self) -> AsyncIterator[str]:
        """See `RunStream.text_stream`."""
        return (event.text async for event in self if type(event) is AgentTextDelta)

    @property
    def result(self) -> Awaitable[RunResult[OutputT]]:
        """`RunStream.result`, as an awaitable."""
        return _Lazy(self._rest)

    @property
    def message(self) -> Awaitable[Message]:
        """`RunStream.message`, as an awaitable."""
        return _Lazy(self._last)

    async def show(self) -> RunResult[OutputT]:
        """See `RunStream.show`."""
        live = LiveOutput()
        async for event in self:
            live.add(_line(event))
        live.end(self.messages)
        return await self.result

    async def _rest(self) -> RunResult[OutputT]:
        async for _ in self:
            pass
        return self._opened().result

    async def _last(self) -> Message:
        return (await self._rest()).stop.message


def _line(event: RunEvent) -> str:
    """Return what `show` prints of an event."""
    if type(event) is AgentTextDelta:
        return event.text
    return f"\n[{event.call.name}: {event.status}]\n" if type(event) is ToolEnd else ""


class _Lazy(Generic[ResultT]):
    """An awaitable that makes its coroutine when awaited, so that reading the property alone leaves no coroutine."""

    def __init__(self, make: Callable[[], Coroutine[Any, Any, ResultT]]) -> None:
        self._make = make

    def __await__(self) -> Generator[Any, None, ResultT]:
        return self._make().__await__()
