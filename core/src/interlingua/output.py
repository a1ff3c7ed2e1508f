"""Typed answers: what an application gets, and the protocol of what asks for one and reads it.

How a type becomes a schema, a tool or words, and an answer a value, is the work of another distribution. It is found by
its entry point in the group `interlingua.outputs`, so that core names none.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

import attrs

from interlingua._plugins.losses import Loss
from interlingua.errors import CallerError, InterlinguaError
from interlingua.types.events import StreamEvent
from interlingua.types.messages import Message, Usage
from interlingua.types.options import ModelCapabilities, RequestOptions
from interlingua.types.tools import ToolDefinition

_T = TypeVar("_T")
OutputMode: TypeAlias = Literal["native", "tool", "prompt"]


class OutputFormat(ABC, Generic[_T]):
    """A type of answer with a way to ask for it; what `output=` takes besides a type.

    Its class is called with the type where a caller gives a bare one.
    """

    @abstractmethod
    def plan(self, tools: Sequence[ToolDefinition], options: RequestOptions, can: ModelCapabilities) -> OutputPlan[_T]:
        """Decide how one request asks for the answer."""


class OutputPlan(ABC, Generic[_T]):
    """How one request asks for a typed answer, and how its answer is read."""

    tools: tuple[ToolDefinition, ...]  # what to offer the model
    options: dict[str, Any]  # options by name, which replace the ones of the caller
    losses: tuple[Loss, ...]  # rows for the ledger
    tool: str  # name of the tool that takes the answer; "" if no tool does

    @abstractmethod
    def messages(self, history: str | Message | Sequence[Message]) -> Sequence[Message]:
        """Return the conversation with what the model has to be told."""

    @abstractmethod
    def attempts(self, messages: str | Message | Sequence[Message], retries: int) -> OutputAttempts[_T]:
        """Begin the attempts to have the answer."""

    @abstractmethod
    def partials(self) -> PartialReader:
        """Begin to read partial answers from the events of one stream."""

    @abstractmethod
    def answer(self, message: Message, losses: Sequence[Loss]) -> Answer[_T]:
        """Return the answer of a stream's message."""


class OutputAttempts(ABC, Generic[_T]):
    """The attempts to have one typed answer."""

    messages: Sequence[Message]  # what to send next

    @abstractmethod
    def take(self, message: Message, losses: Sequence[Loss]) -> Answer[_T] | None:
        """Return the answer of a message, or None where it is to be asked for again."""


class PartialReader(Protocol):
    """Reads what has arrived of a typed answer."""

    def feed(self, event: StreamEvent) -> Partial | None:
        """Return what has arrived, where it grew."""
        ...


class OutputProblem(NamedTuple):
    """One place of an answer that does not fit: its path (`lines/0/total`; "" is the answer), and what is wrong."""

    path: str
    message: str


@attrs.frozen
class Attempt:
    """One answer of the model, and what was wrong with it; nothing is wrong with the one that was taken."""

    message: Message
    errors: tuple[OutputProblem, ...] = ()


@attrs.frozen(kw_only=True)
class Answer(Generic[_T]):
    """A typed answer.

    Attributes:
        message: the model's last message.
        messages: what to add to the history; valid as it is, failed attempts are not in it.
        attempts: every message the model gave, the failed ones first.
        usage: of all attempts together; the cost is None where one of them is unknown.
        mode: how the answer was asked for.
        losses: the ledger: of the requests, of the choice of mode, and of a schema that a service did not keep to.
    """

    message: Message
    messages: tuple[Message, ...]
    attempts: tuple[Attempt, ...]
    usage: Usage
    mode: OutputMode
    losses: tuple[Loss, ...]
    _value: Any = None

    @property
    def value(self) -> _T:
        """The value.

        Raises:
            CallerError: there is none yet, for the model called tools: answer `message.tool_calls` and send again.
        """
        if not self.attempts:
            names = ", ".join(call.name for call in self.message.tool_calls)
            raise CallerError(f"no answer yet: the model called {names}; add the results to the history and send again")
        found: _T = self._value
        return found


@attrs.frozen
class Partial:
    """What has arrived of a typed answer.

    Attributes:
        value: plain JSON, with maps as objects; strings may be half, numbers are not.
        closed: paths in the answer's JSON, such as `lines/0/total`, of what is whole.
    """

    value: Any
    closed: frozenset[str]


class InvalidOutputError(InterlinguaError):
    """No answer fits the type asked for; the message names places, never what the model wrote.

    Attributes:
        errors: what is wrong with the last answer, each with `path` and `message`.
        attempts: every answer, with its errors.
        usage: of all attempts together; None where nothing was sent.
    """

    def __init__(self, message: str, *, errors: Sequence[Any] = (), **facts: Any) -> None:
        super().__init__(message, **facts)
        self.errors = tuple(errors)
        self.attempts: tuple[Any, ...] = ()
        self.usage: Any = None

    @property
    def cost_usd(self) -> Any:
        """What the attempts cost in USD; None where that is not known."""
        return self.usage and self.usage.cost_usd


class OutputTruncatedError(InvalidOutputError):
    """The answer was cut off at a limit of tokens; it is not asked for again."""
