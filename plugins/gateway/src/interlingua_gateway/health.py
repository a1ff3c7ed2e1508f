"""The deployments behind a route: their order for a request, their limits, and rests after failures."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import attrs
from prometheus_client import CollectorRegistry, Counter, Gauge

from interlingua.errors import (
    AuthenticationError,
    ModelNotFoundError,
    OverloadedError,
    PermissionDeniedError,
    QuotaExceededError,
    RateLimitError,
    ServerError,
    WireError,
)
from interlingua_gateway.config import Deployment, GatewayConfig
from interlingua_gateway.models import RoutedModel

_OTHER = "other"  # the label of models that routes do not list
_KEPT = 1_000  # most models whose state is kept
_LONGEST_REST = 300.0  # most seconds of a rest that a service asks for
_PLAIN = Deployment(name="any", model="any:any")
# failures of a service or of its key, as opposed to those of a request
_OUTAGES = (
    WireError, ServerError, OverloadedError, RateLimitError, QuotaExceededError, AuthenticationError,
    PermissionDeniedError, ModelNotFoundError,
)  # fmt: skip


@attrs.define
class _State:
    """The state of one deployment.

    Attributes:
        metric: its label in metrics.
        open: requests in progress.
        failures: failures since the last answer.
        rests_until: by `time.monotonic`; 0 if it does not rest.
        is_tried: True while one request finds out whether a rest was long enough.
        minute: the minute since the epoch that `requests` and `tokens` count.
        requests: requests in that minute.
        tokens: tokens in that minute.
    """

    metric: str = ""
    open: int = 0
    failures: int = 0
    rests_until: float = 0.0
    is_tried: bool = False
    minute: int = 0
    requests: int = 0
    tokens: int = 0


class Health:
    """Chooses between the models of a route by their limits and failures, in this process.

    Args:
        config: returns the settings now in use.
        metrics: the registry for the state of each model.
    """

    def __init__(self, config: Callable[[], GatewayConfig], metrics: CollectorRegistry) -> None:
        self._config = config
        self._states: dict[str, _State] = {}
        facts: dict[str, Any] = {"registry": metrics, "namespace": "interlingua_gateway"}
        self._failures = Counter("model_failures", "Failed attempts", ("model", "error"), **facts)
        self._healthy = Gauge(
            "model_healthy", "0 while a model rests after failures", ("model",), multiprocess_mode="livemin", **facts
        )
        self._open = Gauge(
            "model_open_requests", "Requests in progress", ("model",), multiprocess_mode="livesum", **facts
        )

    def ordered(self, models: Sequence[RoutedModel], balance: str, identity: str) -> list[RoutedModel]:
        """Return the models that may be asked now, in the order for a request; all if every one rests.

        Args:
            models: those of the route.
            balance: the setting of the route.
            identity: the same string for all requests of a conversation, so that it keeps its deployment.

        Raises:
            RateLimitError: all are at their limits.
        """
        if len(models) == 1 and models[0].deployment is None:
            return list(models)
        found = list(models)
        if balance != "order":
            found.sort(key=lambda model: -_score(model, identity))
        if balance == "least-busy":
            found.sort(key=lambda model: self._state(model).open / _limits(model).weight)
        waits = {model.label: self._limited_for(model) for model in found}
        free = [model for model in found if not waits[model.label]]
        if not free:
            raise RateLimitError("every deployment of this model is at its limit", retry_after=min(waits.values()))
        awake = [model for model in free if not self.rests(model)]
        return awake or sorted(free, key=lambda model: self._state(model).rests_until)

    def rests(self, model: RoutedModel) -> bool:
        """Return True if a model is not asked now: it has failed, or one request is trying it again."""
        state = self._states.get(model.label)
        return state is not None and (state.rests_until > time.monotonic() or state.is_tried)

    def is_resting(self, model: RoutedModel) -> bool:
        """Return True if a model rests after failures."""
        return self._state(model).rests_until > time.monotonic()

    @contextmanager
    def asking(self, model: RoutedModel) -> Iterator[None]:
        """Count a request to a model as in progress."""
        state = self._state(model)
        tries = bool(state.rests_until) and not state.is_tried
        now = int(time.time() // 60)
        if state.minute != now:
            state.minute, state.requests, state.tokens = now, 0, 0
        state.requests += 1
        state.open += 1
        state.is_tried = state.is_tried or tries
        gauge = self._open.labels(state.metric)
        gauge.inc()
        try:
            yield
        finally:
            gauge.dec()
            state.open -= 1
            if tries:
                state.is_tried = False

    def note(self, model: RoutedModel, error: BaseException | None) -> None:
        """Note the outcome of an attempt: a model rests after some failures, or for as long as its service asks."""
        state = self._state(model)
        if not isinstance(error, _OUTAGES):
            if state.failures:
                state.failures, state.rests_until = 0, 0.0
                self._set_healthy(state)
            return
        config = self._config()
        self._failures.labels(state.metric, type(error).__name__).inc()
        state.failures += 1
        asked = min(error.retry_after or 0.0, _LONGEST_REST)
        if asked or state.failures >= config.rest_after:
            state.rests_until = time.monotonic() + max(asked, config.rest if state.failures >= config.rest_after else 0)
            self._set_healthy(state)

    def count_tokens(self, model: RoutedModel, tokens: int) -> None:
        """Count the tokens of an answer against the limit of a deployment."""
        self._state(model).tokens += tokens

    def report(self, models: Sequence[RoutedModel]) -> dict[str, dict[str, Any]]:
        """Return the state of models by name, for people."""
        rows: dict[str, dict[str, Any]] = {}
        for model in models:
            state = self._states.get(model.label, _State())
            status = "rests" if self.rests(model) else "failing" if state.failures else "ok"
            rows[model.label] = {"status": status, "failures": state.failures, "open": state.open}
        return rows

    def _limited_for(self, model: RoutedModel) -> float:
        """Return the seconds until a deployment takes another request; 0 if it does now."""
        limits, state = _limits(model), self._state(model)
        if limits.parallel is not None and state.open >= limits.parallel:
            return 1.0
        minute, second = divmod(time.time(), 60)
        if state.minute != int(minute):
            return 0.0
        too_many = limits.requests_per_minute is not None and state.requests >= limits.requests_per_minute
        too_much = limits.tokens_per_minute is not None and state.tokens >= limits.tokens_per_minute
        return 60 - second if too_many or too_much else 0.0

    def follow_config(self) -> None:
        """Label the models in metrics by the settings now in use: those that no route lists are `other`."""
        listed = {name for route in self._config().routes for name in route.to}
        for name, state in self._states.items():
            state.metric = name if name in listed else _OTHER

    def _set_healthy(self, state: _State) -> None:
        if state.metric != _OTHER:
            self._healthy.labels(state.metric).set(not state.rests_until)

    def _state(self, model: RoutedModel) -> _State:
        label = model.label
        if label not in self._states:
            if len(self._states) >= _KEPT:
                idle = [name for name, state in self._states.items() if not (state.open or state.failures)]
                for name in idle or list(self._states)[:1]:
                    del self._states[name]
            self._states[label] = _State()
            self.follow_config()
            self._set_healthy(self._states[label])
        return self._states[label]


def _limits(model: RoutedModel) -> Deployment:
    return model.deployment or _PLAIN


def _score(model: RoutedModel, identity: str) -> float:
    """Return the rank of a deployment for a conversation (weighted rendezvous hashing).

    Of many conversations, the highest scores are shared by weight; if one deployment is missing, only its own
    conversations move.
    """
    digest = hashlib.sha256(f"{model.label}\0{identity}".encode("utf-8", "surrogatepass")).digest()
    share = (int.from_bytes(digest[:8], "big") + 1) / (2**64 + 2)
    return -_limits(model).weight / math.log(share)
