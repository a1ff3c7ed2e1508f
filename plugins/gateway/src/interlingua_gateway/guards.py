"""Guards: an operator's own checks of requests and answers, which may change or refuse them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

import attrs

from interlingua.errors import CallerError
from interlingua.types import Message
from interlingua_serving import InboundRequest


class GuardError(CallerError):
    """A guard refuses a request or an answer: status 400, with its message for the caller. No other model is asked."""


@attrs.frozen
class Caller:
    """The caller of a request.

    Attributes:
        key: the id of its key; `local` without keys.
        team: the team of the key; empty for none.
        model: the requested model name.
        api: the API, as in `ServedApi.name`.
    """

    key: str
    team: str
    model: str
    api: str


class Guard:
    """A check of conversations; a subclass overrides one or both methods.

    If a method raises anything else than an error of interlingua, the request fails with status 500.
    """

    async def check_request(self, request: InboundRequest, caller: Caller) -> InboundRequest:
        """Return the request that a model gets, this one or a changed one.

        Args:
            request: the request, with the state that the gateway kept for its caller.
            caller: its sender.

        Raises:
            GuardError: it is refused, before a service is asked.
        """
        return request

    async def check_answer(self, answer: Message, caller: Caller) -> Message:
        """Return the answer that the caller gets, this one or a changed one. Streams are sent after this check.

        Args:
            answer: a complete answer.
            caller: its receiver.

        Raises:
            GuardError: it is refused; the key pays for it nevertheless.
        """
        return answer


class Guards:
    """The guards of a gateway, in the order of the configuration.

    Attributes:
        read_answers: True if a guard checks answers, so that streams must wait for their end.
    """

    def __init__(self, guards: Sequence[Guard]) -> None:
        self._guards = tuple(guards)
        self.read_answers = any(type(guard).check_answer is not Guard.check_answer for guard in guards)

    def __bool__(self) -> bool:
        """Return True if there is a guard."""
        return bool(self._guards)

    async def check_request(self, request: InboundRequest, caller: Caller) -> InboundRequest:
        """Return the request that all guards let pass."""
        for guard in self._guards:
            request = await guard.check_request(request, caller)
        return request

    async def check_answer(self, answer: Message, caller: Caller) -> Message:
        """Return the answer that all guards let pass."""
        for guard in self._guards:
            answer = await guard.check_answer(answer, caller)
        return answer


def load_guards(names: Sequence[str]) -> Guards:
    """Import guards.

    Args:
        names: `module:name` of subclasses of `Guard`, or of their instances.

    Raises:
        CallerError: one cannot be imported or is not a guard; the message has its name.
    """
    guards: list[Guard] = []
    for at, name in enumerate(names):
        module, _, attribute = name.partition(":")
        try:
            found = getattr(import_module(module), attribute)
            guard = found() if isinstance(found, type) else found
        except Exception as error:
            raise CallerError(f"guards[{at}]: cannot load {name!r}: {type(error).__name__}: {error}") from error
        if not isinstance(guard, Guard):
            raise CallerError(f"guards[{at}]: {name!r} is not a Guard")
        guards.append(guard)
    return Guards(guards)
