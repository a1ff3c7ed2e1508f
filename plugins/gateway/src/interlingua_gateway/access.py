"""Keys, budgets, limits and metrics of requests."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import attrs
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from interlingua.errors import (
    AuthenticationError,
    CapabilityError,
    InterlinguaError,
    PermissionDeniedError,
    QuotaExceededError,
    RateLimitError,
)
from interlingua.plugins import Loss, ModelInfo
from interlingua.types import Message, MessageStatus
from interlingua_gateway.models import ModelChoice
from interlingua_gateway.spending import STANDARD, FurtherCost, Spending, highest_use
from interlingua_gateway.store import Balance, GatewayStore, Key, Use, ask_store

NOBODY = "local"
"""The tenant of requests without a key."""
_KEPT = 5.0  # seconds before a key is read from the store again
_MODELS = 200  # most models with their own label in metrics
_log = logging.getLogger("interlingua.gateway")
_WAIT = 5.0  # seconds that a caller is told to wait for the reservations of others


@attrs.define
class Admission:
    """An admitted request, until it is settled.

    Attributes:
        tenant: the id of the caller's key.
        api: the key of the provider whose API the caller uses.
        key: the caller's key; None if requests need none.
        started: the time of admission, by `time.perf_counter`.
        target: the `provider:model` of the last attempt.
        reservation: the name of what is reserved for that attempt; None if nothing is.
        most: the most that the attempt may use.
        unpriced: the part of it that is not for tokens, in USD.
        tools: the part of it for tools of the service, whose uses the answer reports.
        has_budget: True if the key or its team has a budget.
    """

    tenant: str
    api: str
    key: Key | None = None
    started: float = attrs.field(factory=time.perf_counter)
    target: str = ""
    reservation: str | None = None
    most: Use = Use()  # noqa: RUF009  it is frozen
    unpriced: Decimal = Decimal(0)
    tools: Decimal = Decimal(0)
    has_budget: bool = False

    def beside(self, message: Message) -> Decimal:
        """Return the part of an answer's cost that is not in its usage, in USD; a broken answer lacks uses of tools."""
        return self.unpriced + (0 if message.metadata.status is MessageStatus.COMPLETE else self.tools)


