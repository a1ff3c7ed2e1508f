"""The conversation that the agent loop works on, as protocols. A turn in memory or in a store satisfies them.

A *step* is one model call. A *turn* follows a user's message: steps, and tool results between them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, Self

from interlingua.output import OutputPlan
from interlingua.plugins import InstrumentedWork
from interlingua.types import Message, StreamEvent, ToolDefinition, ToolUseBlock
from interlingua_agents.outcomes import ToolOutcome


class ConversationPort(Protocol):
    """The facts that the loop reads of a conversation, and the methods by which it extends the conversation."""

    @property
    def id(self) -> str:
        """The session's id."""

    @property
    def messages(self) -> Sequence[Message]:
        """The history, oldest first; do not change it."""

    @property
    def model(self) -> str:
        """Canonical id of the model that the next step asks."""

    @property
    def workspace(self) -> str:
        """The folder of the conversation; empty if it has none."""

    @property
    def options(self) -> Mapping[str, Any]:
        """The options of the turn's requests, by name."""

    instructions: Message | None
    """A system message that is sent before the conversation and is not part of it."""

    hidden: set[str]
    """Ids of messages that the next steps do not send."""

    def plan_output(self, output: Any, tools: Sequence[ToolDefinition], *, stream: bool) -> OutputPlan[Any]:
        """Return the plan by which the turn's model is asked for a typed answer."""

    def add(self, message: Message) -> Message:
        """Append a message to the history; return the stored message."""

    def observe(self, event: Mapping[str, Any]) -> None:
        """Pass an event to the plugins' `observe` hooks; JSON values only."""

    def instrument(self, kind: str, facts: Mapping[str, Any]) -> InstrumentedWork | None:
        """Begin a piece of work that plugins wrap (hook `instrument`); None if no plugin does."""

    def start_call(self, call: ToolUseBlock, at: datetime) -> None:
        """Record that a call's tool started at `at` (UTC)."""

    def was_started(self, call: ToolUseBlock) -> bool:
        """Tell whether a call was started and has no result: a process died, and its effect is unknown."""

    def is_answered(self, call: ToolUseBlock) -> bool:
        """Tell whether a call's result is in the history."""

    def add_result(self, message: Message, outcome: ToolOutcome) -> Message:
        """Append the tool message of an outcome to the history; return the stored message."""


class CanonicalStream(Protocol):
    """A stream of core's events: core's `MessageStream` and a session's step."""

    def __iter__(self) -> Iterator[StreamEvent]: ...

    @property
    def message(self) -> Message:
        """The answer, as stored if the stream belongs to a turn; reading it waits for the rest."""

    @property
    def partial(self) -> Message:
        """The answer received so far; built when read."""


class StepStream(CanonicalStream, Protocol):
    """One streamed step: entering sends the request, iterating yields core's stream events.

    Leaving adds the received answer to the history: COMPLETE, CANCELLED or ERROR.
    """

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...

    def batches(self) -> Iterator[list[StreamEvent]]:
        """Iterate over lists of events, one list for each read, instead of over the stream."""

    def cancel(self) -> None:
        """Stop and keep the answer received so far; any thread may call it."""


class AsyncCanonicalStream(Protocol):
    """`CanonicalStream` for asynchronous code."""

    def __aiter__(self) -> AsyncIterator[StreamEvent]: ...

    @property
    def message(self) -> Awaitable[Message]:
        """See `CanonicalStream.message`."""

    @property
    def partial(self) -> Message:
        """See `CanonicalStream.partial`."""


class AsyncStepStream(AsyncCanonicalStream, Protocol):
    """`StepStream` with `async with`, `async for` and `await stream.message`."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc: object) -> None: ...

    def batches(self) -> AsyncIterator[list[StreamEvent]]:
        """See `StepStream.batches`."""

    def cancel(self) -> None:
        """See `StepStream.cancel`."""


class Steps(ConversationPort, Protocol):
    """A turn in progress, for blocking code."""

    def ask(self, tools: Sequence[ToolDefinition] = (), **options: Any) -> Message:
        """Make one step: send the history, append the answer and return the stored answer.

        Args:
            tools: the tools that the model may call.
            **options: fields of `RequestKwargs` for this step, overriding the turn's.

        Raises:
            InterlinguaError: no answer; the error's `partial` holds the part that was received.
        """

    def stream(self, tools: Sequence[ToolDefinition] = (), **options: Any) -> StepStream:
        """Make one step as a stream; use it in a `with` statement."""


class AsyncSteps(ConversationPort, Protocol):
    """A turn in progress, for asynchronous code."""

    async def ask(self, tools: Sequence[ToolDefinition] = (), **options: Any) -> Message:
        """See `Steps.ask`."""

    def stream(self, tools: Sequence[ToolDefinition] = (), **options: Any) -> AsyncStepStream:
        """See `Steps.stream`."""


class StartableSteps(Steps, Protocol):
    """A turn that has not started."""

    def start(self) -> None:
        """Append the question to the history."""


class AsyncStartableSteps(AsyncSteps, Protocol):
    """See `StartableSteps`."""

    async def start(self) -> None:
        """See `StartableSteps.start`."""


class SessionLike(Protocol):
    """A stored conversation, as far as an agent needs it."""

    def refresh(self) -> None:
        """Read messages that other processes added."""

    def turn(self, content: Any = None, **arguments: Any) -> StartableSteps:
        """Return a turn; takes `model`, `tools` and options of the request by name."""


class AsyncSessionLike(Protocol):
    """`SessionLike` for asynchronous code."""

    def refresh(self) -> None:
        """See `SessionLike.refresh`."""

    def turn(self, content: Any = None, **arguments: Any) -> AsyncStartableSteps:
        """See `SessionLike.turn`."""


class Compactor(Protocol):
    """Keeps a conversation's context inside the model's window.

    `steps` is the turn in progress as its owner made it; a session's turn offers more than `Steps` (docs/agents).
    """

    def compact(self, steps: Any) -> None:
        """Called before a turn's first step, when the user's message is already added, and before each further step."""

    async def compact_async(self, steps: Any) -> None:
        """See `compact`."""
