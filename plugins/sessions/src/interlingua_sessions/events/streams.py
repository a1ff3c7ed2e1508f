"""Streams of canonical events seen as streams of seed 000's, blocking and asynchronous.

Never opens or closes a stream: that is its owner's, in a `with` statement.
Applications come in, and the tool loop for its listeners.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Iterator
from typing import Protocol

from interlingua import InterlinguaError
from interlingua.types.events import StreamEvent
from interlingua.types.messages import Message
from interlingua_sessions.events.assistant import AssistantMessageEvent
from interlingua_sessions.events.view import AssistantView


class CanonicalStream(Protocol):
    """What is needed of a stream: core's `MessageStream` and a session's step both have it."""

    def __iter__(self) -> Iterator[StreamEvent]: ...

    @property
    def message(self) -> Message:
        """The answer."""

    @property
    def partial(self) -> Message:
        """What was received so far."""


class AsyncCanonicalStream(Protocol):
    """As `CanonicalStream`, asynchronous."""

    def __aiter__(self) -> AsyncIterator[StreamEvent]: ...

    @property
    def message(self) -> Awaitable[Message]:
        """The answer."""

    @property
    def partial(self) -> Message:
        """What was received so far."""


def assistant_events(stream: CanonicalStream) -> Iterator[AssistantMessageEvent]:
    """Yield an open stream's events in seed 000's form; a failure is the last event and is not raised."""
    view = AssistantView(lambda: stream.partial)
    yield view.start()
    try:
        for event in stream:
            yield from view.feed(event)
        yield from view.finish(stream.message)
    except InterlinguaError as error:
        yield view.fail(error)


async def assistant_events_async(stream: AsyncCanonicalStream) -> AsyncIterator[AssistantMessageEvent]:
    """As `assistant_events`, for asynchronous code."""
    view = AssistantView(lambda: stream.partial)
    yield view.start()
    try:
        async for event in stream:
            for shown in view.feed(event):
                yield shown
        for shown in view.finish(await stream.message):
            yield shown
    except InterlinguaError as error:
        yield view.fail(error)
