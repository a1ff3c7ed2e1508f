"""Sends one row until it has an answer or a permanent error, at the pace that its model allows."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import attrs
import orjson

from interlingua import AsyncClient, Retry, cost_of
from interlingua.codec import encode_message
from interlingua.errors import (
    APIConnectionError,
    APITimeoutError,
    AuthenticationError,
    CallerError,
    InterlinguaError,
    ModelNotFoundError,
    OverloadedError,
    PermissionDeniedError,
    QuotaExceededError,
    RateLimitError,
)
from interlingua.types import Message, ToolDefinition, Usage
from interlingua_bulk.budget import Budget, BudgetUsedUpError
from interlingua_bulk.pace import OPENED, Lease, Pace
from interlingua_bulk.rows import BulkRow

if TYPE_CHECKING:
    from interlingua import Exchange
    from interlingua.plugins import Loss

_BYTES_PER_TOKEN = 4
_LEAST_BYTES_PER_TOKEN = 2  # of Chinese or Arabic text: what is reserved should not be exceeded
_GIVEN_UP = 32  # rows given up one after the other, without an answer between: the service is down
# seconds until a row is sent again while the model answers others, times its earlier failures: a cut connection says
# nothing about the next one; another failure, whose waits grow with the third power, may last for some seconds
_QUICK_S = 0.1
_MOST_COUNTED = 3  # failures after which the wait does not grow: a run would end late for a single row
_FEW_FAILED = 8  # attempts one after the other, without an answer between
_NOTHING = Decimal(0)


def _read_usd(value: Decimal | float | str | None) -> Decimal | None:
    try:
        return None if value is None else Decimal(str(value))
    except InvalidOperation:
        raise CallerError(f"budget_usd is a number of US dollars, not {value!r}") from None


@attrs.frozen(kw_only=True)
class Limits:
    """The limits of a run; see `arun`.

    Raises:
        CallerError: one of them is not a number above 0.
    """

    concurrency: int = 128
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    budget_usd: Decimal | None = attrs.field(default=None, converter=_read_usd)
    max_attempts: int = 5
    patience_s: float = 600.0

    def __attrs_post_init__(self) -> None:
        for name in ("concurrency", "max_attempts"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise CallerError(f"{name} is a whole number from 1, not {value!r}")
        for name in ("requests_per_minute", "tokens_per_minute", "budget_usd"):
            value = getattr(self, name)
            if value is not None and not (Decimal(value).is_finite() and value > 0):
                raise CallerError(f"{name} is a number above 0, or None for no limit, not {value}")


class StopRunError(Exception):
    """No further row can be answered, including the row that raised this."""

    def __init__(self, why: str, error: InterlinguaError | None = None) -> None:
        super().__init__(why)
        self.why, self.error = why, error


@attrs.define
class RowAnswer:
    """The result of a row.

    Attributes:
        ok: True for an answer.
        line: the whole line for the output, line end included.
        input_tokens: as billed.
        output_tokens: as billed.
        cost_usd: cost in USD; None if the price is not known.
        attempts: times it was sent.
    """

    ok: bool
    line: bytes
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: Decimal | None = None
    attempts: int = 0


@attrs.define(eq=False)
class _Sending:
    """A row that is being sent: its request, and how often it was tried."""

    row: BulkRow
    key: str | None
    model: str | None
    pace: Pace
    exchange: Exchange
    attempts: int = 0
    failures: int = 0
    refusals: int = 0
    overloads: int = 0
    waited: float = 0.0  # seconds for capacity; they cost no try either
    reserved: Decimal = _NOTHING  # USD


class Sender:
    """Sends rows. For one event loop.

    Args:
        client: makes and sends requests; it should not try again by itself.
        model: model of rows without a model.
        options: options of every request; a row's own options win.
        tools: tools of rows without tools.
        limits: limits of requests, tokens and cost.

    Attributes:
        asked: requests sent so far.
        budget: what the requests may cost.
        paces: the pace of each model so far.
        lease_s: seconds for which rates are leased from a limiter that several processes share; None for rates of
            this sender alone.
    """

    def __init__(
        self,
        client: AsyncClient,
        model: str | None,
        options: Mapping[str, Any],
        tools: Sequence[ToolDefinition],
        limits: Limits,
    ) -> None:
        self.client, self.model, self.options, self.tools, self.limits = client, model, options, tools, limits
        self.asked = 0
        self.budget = Budget(limits.budget_usd)
        self._retry = Retry(max_attempts=limits.max_attempts)
        self.paces: dict[str | None, Pace] = {}
        self.lease_s: float | None = None
        self._loaded: dict[str | None, asyncio.Event] = {}  # by model; set once its first row is built
        self._answered: Counter[str | None] = Counter()  # by model: once it has answered, a refusal is about a row
        self._failed: Counter[str | None] = Counter()  # attempts that failed since a model's last answer
        self._given_up: Counter[str | None] = Counter()  # rows that a model failed since its last answer
        self._stopped: str | None = None
        self._stop_waiters: set[asyncio.Task[Any]] = set()

    @property
    def in_flight_limit(self) -> int:
        """How many requests may be under way before another answer, over all models."""
        first = 0 if self.paces else min(OPENED, self.limits.concurrency)
        return max(sum(pace.soon for pace in self.paces.values()), first)

    @property
    def stopped(self) -> str | None:
        """The reason why no more rows are sent."""
        return self._stopped

    def pace(self, model: str | None) -> Pace:
        """Return the pace of a model."""
        found = self.paces.get(model)
        if found is None:
            limits = self.limits
            found = self.paces[model] = Pace(
                limits.concurrency,
                requests_per_minute=limits.requests_per_minute,
                tokens_per_minute=limits.tokens_per_minute,
            )
            if self.lease_s is not None:
                found.requests.begin_lease(self.lease_s)
                found.tokens.begin_lease(self.lease_s)
        return found

    def stop(self, why: str) -> None:
        """Stop sending: waiting rows end, and open requests are completed."""
        self._stopped = self._stopped or why
        for task in tuple(self._stop_waiters):
            task.cancel()

    async def send(self, row: BulkRow, key: str | None = None) -> RowAnswer:
        """Send a row until it has an answer, or an error that trying again would not change.

        Args:
            row: the request.
            key: key of its content, if equal rows share one answer.

        Raises:
            StopRunError: no further row can be answered, or the run was stopped before this one was sent.
        """
        model = row.model or self.model
        try:
            exchange = await self._prepare(row, model)
        except InterlinguaError as error:
            return RowAnswer(False, error_line(row, error, 0))
        sending = _Sending(row, key, model, self.pace(model), exchange)
        try:
            while True:
                lease = await self._begin(sending)
                try:
                    message = await self.client.attempt(exchange)
                except InterlinguaError as error:
                    wait_s = self._wait_after(sending, lease, error)
                    if wait_s is None:
                        return RowAnswer(False, error_line(row, error, sending.attempts), attempts=sending.attempts)
                except BaseException:
                    sending.pace.fail(lease)
                    raise
                else:
                    return self._answer(sending, lease, message)
                await self._turn(asyncio.sleep(wait_s))
        finally:
            self.budget.free(sending.reserved)

    async def _prepare(self, row: BulkRow, model: str | None) -> Exchange:
        """Build the request of a row, the first one of a model alone: it imports what the others need.

        Without that the first rows would be built in threads, and sent in any order.
        """
        loaded = self._loaded.get(model)
        if loaded is not None:
            await loaded.wait()
        else:
            loaded = self._loaded[model] = asyncio.Event()
        try:
            return await self.client.prepare(
                row.messages, model=model, tools=row.tools or self.tools, **{**self.options, **row.options}
            )
        finally:
            loaded.set()

    async def _begin(self, sending: _Sending) -> Lease:
        """Wait until the request may be sent: for money, and for its turn."""
        if not sending.attempts and self.budget.total is not None:
            try:
                sending.reserved = await self._turn(self.budget.reserve(_most(sending.exchange), sending.model))
            except BudgetUsedUpError as error:
                raise StopRunError(f"the budget of {self.limits.budget_usd} USD is {error}") from None
        tokens = 0.0
        if self.limits.tokens_per_minute is not None:
            request = sending.exchange.request
            tokens = len(request.wire.body) / _BYTES_PER_TOKEN + (request.options.max_tokens or 0)
        lease: Lease = await self._turn(sending.pace.acquire(tokens, again=sending.attempts > 0))
        sending.attempts += 1
        self.asked += 1
        return lease

    async def _turn(self, waiting: Coroutine[Any, Any, Any]) -> Any:
        """Wait for a turn, unless the run is stopped first."""
        self._check_stopped(waiting)
        task = asyncio.current_task()
        assert task is not None  # noqa: S101
        self._stop_waiters.add(task)
        try:
            return await waiting
        except asyncio.CancelledError:
            if self._stopped is None or task.uncancel():
                raise
            raise StopRunError(self._stopped) from None
        finally:
            self._stop_waiters.discard(task)

    def _check_stopped(self, waiting: Coroutine[Any, Any, Any]) -> None:
        if self._stopped is not None:
            waiting.close()
            raise StopRunError(self._stopped)

    def _wait_after(self, sending: _Sending, lease: Lease, error: InterlinguaError) -> float | None:
        """Return the seconds until a row is sent again after an error; None if it has failed.

        Raises:
            StopRunError: every other row would fail like this one, or the wait is too long.
        """
        pace = sending.pace
        pace.note_headers(sending.exchange.headers)
        if isinstance(error, RateLimitError) and error.retryable:
            sending.refusals += 1
            wait_s = pace.refuse(lease, error.retry_after, sending.refusals)
        elif isinstance(error, OverloadedError) and error.retryable and sending.waited < self.limits.patience_s:
            sending.overloads += 1
            wait_s = pace.refuse(lease, error.retry_after, sending.overloads)
            sending.waited += wait_s
        else:
            pace.fail(lease)
            sending.failures += 1
            return self._delay(sending, error)
        if wait_s > self.limits.patience_s:
            text = f"the service asks to wait {wait_s:.0f} s, longer than {self.limits.patience_s:g} s: {error}"
            raise StopRunError(text, error)
        return wait_s

    def _delay(self, sending: _Sending, error: InterlinguaError) -> float | None:
        """Return the seconds until a row is sent again after a failure; None if it has failed."""
        model = sending.model
        self._failed[model] += 1
        delay = self._retry.delay(error, sending.failures)
        if delay is not None:
            is_served = self._answered[model] > 0 and self._failed[model] <= _FEW_FAILED
            power = 1 if _is_unreachable(error) else 3
            quick = _QUICK_S * min(sending.failures - 1, _MOST_COUNTED) ** power
            return min(delay, quick) if is_served and not error.retry_after else delay
        with suppress(InterlinguaError):  # raised again, and told to plugins that watch the request
            if not sending.exchange.retry_delay(error):  # another secret replaces the rejected one
                return 0.0
        everyones = isinstance(error, (AuthenticationError, QuotaExceededError))
        first = isinstance(error, (PermissionDeniedError, ModelNotFoundError)) or _is_unreachable(error)
        if everyones or (first and not self._answered[model]):
            raise StopRunError(str(error), error)
        if error.retryable:
            self._given_up[model] += 1
            if self._given_up[model] >= _GIVEN_UP:
                raise StopRunError(f"{_GIVEN_UP} rows failed one after the other, the last with: {error}", error)
        return None

    def _answer(self, sending: _Sending, lease: Lease, message: Message) -> RowAnswer:
        self._answered[sending.model] += 1
        self._failed[sending.model] = self._given_up[sending.model] = 0
        exchange, usage = sending.exchange, message.metadata.usage
        read, written = (0, 0) if usage is None else (usage.input_tokens or 0, usage.output_tokens or 0)
        sending.pace.note_headers(exchange.headers)
        sending.pace.succeed(lease, None if usage is None else read + written, written or None)
        cost = None if usage is None else usage.cost_usd
        if cost is not None:
            self.budget.spend(cost, sending.model)
        elif self.budget.total is not None:
            note = (usage.cost_note if usage is not None else None) or "no usage was reported"
            self.stop(f"the budget cannot be held, an answer has no known cost: {note}")
        line = answer_line(sending.row, sending.key, message, exchange.request.wire.losses, sending.attempts)
        return RowAnswer(True, line, read, written, cost, sending.attempts)


def _is_unreachable(error: InterlinguaError) -> bool:
    """Return True if the connection failed; a timeout of the answer does not count."""
    slow = isinstance(error, APITimeoutError) and error.phase == "response"
    return isinstance(error, APIConnectionError) and not slow


def _most(exchange: Exchange) -> Decimal | None:
    """Return the most USD that a request may cost, by its size and `max_tokens`; None if either is unknown."""
    request = exchange.request
    if request.options.max_tokens is None:
        return None
    most = len(request.wire.body) // _LEAST_BYTES_PER_TOKEN + 1
    usage = Usage(input_tokens=most, output_tokens=request.options.max_tokens)
    return cost_of(usage, request.provider.model(request.options.model), datetime.now(UTC)).cost_usd


# -- lines ------------------------------------------------------------------------------------------------------


def answer_line(row: BulkRow, key: str | None, message: Message, losses: Sequence[Loss], attempts: int) -> bytes:
    """Return the line of an answer; `index` and `status` come first, because they are read without the rest."""
    line: dict[str, Any] = {"index": row.index, "status": "ok"}
    if key is not None:
        line["key"] = key
    usage = message.metadata.usage
    line["id"] = row.id
    line["message"] = encode_message(message)
    line["usage"] = None if usage is None else _usage(usage)
    line["cost_usd"] = None if usage is None or usage.cost_usd is None else f"{usage.cost_usd:f}"
    line["losses"] = [attrs.asdict(loss) for loss in losses]
    line["attempts"] = attempts
    return _dump(line, row)


def shared_line(row: BulkRow, line: Mapping[str, Any]) -> bytes:
    """Return the line of a row that shares another's answer and costs nothing."""
    own = {**line, "index": row.index, "id": row.id, "shared_with": line["id"], "cost_usd": "0", "attempts": 0}
    own.pop("key", None)
    own.pop("metadata", None)
    return _dump({"index": own.pop("index"), "status": own.pop("status"), **own}, row)


def error_line(row: BulkRow, error: InterlinguaError, attempts: int) -> bytes:
    """Return the line of a row that has no answer."""
    facts = {
        "type": type(error).__name__,
        "message": "; ".join(filter(None, (error.message, getattr(error, "hint", "")))),
        "status": error.status,
        "code": error.code,
        "request_id": error.request_id,
        "retryable": error.retryable,
        "path": error.place,
    }
    kept = {name: value for name, value in facts.items() if value is not None}
    return _dump({"index": row.index, "status": "error", "id": row.id, "error": kept, "attempts": attempts}, row)


def _dump(line: dict[str, Any], row: BulkRow) -> bytes:
    if row.metadata is not None:
        line["metadata"] = row.metadata
    return orjson.dumps(line) + b"\n"


def _usage(usage: Usage) -> dict[str, int]:
    counts = {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "cached_input_tokens": usage.cached_input_tokens,
        "latency_ms": usage.latency_ms,
    }
    return {name: count for name, count in counts.items() if count is not None}
