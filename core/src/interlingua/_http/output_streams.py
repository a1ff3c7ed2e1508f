"""Streamed typed answers, blocking and asynchronous."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Generator, Iterator
from typing import Generic, TypeVar

from interlingua._http.exchange import Exchange
from interlingua._http.io import IO
from interlingua._http.streams import AsyncMessageStream, MessageStream
from interlingua.output import Answer, OutputPlan, Partial

_T = TypeVar("_T")


class OutputStream(MessageStream, Generic[_T]):
    """A streamed typed answer: as `MessageStream`, with `partials` and `answer`."""

    def __init__(self, exchange: Exchange, io: IO, plan: OutputPlan[_T]) -> None:
        super().__init__(exchange, io)
        self._plan = plan

    def __enter__(self) -> OutputStream[_T]:
        super().__enter__()
        return self

    @property
    def partials(self) -> Iterator[Partial]:
        """The incomplete answer, each time it grows."""
        feed = self._plan.partials().feed
        return (part for event in self if (part := feed(event)) is not None)

    @property
    def answer(self) -> Answer[_T]:
        """The answer; reading it waits for the rest of it.

        Raises:
            InvalidOutputError: it does not fit.
            InterlinguaError: what ended the stream, with `.partial`.
        """
        return self._plan.answer(self.message, self.request.losses)


class AsyncOutputStream(AsyncMessageStream, Generic[_T]):
    """A streamed typed answer: as `AsyncMessageStream`, with `partials` and `await stream.answer`."""

    def __init__(self, exchange: Exchange, io: IO, plan: OutputPlan[_T]) -> None:
        super().__init__(exchange, io)
        self._plan = plan

    async def __aenter__(self) -> AsyncOutputStream[_T]:
        await super().__aenter__()
        return self

    @property
    def partials(self) -> AsyncIterator[Partial]:
        """The incomplete answer, each time it grows."""
        feed = self._plan.partials().feed
        return (part async for event in self if (part := feed(event)) is not None)

    @property
    def answer(self) -> Awaitable[Answer[_T]]:
        """The answer, to be awaited; that waits for the rest of it.

        Raises:
            InvalidOutputError: it does not fit; raised by awaiting, as what ended the stream is.
        """
        return _Later(self, self._plan)


class _Later(Generic[_T]):
    """The answer of a stream; the stream is read only when this is awaited."""

    def __init__(self, stream: AsyncOutputStream[_T], plan: OutputPlan[_T]) -> None:
        self._stream, self._plan = stream, plan

    def __await__(self) -> Generator[object, None, Answer[_T]]:
        message = yield from self._stream.message.__await__()
        return self._plan.answer(message, self._stream.request.losses)
