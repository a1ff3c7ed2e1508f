"""Help for plugins that wrap a provider's stream: a plain hook wrapper ends before the first event.

Never changes an event by itself and always closes what it wraps.
Wrapper plugins come in.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable

from interlingua.events import StreamEvent

Step = Callable[[StreamEvent], Iterable[StreamEvent]]


def wrap_stream(
    stream: AsyncIterator[StreamEvent], each: Step, last: Callable[[], Iterable[StreamEvent]] | None = None
) -> AsyncIterator[StreamEvent]:
    """Return a stream that passes every event of `stream` through `each`, for use in a `stream_response` wrapper.

    Args:
        stream: what the wrapped hook returned.
        each: takes one event, returns the events to hand on in its place.
        last: called when the wrapped stream has ended, for events to add.

    Example of a plugin::

        @hookimpl(wrapper=True)
        def stream_response(response_stream, context):
            stream = yield
            return wrap_stream(stream, lambda event: [event])
    """

    async def wrapped() -> AsyncGenerator[StreamEvent, None]:
        try:
            async for event in stream:
                for made in each(event):
                    yield made
            if last is not None:
                for made in last():
                    yield made
        finally:
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()

    return wrapped()