class Access:
    """Admits requests and records their outcomes.

    Args:
        store: the store of the keys; None if requests need no key.
        key_headers: lower-case names of headers that may hold a key, in addition to `authorization`.
        key_parameters: names of query parameters that may hold a key.
        spending: reserves and settles what keys use; None if requests need no key.
    """

    def __init__(
        self,
        store: GatewayStore | None,
        key_headers: Sequence[str] = (),
        key_parameters: Sequence[str] = (),
        spending: Spending | None = None,
    ) -> None:
        self._store, self.spending = store, spending
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
        self._repeated = Counter("cached_answers", "Requests that a kept answer answered", ("api",), **facts)
        buckets = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
        self._seconds = Histogram("request_seconds", "Seconds of a request", names, buckets=buckets, **facts)
        self._open = Gauge("open_requests", "Requests in progress", ("api",), multiprocess_mode="livesum", **facts)

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

    def forget_keys(self) -> None:
        """Read keys from the store again: one has changed."""
        self._known.clear()

    async def check_admin(self, headers: Mapping[str, str], query: Mapping[str, str]) -> Key | None:
        """Return the key of a request about the gateway itself, an admin's; None if requests need no key.

        Raises:
            AuthenticationError: the request has no valid key.
            PermissionDeniedError: the key is not an admin's.
            OverloadedError: the database does not respond.
        """
        key = await self.authenticate(headers, query)
        if key is not None and not key.admin:
            raise PermissionDeniedError("this needs an admin's key (interlingua gateway keys add NAME --admin)")
        return key

    async def admit(self, key: Key | None, choice: ModelChoice | None, api: str) -> Admission:
        """Admit a request.

        Args:
            key: the caller's key; None if requests need none.
            choice: the models that may answer; None if the caller has checked them.
            api: the key of the provider whose API the caller uses.

        Raises:
            PermissionDeniedError: the key may not use these models.
            RateLimitError: the key has reached its requests or tokens for this minute.
            OverloadedError: the database does not respond, so the use cannot be recorded.
        """
        if key is not None and self._store is not None:
            if choice is not None and not choice.is_allowed(key.models):
                raise PermissionDeniedError(f"this key may not use the model {choice.asked!r}")
            if key.requests_per_minute is not None or key.tokens_per_minute is not None:
                wait = await ask_store(self._store.take_request, key)
                if wait is not None:
                    raise RateLimitError("this key has reached its limit for this minute", retry_after=wait)
        self._open.labels(api).inc()
        return Admission(NOBODY if key is None else key.id, api, key)

    async def reserve(
        self,
        admission: Admission,
        model: str,
        info: ModelInfo | None,
        input_tokens: int,
        output_tokens: int,
        least: int,
        cost: FurtherCost = STANDARD,
    ) -> int:
        """Reserve the most that an attempt may use, and return the most output tokens that it may have.

        Args:
            admission: the request.
            model: the `provider:model` that will be asked.
            info: its entry in the catalogue.
            input_tokens: the most input tokens of the request.
            output_tokens: the most output tokens that it may have.
            least: the fewest output tokens to which the answer may be limited if the key has less left.
            cost: what it may cost in addition to the standard price of its tokens.

        Raises:
            CapabilityError: the key has a budget, and no price of the model or of a member is known.
            QuotaExceededError: the budget has less left, or the key has fewer tokens in any minute.
            RateLimitError: requests in progress have reserved what is left, or the key has fewer tokens this minute.
            OverloadedError: the database does not respond.
        """
        key = admission.key
        if key is None or self.spending is None:
            return output_tokens
        cost = cost.of_model(info)
        priced = highest_use(info, input_tokens, output_tokens, cost)
        most = priced or Use(input_tokens=input_tokens, output_tokens=output_tokens)
        name, balance = await self.spending.reserve(key, most, model)
        unknown = cost.member if cost.member and cost.limit is None else model if priced is None else ""
        if unknown and balance.budget is not None:
            if name is not None:
                await self.spending.settle(name, Use(requests=0))
            text = f"this {balance.owner} has a budget, and no price of {unknown} is known"
            if unknown != model:
                text += ": set the most that it may cost, in USD, as unpriced_usd in the model's [[routes]]"
            raise CapabilityError(text)
        if name is None and (fewer := _affordable(info, most, balance, cost)) >= least:
            output_tokens = fewer
            most = highest_use(info, input_tokens, fewer, cost) or attrs.evolve(most, output_tokens=fewer)
            name, balance = await self.spending.reserve(key, most, model)
        if name is None:
            raise _refusal(balance, most)
        admission.reservation, admission.most, admission.unpriced = name, most, cost.most
        admission.has_budget = balance.budget is not None
        without = highest_use(info, input_tokens, output_tokens, attrs.evolve(cost, uses={})) if cost.uses else None
        admission.tools = Decimal(0) if without is None else most.cost_usd - without.cost_usd
        return output_tokens

    async def settle_attempt(self, admission: Admission, use: Use) -> None:
        """Settle the reservation of an attempt after which another one follows."""
        if admission.reservation is not None and self.spending is not None:
            name, admission.reservation = admission.reservation, None
            await self.spending.settle(name, use)

    async def settle(
        self,
        admission: Admission,
        message: Message | None,
        error: BaseException | None,
        *,
        unknown: bool = False,
        use: Use | None = None,
    ) -> None:
        """Record the outcome of a request.

        Args:
            admission: the request.
            message: its answer, or the part that was received.
            error: the failure.
            unknown: True if the service may have answered, but the answer is lost: the most that it may cost counts.
            use: usage of a request whose answer is not a message.
        """
        names = (admission.api, self._label(admission.target) if message is not None and message.content else "")
        self._open.labels(admission.api).dec()
        self._requests.labels(*names, type(error).__name__ if error is not None else "ok").inc()
        self._seconds.labels(*names).observe(time.perf_counter() - admission.started)
        usage = None if message is None else message.metadata.usage
        if message is None or usage is None:
            await self.settle_attempt(admission, use or (admission.most if unknown else Use()))
            return
        given, made, cost = usage.input_tokens or 0, usage.output_tokens or 0, usage.cost_usd
        self._tokens.labels(*names, "input").inc(given)
        self._tokens.labels(*names, "output").inc(made)
        self._cost.labels(*names).inc(float(cost or 0))
        use = Use(
            input_tokens=given,
            output_tokens=made,
            cost_usd=admission.most.cost_usd if cost is None else cost + admission.beside(message),
        )
        await self.settle_attempt(admission, use)

    def count_cached(self, api: str) -> None:
        """Count a request that a kept answer answered."""
        self._repeated.labels(api).inc()

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


def _affordable(info: ModelInfo | None, most: Use, balance: Balance, cost: FurtherCost) -> int:
    """Return how many output tokens of a request this minute and a budget have left; negative without any."""
    left, fewer = balance.left, most.output_tokens
    if balance.tokens_left is not None:
        fewer = min(fewer, balance.tokens_left - most.input_tokens)
    if left is None:
        return fewer
    without = highest_use(info, most.input_tokens, 0, cost)
    if without is None or left <= without.cost_usd:
        return -1
    price = (most.cost_usd - without.cost_usd) / max(most.output_tokens, 1)
    return min(int((left - without.cost_usd) / price), fewer) if price else fewer


def _refusal(balance: Balance, most: Use) -> QuotaExceededError | RateLimitError:
    limit, tokens = balance.token_limit, balance.tokens_left
    if limit is not None and tokens is not None and most.tokens > tokens:
        text = f"this request may use {most.tokens} tokens, and {max(tokens, 0)} of the key's {limit} a minute are left"
        if most.tokens <= limit:
            return RateLimitError(text, retry_after=min(_WAIT, 60 - time.time() % 60))
        return QuotaExceededError(f"{text}: request fewer output tokens, with max_tokens or its like")
    unspent = (balance.budget or Decimal(0)) - balance.spent
    if unspent <= 0:
        return QuotaExceededError(f"the budget of this {balance.owner}, {balance.budget} USD, is used up")
    text = (
        f"this request may cost {most.cost_usd:.6f} USD, and {max(balance.left or 0, 0):.6f} USD of the budget are left"
    )
    if most.cost_usd <= unspent:
        return RateLimitError(f"{text} until requests in progress have ended", retry_after=_WAIT)
    return QuotaExceededError(f"{text}: request fewer output tokens, with max_tokens or its like")
