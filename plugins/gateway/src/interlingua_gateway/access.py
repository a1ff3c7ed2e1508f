"""Keys, budgets, limits and metrics of requests."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Any

import attrs
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from interlingua.errors import (
    AuthenticationError,
    InterlinguaError,
    OverloadedError,
    PermissionDeniedError,
    QuotaExceededError,
    RateLimitError,
)
from interlingua.plugins import Loss
from interlingua.types import Message
from interlingua_gateway.store import GatewayStore, Key, ask_store

NOBODY = "local"
"""The tenant of requests without a key."""
_KEPT = 5.0  # seconds before a key is read from the store again
_MODELS = 200  # most models with their own label in metrics
_log = logging.getLogger("interlingua.gateway")


@attrs.define
class Admission:
    """An admitted request, until it is settled.

    Attributes:
        tenant: the id of the caller's key.
        api: the key of the provider whose API the caller uses.
        started: the time of admission, by `time.perf_counter`.
        target: the `provider:model` of the last attempt.
    """

    tenant: str
    api: str
    started: float = attrs.field(factory=time.perf_counter)
    target: str = ""


class Access:
    """Admits requests and records their outcomes.

    Args:
        store: the store of the keys; None if requests need no key.
        key_headers: lower-case names of headers that may hold a key, in addition to `authorization`.
        key_parameters: names of query parameters that may hold a key.
    """

    def __init__(
        self, store: GatewayStore | None, key_headers: Sequence[str] = (), key_parameters: Sequence[str] = ()
    ) -> None:
        self._store = store
        self._key_headers, self._key_parameters = key_headers, key_parameters
        self._known: dict[bytes, tuple[Key, float]] = {}
        self._labels: set[str] = set()
        self.metrics = CollectorRegistry()
        facts: dict[str, Any] = {"registry": self.metrics, "namespace": "interlingua_gateway"}
        names = ("api", "model")
        self._requests = Counter(
            "requests", "Requests by outcome: ok or the error's class", (*names, "outcome"), **facts
        )
        self._tokens = Counter("tokens", "Tokens of conversations", (*names, "direction"), **facts)
        self._cost = Counter("cost_usd", "Cost by list price, if known", names, **facts)
        self._losses = Counter("losses", "Rows of the ledger, of requests and answers", (*names, "verdict"), **facts)
        self._unrecorded = Counter("unrecorded", "Conversations that could not be recorded", ("api",), **facts)
        buckets = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
        self._seconds = Histogram("request_seconds", "Seconds of a request", names, buckets=buckets, **facts)
        self._open = Gauge("open_requests", "Requests in progress", ("api",), **facts)

    async def authenticate(self, headers: Mapping[str, str], query: Mapping[str, str]) -> Key | None:
        """Return the key of a request; None if requests need no key.

        Raises:
            AuthenticationError: the request has no key, or an unknown, revoked or expired one.
            OverloadedError: the database does not respond.
        """
        if self._store is None:
            return None
        bearer = headers.get("authorization", "")
        given = [bearer[7:] if bearer[:7].lower() == "bearer " else None]
        given += [headers.get(name) for name in self._key_headers]
        given += [query.get(name) for name in self._key_parameters]
        text = next(filter(None, given), None)
        if not text:
            raise AuthenticationError("no key: send a key of this gateway (interlingua gateway keys add)")
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        key, found = self._known.get(digest, (None, 0.0))
        if key is None or time.monotonic() - found > _KEPT:
            key = await ask_store(self._store.find_key, text)
            if key is None:
                raise AuthenticationError("unknown key: send a key of this gateway")
            if len(self._known) > 10_000:
                self._known.clear()
            self._known[digest] = (key, time.monotonic())
        if key.revoked is not None or (key.expires is not None and key.expires.timestamp() <= time.time()):
            raise AuthenticationError("this key is revoked or expired")
        return key

    async def admit(self, key: Key | None, model: str, api: str) -> Admission:
        """Admit a request.

        Raises:
            PermissionDeniedError: the key may not use this model.
            RateLimitError: the key has reached its requests or tokens for this minute.
            QuotaExceededError: its budget is used up.
            OverloadedError: the database does not respond, so the use cannot be recorded.
        """
        if key is not None and self._store is not None:
            if key.models and not any(fnmatchcase(model, pattern) for pattern in key.models):
                raise PermissionDeniedError(f"this key may not use the model {model!r}")
            if key.requests_per_minute is not None or key.tokens_per_minute is not None:
                wait = await ask_store(self._store.take_request, key)
                if wait is not None:
                    raise RateLimitError("this key has reached its limit for this minute", retry_after=wait)
            if key.budget_usd is not None:
                spent = await ask_store(self._store.spent, key)
                if spent.cost_usd >= key.budget_usd:
                    raise QuotaExceededError(f"the budget of this key, {key.budget_usd} USD, is used up")
        self._open.labels(api).inc()
        return Admission(NOBODY if key is None else key.id, api)

    async def settle(self, admission: Admission, message: Message | None, error: BaseException | None) -> None:
        """Record the outcome of a request: its answer, or the part that was received, and the failure."""
        names = (admission.api, self._label(admission.target) if message is not None and message.content else "")
        self._open.labels(admission.api).dec()
        self._requests.labels(*names, type(error).__name__ if error is not None else "ok").inc()
        self._seconds.labels(*names).observe(time.perf_counter() - admission.started)
        usage = None if message is None else message.metadata.usage
        if usage is None:
            return
        given, made, cost = usage.input_tokens or 0, usage.output_tokens or 0, usage.cost_usd
        self._tokens.labels(*names, "input").inc(given)
        self._tokens.labels(*names, "output").inc(made)
        self._cost.labels(*names).inc(float(cost or 0))
        if self._store is not None and admission.tenant != NOBODY:
            try:
                await ask_store(self._store.add_usage, admission.tenant, given, made, cost or Decimal(0))
            except OverloadedError as failure:
                _log.error(
                    "key %s: %d + %d tokens, %s USD not recorded: %s", admission.tenant, given, made, cost, failure
                )

    def count_unrecorded(self, api: str) -> None:
        """Count a conversation that could not be recorded."""
        self._unrecorded.labels(api).inc()

    def count_losses(self, api: str, target: str, losses: Iterable[Loss]) -> None:
        """Count the losses of a request or its answer."""
        for loss in losses:
            self._losses.labels(api, self._label(target), loss.verdict).inc()

    def _label(self, target: str) -> str:
        """Return the model's label in metrics; their number is limited because some services accept any name."""
        if target not in self._labels and len(self._labels) >= _MODELS:
            return "other"
        self._labels.add(target)
        return target

    def count_refusal(self, api: str, error: InterlinguaError) -> None:
        """Count a request that was not admitted."""
        self._requests.labels(api, "", type(error).__name__).inc()
