"""`SessionStream`: a streamed answer that is in the store while it arrives, for blocking code.

Never decodes and never chooses a model. The blocking turn makes these; applications use them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Self

from interlingua import CallerError, InterlinguaError
from interlingua.http.client import Client, MessageStream
from interlingua.plugins.wire import WireRequest
from interlingua.types.events import StreamEvent, TextDelta
from interlingua.types.messages import Message
from interlingua.types.tools import ToolDefinition
from interlingua_sessions.session.core import Core
from interlingua_sessions.session.keeping import Keeping
from interlingua_sessions.session.turn import TurnCore


class SessionStream:
    """As core's `MessageStream`; use it in a `with` statement.

    Entering stores the question, chooses a model and waits for the first event; an overloaded or rate-limited service
    is left for the next allowed model there. While events arrive the answer is saved as PARTIAL; at the end, on
    leaving early, on `cancel` and on Ctrl-C it is stored as what it became.
    """

    def __init__(
        self, core: Core, turn: TurnCore, client: Client, tools: Sequence[ToolDefinition], begin: Callable[[], None]
    ) -> None:
        self._core = core
        self._turn = turn
        self._client = client
        self._tools = tools
        self._begin = begin
        self._inner: MessageStream | None = None
        self._keeping: Keeping | None = None
        self._events: Iterator[StreamEvent] = iter(())

    def __enter__(self) -> Self:
        self._begin()
        plan = self._turn.plan(self._tools)
        while self._inner is None:
            stream = self._client.stream(plan.messages, **plan.arguments)
            try:
                self._inner = stream.__enter__()
            except InterlinguaError as error:
                plan = self._turn.after(plan, error)
        self._keeping = Keeping(self._core, lambda: stream.partial)
        self._events = self._run(self._inner, self._keeping)
        return self

    def __exit__(self, *exc: object) -> None:
        inner, keeping = self._opened()
        inner.__exit__(None, None, None)
        keeping.settle(inner.partial)

    def __iter__(self) -> Iterator[StreamEvent]:
        self._opened()
        return self._events

    @property
    def text_stream(self) -> Iterator[str]:
        """The pieces of text alone, as they arrive."""
        return (event.text for event in self if type(event) is TextDelta)

    @property
    def message(self) -> Message:
        """The answer as stored; reading it waits for the rest.

        Raises:
            InterlinguaError: what ended the stream, with `.partial`.
        """
        inner, keeping = self._opened()
        if keeping.stored is None:
            for _ in self._events:
                pass
        return keeping.settle(inner.message)

    @property
    def partial(self) -> Message:
        """What was received so far; made anew each time it is asked for."""
        inner, keeping = self._opened()
        return keeping.stored or inner.partial

    @property
    def request(self) -> WireRequest:
        """What was sent, with its losses."""
        return self._opened()[0].request

    def cancel(self) -> None:
        """Stop; what was received stays as a CANCELLED message. May be called from another thread."""
        self._opened()[0].cancel()

    def _opened(self) -> tuple[MessageStream, Keeping]:
        if self._inner is None or self._keeping is None:
            raise CallerError("the stream is not open: use it in a with statement")
        return self._inner, self._keeping

    @staticmethod
    def _run(inner: MessageStream, keeping: Keeping) -> Iterator[StreamEvent]:
        try:
            for event in inner:
                keeping.touch()
                yield event
            keeping.settle(inner.message)
        except InterlinguaError as error:
            keeping.fail(error)
            raise
