"""What the agent loop needs of a conversation, as protocols: a turn over memory or over a store satisfies them.

A *step* is one model call. A *turn* is what follows a user's message: steps, and tool results between them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, Self

from interlingua.types import Message, StreamEvent, ToolDefinition, ToolUseBlock

if TYPE_CHECKING:
    from interlingua.output import OutputPlan
    from interlingua.plugins import InstrumentedWork
    from interlingua_agents.calls import Answer
    from interlingua_agents.run import StartedRun


class Facts(Protocol):
    """What the loop reads of a conversation, and how it adds tool results to it."""

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
        """The folder the conversation works in; empty where it has none."""

    @property
    def options(self) -> Mapping[str, Any]:
        """The options of the turn's requests, by name."""

    instructions: Message | None
    """A system message that is sent in front of the conversation and is no part of it."""

    hidden: set[str]
    """Ids of messages that the next steps do not send."""

    def plan_output(self, output: Any, tools: Sequence[ToolDefinition], *, stream: bool) -> OutputPlan[Any]:
        """Return how the turn's model is asked for a typed answer."""

    def add(self, message: Message) -> Message:
        """Append a message to the history; returns it as it was added."""

    def observe(self, event: Mapping[str, Any]) -> None:
        """Pass an event to the plugins' `observe` hooks; JSON values only."""

    def instrument(self, kind: str, facts: Mapping[str, Any]) -> InstrumentedWork | None:
        """Begin a piece of work; return what plugins put around it (hook `instrument`), None for nothing."""

    def start_call(self, call: ToolUseBlock, at: datetime) -> None:
        """Record that a call's tool runs since `at` (UTC)."""

    def was_started(self, call: ToolUseBlock) -> bool:
        """Tell whether a call was started and has no result: a process died, and its effect is unknown."""

    def is_answered(self, call: ToolUseBlock) -> bool:
        """Tell whether a call's result is in the history."""

    def add_result(self, message: Message, answer: Answer) -> Message:
        """Append the tool message of an answer to the history; returns it as it was added."""


class CanonicalStream(Protocol):
    """What assistant events are made of: core's `MessageStream` and a session's step both have it."""

    def __iter__(self) -> Iterator[StreamEvent]: ...

    @property
    def message(self) -> Message:
        """The answer, as it was added where it belongs to a turn; reading it waits for the rest."""

    @property
    def partial(self) -> Message:
        """What was received so far; made when read."""


class StepStream(CanonicalStream, Protocol):
    """One streamed step: entering sends the request, iterating gives core's stream events.

    Leaving adds what was received to the history: COMPLETE, CANCELLED or ERROR.
    """

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...

    def batches(self) -> Iterator[list[StreamEvent]]:
        """Iterate over the events of each read together, in place of iterating over the stream."""

    def cancel(self) -> None:
        """Stop and keep what was received; any thread may call it."""


class AsyncCanonicalStream(Protocol):
    """As `CanonicalStream`, asynchronous."""

    def __aiter__(self) -> AsyncIterator[StreamEvent]: ...

    @property
    def message(self) -> Awaitable[Message]:
        """As `CanonicalStream.message`."""

    @property
    def partial(self) -> Message:
        """As `CanonicalStream.partial`."""


class AsyncStepStream(AsyncCanonicalStream, Protocol):
    """As `StepStream`, with `async with`, `async for` and `await stream.message`."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc: object) -> None: ...

    def batches(self) -> AsyncIterator[list[StreamEvent]]:
        """As `StepStream.batches`."""

    def cancel(self) -> None:
        """As `StepStream.cancel`."""


class Steps(Facts, Protocol):
    """A turn in progress, for blocking code."""

    def ask(self, tools: Sequence[ToolDefinition] = (), **options: Any) -> Message:
        """Make one step: send the history, add the answer to it, return the answer as it was added.

        Args:
            tools: what the model may call.
            **options: fields of `RequestKwargs` for this step, instead of the turn's.

        Raises:
            InterlinguaError: no answer; what was received of one is the error's `partial`.
        """

    def stream(self, tools: Sequence[ToolDefinition] = (), **options: Any) -> StepStream:
        """Make one step as a stream, to be used in a `with` statement."""


class AsyncSteps(Facts, Protocol):
    """A turn in progress, for asynchronous code."""

    async def ask(self, tools: Sequence[ToolDefinition] = (), **options: Any) -> Message:
        """As `Steps.ask`."""

    def stream(self, tools: Sequence[ToolDefinition] = (), **options: Any) -> AsyncStepStream:
        """As `Steps.stream`."""


class StartableSteps(Steps, Protocol):
    """A turn that has not begun."""

    def start(self) -> None:
        """Add the question to the history."""


class AsyncStartableSteps(AsyncSteps, Protocol):
    """As `StartableSteps`."""

    async def start(self) -> None:
        """As `StartableSteps.start`."""


class SessionLike(Protocol):
    """What an agent needs of a stored conversation."""

    def refresh(self) -> None:
        """Read what other processes added."""

    def turn(self, content: Any = None, **arguments: Any) -> StartableSteps:
        """Return a turn; takes the `model`, `tools` and options of the request by name."""


class AsyncSessionLike(Protocol):
    """As `SessionLike`, for asynchronous code."""

    def refresh(self) -> None:
        """As `SessionLike.refresh`."""

    def turn(self, content: Any = None, **arguments: Any) -> AsyncStartableSteps:
        """As `SessionLike.turn`."""


class ToolLoop(Protocol):
    """Tools with their callables, and how to run them: what a session takes as `tools`."""

    @property
    def definitions(self) -> Sequence[ToolDefinition]:
        """What the model is offered."""

    def run(self, steps: Steps) -> Message:
        """Ask, run the calls, add their results and ask again until the model is done; returns the last answer."""

    async def run_async(self, steps: AsyncSteps) -> Message:
        """As `run`."""

    def start(self, steps: Steps, *, streamed: bool = False) -> StartedRun:
        """Return a run that begins when its events are iterated over; `streamed` where they are wanted."""

    def start_async(self, steps: AsyncSteps, *, streamed: bool = False) -> StartedRun:
        """As `start`."""


class Compactor(Protocol):
    """Keeps a conversation's context inside the model's window.

    `steps` is the turn in progress as its owner makes it; a session's turn offers more than `Steps` (docs/agents).
    """

    def compact(self, steps: Any) -> None:
        """Called before a turn's first step, the user's message already added, and before each further step."""

    async def compact_async(self, steps: Any) -> None:
        """As `compact`."""
