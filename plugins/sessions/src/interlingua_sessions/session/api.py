"""What a session and the rooms beside it ask of each other, as protocols: the tool loop, compaction, context building.

Never holds behaviour. The session, `tools`, `compaction` and `events` come in; none of them imports another's classes.

Who calls whom. A turn appends the user's message, lets the `Compactor` look at the session, and hands a `Steps` to the
tool loop where tools with callables were given (`ToolLoop`), else makes one step itself. A step is one model call: the
history goes through the `ContextBuilder`, a model is chosen, the answer is stored and returned. A tool's result becomes
part of the session by `Steps.add`. One turn keeps the model it chose for its first step as long as that model can carry
what the tools returned. Everything that is appended is in the store before the call returns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from interlingua import Message, ToolDefinition

ContextBuilder: TypeAlias = Callable[[Sequence[Message]], Sequence[Message]]
"""From the stored history to what a model may see: pure, deterministic, the same objects wherever nothing changes.

Returning the same Message objects for an unchanged prefix is what keeps a turn cheap and its wire a byte prefix.
"""


class Facts(Protocol):
    """What may be known of a session while one of its turns runs."""

    @property
    def id(self) -> str:
        """The session's id."""

    @property
    def messages(self) -> Sequence[Message]:
        """The stored history, oldest first, session-only entries included; do not change it."""

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


class Steps(Facts, Protocol):
    """A turn in progress, for blocking code."""

    def add(self, message: Message) -> Message:
        """Append a message to the session; returns it as stored, with its final id and session id."""

    def ask(self, tools: Sequence[ToolDefinition] = ()) -> Message:
        """Make one step: ask the model over the history as it stands, store the answer, return it as stored.

        Raises:
            InterlinguaError: no answer; what there is of one is stored and is the error's `partial`.
        """

    def complete(self, messages: Sequence[Message]) -> Message:
        """Ask the turn's model something beside the conversation, such as for a summary; nothing is stored."""


class AsyncSteps(Facts, Protocol):
    """A turn in progress, for asynchronous code; storing does not wait on the network and so is not awaited."""

    def add(self, message: Message) -> Message:
        """As `Steps.add`."""

    async def ask(self, tools: Sequence[ToolDefinition] = ()) -> Message:
        """As `Steps.ask`."""

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
