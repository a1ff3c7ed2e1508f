"""Fallback models: which failures lead to the next model, how long a failing one is left alone, and what it cost.

`Client(["acme:a", "other:b"])` asks the first of its models that does not rest. `ModelHealth` knows which models
rest; a client's calls and sessions share the client's, and the gateway has one for its routes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import attrs

from interlingua._catalogue import ModelInfo
from interlingua._plugins.losses import option_loss
from interlingua._pricing import cost_of
from interlingua._values import replace
from interlingua.errors import (
    APIConnectionError,
    AuthenticationError,
    CallerError,
    CapabilityError,
    InterlinguaError,
    MalformedResponseError,
    ModelNotFoundError,
    OverloadedError,
    PermissionDeniedError,
    PluginError,
    QuotaExceededError,
    RateLimitError,
    ServerError,
    StreamInterruptedError,
    WireError,
)
from interlingua.types.messages import NO_USAGE, Loss, Message, MessageMetadata, RoutingDecision, utc_now
from interlingua.types.options import explain_arguments

__all__ = ["FAILED_ATTEMPTS", "OUTAGES", "Fallback", "ModelChain", "ModelHealth", "may_be_paid"]

FAILED_ATTEMPTS = "interlingua.failed_attempts"
"""Key in `metadata.extra` of an answer: the attempts at other models that failed before it, and what they cost."""

OUTAGES = (
    WireError, ServerError, OverloadedError, RateLimitError, QuotaExceededError, AuthenticationError,
    PermissionDeniedError, ModelNotFoundError,
)  # fmt: skip
"""Failures of a service or of its key, after which a model may rest; all others are about one request."""

_LONGEST_REST = 300.0  # most seconds of a rest that a service asks for
_MOST_STATES = 1_000  # failing models that are remembered


def _number(_policy: object, field: attrs.Attribute[Any], value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
        raise CallerError(f"{field.name} must be a number above 0, not {value!r}")


def _classes(value: Iterable[type[InterlinguaError]]) -> tuple[type[InterlinguaError], ...]:
    found = tuple(value) if isinstance(value, Iterable) else (value,)
    if not all(isinstance(one, type) and issubclass(one, InterlinguaError) for one in found):
        raise CallerError(f"on must be classes of interlingua.errors, not {value!r}")
    return found


@explain_arguments(places=lambda: {"models": "pass the models to the client: Client([…])", "cooldown": "use rest=…"})
@attrs.frozen(kw_only=True)
class Fallback:
    """When a call tries the next model of its list, and how long a failing model rests.

    Attributes:
        on: the errors after which the next model is asked, once `Retry` has given up. The default: overload, rate
            limits, a used up quota, failures of the service, and answers that do not arrive or cannot be read. Mistakes
            of the caller, a wrong key and refused content are raised. A model that cannot take a request is passed
            over if it is not the first of the list.
        rest_after: failures of a model, one after another, after which it rests: other calls do not ask it, and calls
            that wait to ask it turn to the next model. A model whose service says when it can be asked again
            rests until then, for at most 300 seconds.
        rest: seconds of that rest. Then one call in each such period asks the model, until one is answered.
    """

    on: tuple[type[InterlinguaError], ...] = attrs.field(
        default=(OverloadedError, RateLimitError, QuotaExceededError, ServerError, WireError), converter=_classes
    )
    rest_after: int = attrs.field(default=3, validator=_number)
    rest: float = attrs.field(default=30.0, validator=_number)


class ModelRestsError(OverloadedError):
    """A model rests by the time that a request to it may be sent; nothing was sent."""


@attrs.define
class _Failing:
    """A model that has failed since its last answer: how often, and until when it rests (monotonic; 0 for no rest)."""

    failures: int = 0
    rests_until: float = 0.0


class ModelHealth:
    """Which models rest after failures; safe for use from several threads and event loops.

    Args:
        policy: returns the policy now in use; only its `rest_after` and `rest` are read.
        clock: seconds, monotonic.
    """

    def __init__(self, policy: Callable[[], Fallback], clock: Callable[[], float] = time.monotonic) -> None:
        self._policy, self._clock = policy, clock
        self._lock = threading.Lock()
        self._failing: dict[str, _Failing] = {}

    def failures(self, model: str) -> int:
        """Return how often a model has failed since its last answer."""
        state = self._failing.get(model)
        return 0 if state is None else state.failures

    def rest_left(self, model: str) -> float:
        """Return the seconds that a model still rests; 0 if it may be asked."""
        state = self._failing.get(model)
        return 0.0 if state is None else max(state.rests_until - self._clock(), 0.0)

    def claim(self, model: str) -> bool:
        """Return True if a model may be asked now. After a rest it may be asked once; others wait for that answer."""
        if model not in self._failing:
            return True
        with self._lock:
            state, now = self._failing.get(model), self._clock()
            if state is None or not state.rests_until:
                return True
            if state.rests_until > now:
                return False
            state.rests_until = now + self._policy().rest
            return True

    def order(self, models: Sequence[str]) -> list[str]:
        """Return the models that do not rest, in their order; if all rest, the one whose rest ends first is first."""
        rests = {model: self.rest_left(model) for model in models}
        return [model for model in models if not rests[model]] or sorted(models, key=rests.__getitem__)

    def note(self, model: str, error: BaseException | None) -> None:
        """Note how an attempt ended: an outage counts, and any other answer of the service ends a rest."""
        if isinstance(error, (CallerError, PluginError, ModelRestsError)):
            return  # nothing was sent
        if not isinstance(error, OUTAGES):
            self._failing.pop(model, None)
            return
        policy, now = self._policy(), self._clock()
        asked = min(error.retry_after or 0.0, _LONGEST_REST)
        with self._lock:
            state = self._failing.get(model)
            if state is None:
                while len(self._failing) >= _MOST_STATES:
                    del self._failing[next(iter(self._failing))]
                state = self._failing[model] = _Failing()
            state.failures += 1
            rest = max(asked, policy.rest if state.failures >= policy.rest_after else 0.0)
            if rest:
                state.rests_until = max(state.rests_until, now + rest)


class ModelChain:
    """The models of one call: those that were not asked yet, and what became of the others.

    Args:
        models: canonical ids, in their order.
        policy: which failures lead to the next model.
        health: which models rest.
        arguments: arguments of the call, from which the request to each model is made.
    """

    def __init__(self, models: Sequence[str], policy: Fallback, health: ModelHealth, arguments: Any) -> None:
        self.models, self.arguments, self.health = models, arguments, health
        self.unfit: list[Message] = []  # typed answers of the model in use that did not fit
        self.failures: list[InterlinguaError] = []
        self._policy = policy
        self._left = list(models)
        self._is_second_round = False
        self._passed: dict[str, str] = {}  # model -> why it did not answer
        self._attempts: list[Mapping[str, Any]] = []
        self._spent = Decimal(0)
        self._spent_times = 0
        self._unknown: list[str] = []

    def next(self) -> str | None:
        """Return the model to ask next, or None if all were asked."""
        left = self.health.order(self._left)
        if not left:
            return None
        model = next(filter(self.health.claim, left), left[0])
        for other in self._left:
            if other == model:
                break
            self._passed.setdefault(other, "it rests after failures")
        self._left.remove(model)
        self._passed.pop(model, None)
        return model

    @property
    def is_default(self) -> bool:
        """True if the models are the client's own."""
        return self.arguments[1].get("model") is None

    def prefers_other(self, model: str) -> bool:
        """Return True if a model rests, and a model not yet asked does not, or for less time."""
        rest = self.health.rest_left(model)
        return bool(rest) and any(self.health.rest_left(other) < rest for other in self._left)

    def moves(self, model: str, error: BaseException) -> bool:
        """Return True if the next model is asked after this failure."""
        if isinstance(error, CapabilityError) and model != self.models[0]:
            return bool(self._left)
        return bool(self._left) and isinstance(error, (*self._policy.on, ModelRestsError))

    def begin_again(self, model: str, error: BaseException) -> bool:
        """Return True, once, if the last model has failed too: the others may answer by now and are asked again."""
        if self._left or self._is_second_round or not isinstance(error, self._policy.on):
            return False
        self._is_second_round = True
        self._left = [other for other in self.models if other != model]
        return True

    def leave(self, model: str, error: InterlinguaError, info: Callable[[], ModelInfo | None] = lambda: None) -> None:
        """Record that a model failed, and what its attempts cost."""
        self._passed[model] = f"{type(error).__name__}: {error.message}"
        for message in self.unfit:
            self._add(model, "InvalidOutputError", None, message, info)
        self.unfit.clear()
        if isinstance(error, ModelRestsError):
            return
        if not isinstance(error, CallerError):
            self.failures.append(error)
        partial = error.partial if isinstance(error.partial, Message) else None
        self._add(model, type(error).__name__, error.status, partial, info)
        if (partial is None or partial.metadata.usage is None) and may_be_paid(error):
            self._unknown.append(model)

    def _add(
        self, model: str, error: str, status: int | None, message: Message | None, info: Callable[[], ModelInfo | None]
    ) -> None:
        facts: dict[str, Any] = {"model": model, "error": error}
        if status is not None:
            facts["status"] = status
        usage = None if message is None else message.metadata.usage
        if usage is not None:
            if usage.cost_usd is None:
                usage = cost_of(usage, info(), utc_now())
            facts["input_tokens"], facts["output_tokens"] = usage.input_tokens, usage.output_tokens
            if usage.cost_usd is None:
                self._unknown.append(model)
            else:
                facts["cost_usd"] = f"{usage.cost_usd:f}"
                self._spent += usage.cost_usd
                self._spent_times += 1
        self._attempts.append(facts)

    def routing(self, decision: RoutingDecision, model: str) -> RoutingDecision:
        """Return the record of a choice, with the models that did not answer before this one."""
        if not self._passed:
            return decision if decision.chosen_model == model else attrs.evolve(decision, chosen_model=model)
        failed = ", ".join(f"{name} ({why})" for name, why in self._passed.items())
        reason = f"{decision.reason}; fallback for {failed}"
        others = tuple(dict.fromkeys((*decision.alternatives_considered, *self._passed)))
        return attrs.evolve(decision, chosen_model=model, reason=reason, alternatives_considered=others)

    def losses(self, model: str) -> tuple[Loss, ...]:
        """Return the rows of the ledger: the caller's first model was another."""
        rows = (f"asked of {model}, not of {name}: {why}" for name, why in self._passed.items())
        return tuple([option_loss("model", "rewritten", row) for row in rows])

    def record(self, metadata: MessageMetadata) -> MessageMetadata:
        """Return an answer's metadata with the attempts that failed before it, and their cost added to its own."""
        if not self._attempts:
            return metadata
        extra = {**metadata.extra, FAILED_ATTEMPTS: self._attempts}
        usage = metadata.usage or NO_USAGE
        changes: dict[str, Any] = {}
        if self._spent_times and usage.cost_usd is not None and usage.cost is not None:
            changes["cost_usd"] = usage.cost_usd + self._spent
            changes["cost"] = attrs.evolve(usage.cost, other=usage.cost.other + self._spent)
            changes["extra_units"] = {**(usage.extra_units or {}), "failed_attempts": self._spent_times}
        if self._unknown:
            names = ", ".join(dict.fromkeys(self._unknown))
            note = f"without a failed attempt at {names}, whose cost is not known"
            changes["cost_note"] = f"{usage.cost_note}; {note}" if usage.cost_note else note
        if changes and metadata.usage is not None:
            return replace(metadata, extra=extra, usage=replace(usage, **changes))
        return replace(metadata, extra=extra)


def may_be_paid(error: BaseException) -> bool:
    """Return True if a service may have made, and charged, an answer that was not received whole."""
    if isinstance(error, APIConnectionError):
        return error.phase == "response"
    return isinstance(error, (MalformedResponseError, StreamInterruptedError))
