"""What a session and the rooms beside it ask of each other, as protocols: the tool loop, compaction, context building.

Never holds behaviour. The session, `tools`, `compaction` and `events` come in; none of them imports another's classes.

Who calls whom. A turn appends the user's message, lets the `Compactor` look at the session, and hands a `Steps` to the
tool loop where tools with callables were given (`ToolLoop`), else makes one step itself. A step is one model call: the
history goes through the `ContextBuilder`, a model is chosen, the answer is stored and returned. A tool's result becomes
part of the session by `Steps.add`. One turn keeps the model it chose for its first step as long as that model can carry
what the tools returned. Everything that is appended is in the store before the call returns.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, Self, TypeAlias

from interlingua.types.events import StreamEvent
from interlingua.types.messages import Message
from interlingua.types.tools import ToolDefinition
from interlingua_sessions.store import EntryKind, SessionEntry, Store

ContextBuilder: TypeAlias = Callable[[Sequence[Message], Sequence[SessionEntry]], Sequence[Message]]
"""From the stored history and the session-only entries to what a model may see: pure and deterministic.

Returning the same Message objects for an unchanged prefix is what keeps a turn cheap and its wire a byte prefix.
"""


class Facts(Protocol):
    """What may be known of a session while one of its turns runs."""

    @property
    def id(self) -> str:
        """The session's id."""

    @property
    def store(self) -> Store:
        """Where it is kept; append through `add` and `add_entry`, or the session does not see it."""

    @property
    def messages(self) -> Sequence[Message]:
        """The stored history, oldest first; do not change it."""

    @property
    def entries(self) -> Sequence[SessionEntry]:
        """The session-only entries, oldest first; do not change it."""

    @property
    def model(self) -> str:
        """Canonical id of the model that this turn's next step asks."""

    def context(self) -> Sequence[Message]:
        """What the next step would send: the history through the context builder."""

    def estimate(self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = ()) -> int:
        """Estimate the input tokens of messages and tools at `model`."""

    @property
    def window(self) -> int:
        """The context window of `model` in tokens; 0 when unknown."""

    def observe(self, event: Mapping[str, Any]) -> None:
        """Tell the plugins' `observe` hooks of an event; plain values only."""

    def add(self, message: Message) -> Message:
        """Append a message to the session; returns it as stored, with its final id and session id."""

    def add_entry(
        self, kind: EntryKind, text: str = "", *, custom_type: str | None = None, data: Mapping[str, Any] | None = None
    ) -> SessionEntry:
        """Append a session-only entry."""


class StepStream(Protocol):
    """One streamed step: entering chooses the model and sends, iterating gives core's stream events.

    Leaving stores what came: COMPLETE, CANCELLED or ERROR. While it runs, a PARTIAL is saved at a bounded rate.
    """

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...

    def __iter__(self) -> Iterator[StreamEvent]: ...

    @property
    def message(self) -> Message:
        """The answer as stored; reading it waits for the rest."""

    @property
    def partial(self) -> Message:
        """What was received so far; made when asked for."""

    def cancel(self) -> None:
        """Stop and keep what was received; may be called from another thread."""


class AsyncStepStream(Protocol):
    """As `StepStream`, with `async with`, `async for` and `await stream.message`."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc: object) -> None: ...

    def __aiter__(self) -> AsyncIterator[StreamEvent]: ...

    @property
    def message(self) -> Awaitable[Message]:
        """As `StepStream.message`."""

    @property
    def partial(self) -> Message:
        """As `StepStream.partial`."""

    def cancel(self) -> None:
        """As `StepStream.cancel`."""


class Steps(Facts, Protocol):
    """A turn in progress, for blocking code."""

    def ask(self, tools: Sequence[ToolDefinition] = ()) -> Message:
        """Make one step: ask the model over the history as it stands, store the answer, return it as stored.

        Raises:
            InterlinguaError: no answer; what there is of one is stored and is the error's `partial`.
        """

    def stream(self, tools: Sequence[ToolDefinition] = ()) -> StepStream:
        """Make one step as a stream, to be used in a `with` statement."""

    def complete(self, messages: Sequence[Message]) -> Message:
        """Ask the turn's model something beside the conversation, such as for a summary; nothing is stored."""


class AsyncSteps(Facts, Protocol):
    """A turn in progress, for asynchronous code."""

    async def ask(self, tools: Sequence[ToolDefinition] = ()) -> Message:
        """As `Steps.ask`."""

    def stream(self, tools: Sequence[ToolDefinition] = ()) -> AsyncStepStream:
        """As `Steps.stream`."""

    async def complete(self, messages: Sequence[Message]) -> Message:
        """As `Steps.complete`."""


class ToolLoop(Protocol):
    """Tools with their callables, and how to run them: given to `send` as `tools`."""

    @property
    def definitions(self) -> Sequence[ToolDefinition]:
        """What the model is offered."""

    def run(self, steps: Steps) -> Message:
        """Ask, run the calls, add their results and ask again until the model is done; returns the last answer."""

    async def run_async(self, steps: AsyncSteps) -> Message:
        """As `run`."""


class Compactor(Protocol):
    """Keeps the context inside the window, by adding entries; history itself is never rewritten."""

    def compact(self, steps: Steps) -> None:
        """Called before each turn's first step, the user's message already appended."""

    async def compact_async(self, steps: AsyncSteps) -> None:
        """As `compact`."""
