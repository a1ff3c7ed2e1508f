"""What an application names to have a typed answer, and what it gets."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar, overload

import attrs

from interlingua.errors import CallerError, InterlinguaError
from interlingua.plugins import Loss
from interlingua.types import Message, Usage

_T = TypeVar("_T")
_Mode: TypeAlias = Literal["auto", "native", "tool", "prompt"]
OutputMode: TypeAlias = Literal["native", "tool", "prompt"]


@attrs.frozen(init=False)
class Output(Generic[_T]):
    """The type of an answer, with more to say about it than the type says.

    Attributes:
        type: attrs class, dataclass, TypedDict, NamedTuple, msgspec Struct, pydantic model, enum, Literal, plain type,
            collection or union of such, or a JSON Schema, for plain JSON.
        mode: how to ask for it; "auto" takes the first that the model can: the service's own schema (`native`), a call
            of a tool that takes the answer (`tool`), words (`prompt`).
        name: name of the schema or tool; the type's own by default.
        description: what the answer is, for the model.
    """

    type: builtins.type[_T]
    mode: _Mode
    name: str
    description: str

    @overload
    def __init__(
        self, type: builtins.type[_T], *, mode: _Mode = "auto", name: str = "", description: str = ""
    ) -> None: ...
    @overload
    def __init__(
        self: Output[Any], type: Any, *, mode: _Mode = "auto", name: str = "", description: str = ""
    ) -> None: ...
    def __init__(
        self, type: Any, *, mode: _Mode = "auto", name: str = "", description: str = ""  # noqa: A002  the field's name
    ) -> None:  # fmt: skip
        self.__attrs_init__(type, mode, name, description)


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
    _output: Any = None

    @property
    def output(self) -> _T:
        """The value.

        Raises:
            CallerError: there is none yet, for the model called tools: answer `message.tool_calls()` and send again.
        """
        if not self.attempts:
            names = ", ".join(call.name for call in self.message.tool_calls())
            raise CallerError(f"no answer yet: the model called {names}; add the results to the history and send again")
        value: _T = self._output
        return value


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
