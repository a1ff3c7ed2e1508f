"""Typed answers: their values and errors, and the base classes of the package that produces them.

Another distribution turns a type into a schema, a tool or a prompt, and an answer into a value. It is found by its
entry point in the group `interlingua.outputs`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

import attrs

from interlingua.errors import CallerError, InterlinguaError
from interlingua.types.messages import Loss, Message, Usage
from interlingua.types.options import ModelCapabilities, RequestOptions
from interlingua.types.tools import ToolDefinition

if TYPE_CHECKING:
    from interlingua.types.events import StreamEvent  # an answer that is not streamed has none

_T = TypeVar("_T")
OutputMode: TypeAlias = Literal["native", "tool", "prompt"]


class OutputFormat(ABC, Generic[_T]):
    """The type of an answer and how to request it: an argument for `output=`.

    If the caller passes a plain type, core calls the class that the entry point names with it.
    """

    @abstractmethod
    def plan(self, tools: Sequence[ToolDefinition], options: RequestOptions, can: ModelCapabilities) -> OutputPlan[_T]:
        """Return how one request asks for the answer."""

    async def ask(self, begin: Callable[[], Awaitable[Any]], complete: Callable[..., Any]) -> Answer[_T] | None:
        """Return the answer of a service with an API for this kind of answer; None if the model is asked in words.

        `begin` makes the exchange of the conversation, and `complete` sends it, as the client sends its requests.
        """
        return None


class OutputPlan(ABC, Generic[_T]):
    """How one request asks for a typed answer, and how its answer is read."""

    tools: tuple[ToolDefinition, ...]  # what to offer the model
    options: dict[str, Any]  # options by name, which replace the ones of the caller
    losses: tuple[Loss, ...]  # rows for the ledger
    tool: str  # name of the tool that takes the answer; "" if no tool does

    @abstractmethod
    def messages(self, history: Sequence[Message]) -> Sequence[Message]:
        """Return the conversation with the instructions for the model added."""

    @abstractmethod
    def attempts(self, messages: Sequence[Message], retries: int) -> OutputAttempts[_T]:
        """Start a series of attempts to get the answer."""

    @abstractmethod
    def partials(self) -> PartialReader:
        """Return a reader of partial answers for one stream."""

    @abstractmethod
    def answer(self, message: Message, losses: Sequence[Loss]) -> Answer[_T]:
        """Return the answer in the message of a stream."""


class OutputAttempts(ABC, Generic[_T]):
    """A series of attempts to get one typed answer."""

    messages: Sequence[Message]  # what to send next

    @abstractmethod
    def take(self, message: Message, losses: Sequence[Loss]) -> Answer[_T] | None:
        """Return the answer in a message, or None if the model must be asked again."""


class PartialReader(Protocol):
    """Reads a typed answer while it arrives."""

    def feed(self, event: StreamEvent) -> Partial | None:
        """Return the part received so far if this event extended it, else None."""


class OutputProblem(NamedTuple):
    """One fault of an answer: its path (`lines/0/total`; "" is the whole answer) and what is wrong there."""

    path: str
    message: str


@attrs.frozen
class Attempt:
    """One answer of the model and its faults; the accepted answer has no faults."""

    message: Message
    errors: tuple[OutputProblem, ...] = ()


@attrs.frozen(kw_only=True)
class Answer(Generic[_T]):
    """A typed answer.

    Attributes:
        message: the last message of the model.
        messages: messages to append to the history; failed attempts are not among them.
        attempts: every attempt, the failed ones first.
        usage: usage of all attempts together; the cost is None if the cost of one attempt is unknown.
        mode: how the answer was requested.
        losses: the ledger rows of the requests, of the choice of mode, and of schemas that the service ignored.
    """

    message: Message
    messages: tuple[Message, ...] = attrs.field(repr=False)
    attempts: tuple[Attempt, ...] = attrs.field(repr=False)
    usage: Usage
    mode: OutputMode
    losses: tuple[Loss, ...] = attrs.field(repr=False)
    _value: Any = None

    @property
    def value(self) -> _T:
        """The typed value.

        Raises:
            CallerError: the model called tools first: answer `message.tool_calls` and send again.
        """
        if not self.attempts:
            names = ", ".join(call.name for call in self.message.tool_calls)
            raise CallerError(f"no answer yet: the model called {names}; add the results to the history and send again")
        found: _T = self._value
        return found


@attrs.frozen
class Partial:
    """The part of a typed answer received so far.

    Attributes:
        value: plain JSON, with maps as objects; strings may be incomplete, numbers are complete.
        closed: paths of complete values in the JSON of the answer, such as `lines/0/total`.
    """

    value: Any
    closed: frozenset[str]


class InvalidOutputError(InterlinguaError):
    """No answer fits the requested type; the error message names places, never what the model wrote.

    Attributes:
        errors: faults of the last answer, each with `path` and `message`.
        attempts: every answer with its faults.
        usage: usage of all attempts together; None if nothing was sent.
    """

    def __init__(self, message: str, *, errors: Sequence[Any] = (), **facts: Any) -> None:
        super().__init__(message, **facts)
        self.errors = tuple(errors)
        self.attempts: tuple[Any, ...] = ()
        self.usage: Any = None

    @property
    def cost_usd(self) -> Any:
        """Cost of the attempts in USD, or None if unknown."""
        return self.usage and self.usage.cost_usd


class OutputTruncatedError(InvalidOutputError):
    """The answer was cut off at a token limit; the model is not asked again."""
