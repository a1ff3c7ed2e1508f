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

from interlingua.errors import CapabilityError, PluginError, ProviderError, RateLimitError, WireError
from interlingua.fallback import OUTAGES, Fallback, ModelHealth
from interlingua_gateway.config import Deployment, GatewayConfig
from interlingua_gateway.models import RoutedModel

_OTHER = "other"  # the label of models that routes do not list
_KEPT = 1_000  # most models whose state is kept
_PLAIN = Deployment(name="any", model="any:any")
_GO_ON = (CapabilityError, PluginError, ProviderError, WireError)  # all but mistakes that every model would refuse


@attrs.define
class _State:
    """The state of one deployment.

    Attributes:
        metric: its label in metrics.
        open: requests in progress.
        minute: the minute since the epoch that `requests` and `tokens` count.
        requests: requests in that minute.
        tokens: tokens in that minute.
    """

    metric: str = ""
    open: int = 0
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
        self._models = ModelHealth(lambda: self.policy)
        facts: dict[str, Any] = {"registry": metrics, "namespace": "interlingua_gateway"}
        self._failures = Counter("model_failures", "Failed attempts", ("model", "error"), **facts)
        self._healthy = Gauge(
            "model_healthy", "0 while a model rests after failures", ("model",), multiprocess_mode="livemin", **facts
        )
        self._open = Gauge(
            "model_open_requests", "Requests in progress", ("model",), multiprocess_mode="livesum", **facts
        )

    @property
    def policy(self) -> Fallback:
        """When a request tries the next model of its route."""
        config = self._config()
        return Fallback(on=_GO_ON, rest_after=config.rest_after, rest=config.rest)

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
        by_label = {model.label: model for model in free}
        return [by_label[label] for label in self._models.order(list(by_label))]

    def rests(self, model: RoutedModel) -> bool:
        """Return True if a model is not asked now: it has failed, or one request is trying it again."""
        return self._models.rest_left(model.label) > 0

    def claim(self, model: RoutedModel) -> bool:
        """Return True if a model may be asked now; after a rest, for one request."""
        return self._models.claim(model.label)

    @contextmanager
    def asking(self, model: RoutedModel) -> Iterator[None]:
        """Count a request to a model as in progress."""
        state = self._state(model)
        now = int(time.time() // 60)
        if state.minute != now:
            state.minute, state.requests, state.tokens = now, 0, 0
        state.requests += 1
        state.open += 1
        gauge = self._open.labels(state.metric)
        gauge.inc()
        try:
            yield
        finally:
            gauge.dec()
            state.open -= 1

    def note(self, model: RoutedModel, error: BaseException | None) -> None:
        """Note the outcome of an attempt: a model rests after some failures, or for as long as its service asks."""
        state = self._state(model)
        if isinstance(error, OUTAGES):
            self._failures.labels(state.metric, type(error).__name__).inc()
        self._models.note(model.label, error)
        self._set_healthy(model.label, state)

    def count_tokens(self, model: RoutedModel, tokens: int) -> None:
        """Count the tokens of an answer against the limit of a deployment."""
        self._state(model).tokens += tokens

    def report(self, models: Sequence[RoutedModel]) -> dict[str, dict[str, Any]]:
        """Return the state of models by name, for people."""
        rows: dict[str, dict[str, Any]] = {}
        for model in models:
            state = self._states.get(model.label, _State())
            failures = self._models.failures(model.label)
            status = "rests" if self.rests(model) else "failing" if failures else "ok"
            rows[model.label] = {"status": status, "failures": failures, "open": state.open}
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

    def _set_healthy(self, label: str, state: _State) -> None:
        if state.metric != _OTHER:
            self._healthy.labels(state.metric).set(not self._models.rest_left(label))

    def _state(self, model: RoutedModel) -> _State:
        label = model.label
        if label not in self._states:
            if len(self._states) >= _KEPT:
                idle = [name for name, state in self._states.items() if not state.open]
                for name in idle or list(self._states)[:1]:
                    del self._states[name]
            self._states[label] = _State()
            self.follow_config()
            self._set_healthy(label, self._states[label])
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
