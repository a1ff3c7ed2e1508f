"""The pace of requests: an adaptive limit on open requests, rates, and the pauses that a service asks for."""

from __future__ import annotations

import asyncio
import re
import time
from collections import deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from random import random
from statistics import median

import attrs

FIRST = 8  # requests under way at the start: services refuse a rise that is too steep
SLOW = 2.0  # a median time per output token of so many times the best one means that the service is overloaded
LEAST_SAMPLES = 16
MANY = 0.1  # share of a round's requests that the service was too busy for, from which on the limit falls
_LEASE_WAIT_S = 1.0  # a lease wakes the pace up earlier
_LONGEST_RESET_S = 120.0  # what a day's limit says is left to its 429
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class Bucket:
    """A rate with continuous refill; holds at most what `burst_s` seconds bring, and one request at least.

    Args:
        per_minute: the rate; without one, no limit.
        now: seconds, monotonic.
        burst_s: seconds of the rate that may be taken at once: a limit of 60 a minute may be held as one a second.
    """

    __slots__ = ("_at", "_leased", "capacity", "level", "rate")

    def __init__(self, per_minute: float | None, now: float, burst_s: float = 1.0) -> None:
        self.rate = None if per_minute is None else per_minute / 60.0
        self.capacity = 0.0 if self.rate is None else max(self.rate * burst_s, 1.0)
        self.level = self.capacity
        self._at = now
        self._leased = False

    def begin_lease(self, seconds: float) -> None:
        """Replace the measured rate by the passed one.

        Args:
            seconds: until more is asked for; so much of the rate is kept at most, twice.
        """
        if self.rate is not None:
            self._leased = True
            self.level, self.capacity = 0.0, max(self.rate * seconds * 2, 1.0)

    def wanted(self) -> float:
        """Return the amount that still fits."""
        return 0.0 if self.rate is None else max(self.capacity - self.level, 0.0)

    def wait(self, amount: float, now: float) -> float:
        """Return the seconds until this amount is available; for more than the bucket holds, until it is full."""
        if self.rate is None:
            return 0.0
        if self._leased:
            return 0.0 if self.level >= min(amount, self.capacity) else _LEASE_WAIT_S
        self.level = min(self.capacity, self.level + (now - self._at) * self.rate)
        self._at = now
        missing = min(amount, self.capacity) - self.level
        return missing / self.rate if missing > 1e-9 else 0.0

    def take(self, amount: float) -> None:
        """Take an amount; the level may fall below 0, for example after a request that was larger than estimated."""
        if self.rate is not None:
            self.level -= amount


@attrs.define
class Lease:
    """A request that may be sent now.

    Attributes:
        tokens: what it was estimated to take of the tokens' rate.
        started: when, in seconds of the pace's clock.
    """

    tokens: float
    started: float


