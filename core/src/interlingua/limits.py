"""Limits of one's own: the requests that are under way, and the requests and tokens of a minute, for each model.

A client has one `ModelLimiter` for each model that it asks. Requests wait in the order in which they came, over all its
threads, tasks and event loops. `Bucket` and the reader of a service's limit headers serve bulk runs, too.
"""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import attrs

from interlingua.errors import CallerError

__all__ = ["Bucket", "ClientLimits", "ModelLimiter", "Turn", "read_reset", "used_up_for"]

_LONGEST_RESET = 120.0  # seconds; a longer limit, such as a day's, is left to the refusals of the service
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def _above_zero(_limits: object, field: attrs.Attribute[Any], value: Any) -> None:
    kinds = int if field.name == "concurrency" else (int, float)
    if value is not None and (isinstance(value, bool) or not isinstance(value, kinds) or not value > 0):
        what = "a whole number from 1" if kinds is int else "a number above 0"
        raise CallerError(f"{field.name} must be {what}, or None for no limit, not {value!r}")


@attrs.frozen
class ClientLimits:
    """The limits of a client for each model; None for no limit.

    Attributes:
        concurrency: most requests under way; a stream is under way until it is closed.
        requests_per_minute: sent evenly: 120 a minute are 2 a second.
        tokens_per_minute: input and output. A request counts with an estimate (its size and `max_tokens`) until its
            answer reports the usage.
    """

    concurrency: int | None = attrs.field(default=None, validator=_above_zero)
    requests_per_minute: float | None = attrs.field(default=None, validator=_above_zero)
    tokens_per_minute: float | None = attrs.field(default=None, validator=_above_zero)


class Bucket:
    """A rate with continuous refill; holds at most what `burst_s` seconds bring, and one request at least.

    Args:
        per_minute: the rate; without one, no limit.
        now: seconds, monotonic.
        burst_s: seconds of the rate that may be taken at once: a limit of 60 a minute may be held as one a second.
    """

    __slots__ = ("_at", "capacity", "level", "rate")

    def __init__(self, per_minute: float | None, now: float, burst_s: float = 1.0) -> None:
        self.rate = None if per_minute is None else per_minute / 60.0
        self.capacity = 0.0 if self.rate is None else max(self.rate * burst_s, 1.0)
        self.level = self.capacity
        self._at = now

    def wait(self, amount: float, now: float) -> float:
        """Return the seconds until this amount is available; for more than the bucket holds, until it is full."""
        if self.rate is None:
            return 0.0
        self.level = min(self.capacity, self.level + (now - self._at) * self.rate)
        self._at = now
        missing = min(amount, self.capacity) - self.level
        return missing / self.rate if missing > 1e-9 else 0.0

    def take(self, amount: float) -> None:
        """Take an amount; the level may fall below 0, for example after a request that was larger than estimated."""
        if self.rate is not None:
            self.level -= amount


@attrs.define(eq=False)
class Turn:
    """A request that may be sent at a time, in seconds of the limiter's clock, and its estimated tokens."""

    tokens: float
    at: float = 0.0
    waiting: Any = None  # in the queue: what its thread or task waits by (`BlockingIO.waiting`)


class ModelLimiter:
    """Holds the limits of one model; safe for use from several threads and event loops.

    Args:
        limits: the limits.
        clock: seconds, monotonic.
    """

    def __init__(self, limits: ClientLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits, self._clock = limits, clock
        self._lock = threading.Lock()
        self._open = 0
        self._queue: deque[Turn] = deque()
        self._closed_until = 0.0
        now = clock()
        self._requests = Bucket(limits.requests_per_minute, now)
        self._tokens = Bucket(limits.tokens_per_minute, now, burst_s=5.0)

    async def acquire(self, io: Any, tokens: float = 0.0) -> Turn:
        """Wait until a request may be sent.

        Args:
            io: waits; as the clients do it.
            tokens: estimate of the tokens that the request takes of the rate.
        """
        turn = Turn(tokens)
        with self._lock:
            if self._is_full() or self._queue:
                turn.waiting = io.waiting()
                self._queue.append(turn)
            else:
                self._grant(turn)
        try:
            if turn.waiting is not None:
                await turn.waiting.wait()
            while (wait := max(turn.at, self._closed_until) - self._clock()) > 0:
                await io.sleep(wait)
        except BaseException:
            with self._lock:
                waits = turn in self._queue
                if waits:
                    self._queue.remove(turn)
            if not waits:
                self.release(turn, 0.0)
            raise
        return turn

    def release(self, turn: Turn, tokens: float | None = None) -> None:
        """End a request, and let the next one go.

        Args:
            turn: the turn that `acquire` returned.
            tokens: the tokens that it took of the rate; None leaves the estimate.
        """
        with self._lock:
            self._open -= 1
            if tokens is not None:
                self._tokens.take(tokens - turn.tokens)
            while self._queue and not self._is_full():
                following = self._queue.popleft()
                self._grant(following)
                if following.waiting is not None:
                    try:
                        following.waiting.wake()
                    except RuntimeError:  # its event loop was closed
                        self._open -= 1

    def note_headers(self, headers: Mapping[str, str]) -> None:
        """Send nothing more until the reset if an answer's headers report that a limit is used up."""
        if seconds := used_up_for(headers):
            self._closed_until = max(self._closed_until, self._clock() + seconds)

    def _is_full(self) -> bool:
        return self.limits.concurrency is not None and self._open >= self.limits.concurrency

    def _grant(self, turn: Turn) -> None:
        """Reserve the time at which a request is sent, behind those that were granted before it."""
        now = self._clock()
        self._open += 1
        turn.at = now + max(self._requests.wait(1, now), self._tokens.wait(turn.tokens, now))
        self._requests.take(1)
        self._tokens.take(turn.tokens)


def used_up_for(headers: Mapping[str, str]) -> float:
    """Return the seconds until the reset of limits that an answer's headers report as used up, or 0.

    Services send `…ratelimit…remaining…`, and the same name with `reset` and `limit`. A reset after 120 s is ignored.
    """
    longest = 0.0
    for name in headers:
        if "ratelimit" not in name or "remaining" not in name or headers[name] != "0":
            continue
        reset = headers.get(name.replace("remaining", "reset"))
        limit = headers.get(name.replace("remaining", "limit"), "1")
        seconds = read_reset(reset) if reset and limit.lstrip("-0") else None
        if seconds is not None and seconds <= _LONGEST_RESET:
            longest = max(longest, seconds)
    return longest


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