class Pace:
    """Decides when the next request to one model is sent. For one event loop.

    The limit on requests under way starts small, doubles with each round of answers until something says stop, then
    grows by one a round. A refusal for too many requests, or many for lack of capacity, take it to 0.7. Answers that
    are slow beside the quickest leave it unchanged, unless more of them arrive; those that are slow beside the usual
    ones take it to 0.9. While a service asks to wait, nothing is sent; then one request goes first, and the others
    follow its answer.

    Args:
        ceiling: most requests under way.
        requests_per_minute: None for no limit but the service's own.
        tokens_per_minute: input and output together; no limit if missing.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        ceiling: int,
        *,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.ceiling = ceiling
        self.limit = float(min(FIRST, ceiling))
        self.in_flight = 0
        self.refusals = 0
        self._clock = clock
        now = clock()
        self.requests = Bucket(requests_per_minute, now)
        self.tokens = Bucket(tokens_per_minute, now, burst_s=5.0)
        self._growing = True  # until the first sign of load
        self._closed_until = 0.0
        self._probing = False
        self._decreased_at = -1.0
        self._strikes = 0  # refusals without a wait of the service's own, one after the other
        self._overloads = 0  # in this round
        self._round: list[float] = []
        self._round_began = now
        self._peak = 0  # most under way in this round
        self._best: float | None = None  # seconds per output token: the least, and the average of late
        self._usual: float | None = None
        self._grown_rate = 0.0  # answers a second when the limit grew last
        self._waiters: deque[tuple[float, asyncio.Future[Lease]]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._names: tuple[tuple[str, str, str], ...] | None = None

    async def acquire(self, tokens: float = 0.0) -> Lease:
        """Wait until a request may be sent.

        Args:
            tokens: what it is estimated to take of the tokens' rate.
        """
        if not self._waiters and not self._wait(tokens):
            return self._grant(tokens)
        waiter: asyncio.Future[Lease] = asyncio.get_running_loop().create_future()
        self._waiters.append((tokens, waiter))
        self._pump()
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._end()
            raise

    def succeed(self, lease: Lease, tokens: float | None, output_tokens: int | None) -> None:
        """Record an answer.

        Args:
            lease: of the request.
            tokens: what it really took of the tokens' rate; None leaves the estimate.
            output_tokens: of the answer: a long one takes long without any load.
        """
        now = self._clock()
        if tokens is not None:
            self.tokens.take(tokens - lease.tokens)
        self._strikes = 0
        self._probing = False
        self._round.append((now - lease.started) / max(output_tokens or 1, 1))
        if len(self._round) >= max(int(self.limit), LEAST_SAMPLES):
            self._end_round(now)
        self._end()

    def refuse(self, lease: Lease, wait_s: float | None) -> float:
        """Record a refusal for too many requests or tokens, and return the seconds until the next request.

        Args:
            lease: of the request that was refused.
            wait_s: what the service asked for; None where it said nothing.
        """
        now = self._clock()
        self.refusals += 1
        first = lease.started > self._decreased_at  # of those that were under way together
        if first:
            self._decrease(0.7, now)
            self._strikes += 1
        if not wait_s:
            wait_s = min(0.5 * 2.0 ** min(self._strikes - 1, 7), 60.0)
        until = now + wait_s * (1 + 0.1 * random())  # noqa: S311  spreads load, keeps no secret
        if first or until > self._closed_until:
            self._closed_until = max(self._closed_until, until)
        self._probing = True
        self._end()
        return max(self._closed_until - now, 0.0)

    def overload(self, lease: Lease) -> None:
        """Record that the service was overloaded; a single such answer among many does not change the limit."""
        self._overloads += 1
        if self._overloads > MANY * max(self.limit, LEAST_SAMPLES) and lease.started > self._decreased_at:
            self._overloads = 0
            self._decrease(0.7, self._clock())
        self.fail(lease)

    def fail(self, lease: Lease) -> None:
        """Record a request that ended in any other way."""
        self._probing = False
        self._end()

    def close_for(self, seconds: float) -> None:
        """Send nothing for this many seconds."""
        self._closed_until = max(self._closed_until, self._clock() + seconds)

    @property
    def closed_for(self) -> float:
        """The seconds until anything is sent again."""
        return max(self._closed_until - self._clock(), 0.0)

    def wake(self) -> None:
        """Check again whether a request may be sent."""
        self._pump()

    def note_headers(self, headers: Mapping[str, str]) -> None:
        """Pause until the reset if an answer's headers report that a limit is used up."""
        if self._names is None:
            self._names = limit_headers(headers)
        for remaining, reset, limit in self._names:
            if headers.get(remaining) == "0" and headers.get(limit, "1").lstrip("-0") and reset in headers:
                seconds = read_reset(headers[reset])
                if seconds is not None and 0 < seconds <= _LONGEST_RESET_S:
                    self.close_for(seconds)

    # -- inside -------------------------------------------------------------------------------------------------

    def _wait(self, tokens: float) -> float:
        """Return the seconds until a request may be sent; infinity if another request must end first."""
        now = self._clock()
        if self.in_flight >= (1 if self._probing else max(int(self.limit), 1)):
            return float("inf")
        return max(self._closed_until - now, self.requests.wait(1, now), self.tokens.wait(tokens, now), 0.0)

    def _grant(self, tokens: float) -> Lease:
        self.in_flight += 1
        self._peak = max(self._peak, self.in_flight)
        self.requests.take(1)
        self.tokens.take(tokens)
        return Lease(tokens, self._clock())

    def _end(self) -> None:
        self.in_flight -= 1
        if self._waiters:
            self._pump()

    def _pump(self) -> None:
        """Start the waiting requests that may be sent, in order of arrival, and wake up for the next one."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiters:
            tokens, waiter = self._waiters[0]
            if waiter.done():
                self._waiters.popleft()
                continue
            wait = self._wait(tokens)
            if wait:
                if wait != float("inf"):
                    self._timer = asyncio.get_running_loop().call_later(wait, self._pump)
                return
            self._waiters.popleft()
            waiter.set_result(self._grant(tokens))

    def _decrease(self, factor: float, now: float) -> None:
        self.limit = max(self.limit * factor, 1.0)
        self._decreased_at = now
        self._growing = False
        self._round.clear()

    def _end_round(self, now: float) -> None:
        typical, rate = median(self._round), len(self._round) / max(now - self._round_began, 1e-6)
        self._round.clear()
        self._overloads = 0
        self._round_began = now
        self._best = typical if self._best is None else min(self._best * 1.01, typical)
        usual = self._usual = typical if self._usual is None else self._usual + 0.1 * (typical - self._usual)
        reached, self._peak = self._peak >= int(self.limit), 0
        if typical > SLOW * usual:
            self._decrease(0.9, now)
        elif not reached:
            return  # then the limit says nothing
        elif typical <= SLOW * self._best or rate > 1.1 * self._grown_rate:
            self._grown_rate = rate
            self.limit = min(self.limit * 2 if self._growing else self.limit + 1, float(self.ceiling))
        else:
            self._growing = False


def limit_headers(headers: Mapping[str, str]) -> tuple[tuple[str, str, str], ...]:
    """Return the names of the headers that say what is left of a limit, when it is reset, and the limit itself."""
    names = [name for name in headers if "ratelimit" in name and "remaining" in name]
    return tuple((name, name.replace("remaining", "reset"), name.replace("remaining", "limit")) for name in names)


def read_reset(text: str, now: datetime | None = None) -> float | None:
    """Return the seconds until a reset: a span (`1s`, `6m0s`, `120ms`), seconds, a time, or milliseconds since 1970."""
    now = now or datetime.now(UTC)
    if spans := _SPAN.findall(text):
        return sum(float(number) * _UNITS[unit] for number, unit in spans)
    try:
        number = float(text)
    except ValueError:
        try:
            return max((datetime.fromisoformat(text) - now).total_seconds(), 0.0)
        except (ValueError, TypeError):
            return None
    if number > 1e12:
        return max(number / 1000 - now.timestamp(), 0.0)
    return number if number < 1e9 else max(number - now.timestamp(), 0.0)
