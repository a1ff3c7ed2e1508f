"""The pace of requests: an adaptive limit on open requests, rates, and the pauses that a service asks for."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from itertools import islice
from random import random
from statistics import median

import attrs

from interlingua.limits import used_up_for
from interlingua_bulk.rate import LEAST_REFUSED, LEAST_SAMPLES, AcceptedRate, LeasedBucket

FIRST = 8  # requests under way at the start: services refuse a rise that is too steep
OPENED = 64  # requests under way before the first answer, if few are refused
_OPENING_S = 0.1  # in which a refusal would have come; then twice as many are sent, up to `OPENED`
SLOW = 2.0  # times the best median time per output token from which on the service counts as overloaded
_NEWEST = 8  # requests that show whether nearly all are refused
_LEAST_CLOSED = 5  # fewer refusals, though all are refused, may be chance
_PAUSE_S = 0.5  # the first of the doubling pauses, if the service names none
_EQUAL_PAUSES = 3  # of one row, before they double: the rate is limited for all rows together
_LONGEST_PAUSE_S = 15.0
_PROBE_S = 1.0  # a request not refused until then is accepted: refusals come at once, answers may take minutes


@attrs.define(eq=False)
class Lease:
    """A request that may be sent now.

    Attributes:
        tokens: estimate of the tokens that it takes of the rate.
        started: when, in seconds of the pace's clock.
        refused: the service refused it.
    """

    tokens: float
    started: float
    refused: bool = False


class Pace:
    """Decides when the next request to one model is sent. For one event loop.

    Two limits hold. The number of requests under way starts small; it doubles to 64 while few are refused, and then
    grows with each answer, until answers get slow. The rate is free until the service refuses too many
    (`AcceptedRate`).

    A single refusal makes only its own row wait. When nearly all requests are refused nothing is sent until the service
    takes requests again; one request tries first.

    Answers that are slow beside the quickest leave the number under way unchanged, unless more of them arrive; those
    that are slow beside the usual ones take it to 0.9.

    Args:
        ceiling: most requests under way.
        requests_per_minute: None for no limit but the service's own.
        tokens_per_minute: input and output together; no limit if missing.
        clock: seconds, monotonic.
        random: from 0 to 1, to spread load.
    """

    def __init__(
        self,
        ceiling: int,
        *,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = random,
    ) -> None:
        self.ceiling = ceiling
        self.limit = float(min(FIRST, ceiling))
        self.in_flight = 0
        self.refusals = 0
        self._clock = clock
        self._random = random
        now = clock()
        self.requests = LeasedBucket(requests_per_minute, now)
        self.tokens = LeasedBucket(tokens_per_minute, now, burst_s=5.0)
        self._growing = True  # until the first sign of load
        self._opening = True  # until many are refused, or answers get slow
        self._filled_at = now  # when the newest request was sent
        self._round: list[float] = []
        self._round_began = now
        self._round_limit = int(self.limit)  # when this round began
        self._peak = 0  # most under way in this round
        self._best: float | None = None  # seconds per output token: the least, and the average of late
        self._usual: float | None = None
        self._grown_rate = 0.0  # answers a second when the limit grew last

        self._accepted = AcceptedRate(now)
        self._newest: deque[Lease] = deque(maxlen=1024)
        self._taken = 0  # requests that were sent and not refused
        self._opened = (now, 0)  # when the service began to accept requests, and `_taken` then
        self._closed_until = 0.0
        self._closings = 0  # one after the other, nothing accepted between
        self._probing = False  # the next request is the probe
        self._probe: Lease | None = None
        self._waiters: deque[tuple[float, asyncio.Future[Lease]]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def rate(self) -> float | None:
        """The requests a second that the service accepts; None until it has refused too many."""
        return self._accepted.per_second

    @property
    def soon(self) -> int:
        """How many requests may be under way before another answer."""
        return max(int(self.limit), min(OPENED, self.ceiling) if self._opening else 1)

    async def acquire(self, tokens: float = 0.0, *, again: bool = False) -> Lease:
        """Wait until a request may be sent.

        Args:
            tokens: estimate of the tokens that it takes of the rate.
            again: it was sent before, and goes before those that were not: rows that fail often would end a run late.
        """
        if not self._waiters and not self._wait(tokens):
            return self._grant(tokens)
        waiter: asyncio.Future[Lease] = asyncio.get_running_loop().create_future()
        (self._waiters.appendleft if again else self._waiters.append)((tokens, waiter))
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
            lease: lease of the request.
            tokens: the tokens that it took of the rate; None leaves the estimate.
            output_tokens: tokens of the answer: a long answer takes long without any load.
        """
        now = self._clock()
        if tokens is not None:
            self.tokens.take(tokens - lease.tokens)
        if lease is self._probe:
            self._open(now)
        self._round.append((now - lease.started) / max(output_tokens or 1, 1))
        if self._growing and self._peak >= self._round_limit:
            self.limit = min(self.limit + 1, float(self.ceiling))
        if len(self._round) >= max(self._round_limit, LEAST_SAMPLES):
            self._end_round(now)
        self._end()

    def refuse(self, lease: Lease, wait_s: float | None, tries: int = 1) -> float:
        """Record a refusal for too many requests or for lack of capacity -> seconds until this one may be sent again.

        Args:
            lease: lease of the request that was refused.
            wait_s: the wait that the service asked for; None if it named no wait.
            tries: how often this request was refused so far.
        """
        now = self._clock()
        self.refusals += 1
        self._taken -= 1
        lease.refused = True
        self._accepted.refuse(lease.started)
        self._opening = self._opening and not self._accepted.is_refused
        if lease is self._probe or self._all_refused(lease):
            self._close(lease, now, wait_s)
        else:
            self._accepted.judge(now)
        if wait_s is None:
            wait_s = min(_PAUSE_S * 2.0 ** max(tries - _EQUAL_PAUSES, 0), _LONGEST_PAUSE_S)
        self._end()
        return max(self._closed_until - now, self._spread(wait_s))

    def fail(self, lease: Lease) -> None:
        """Record a request that ended in any other way."""
        if lease is self._probe:
            self._open(self._clock())
        self._end()

    def close_for(self, seconds: float) -> float:
        """Send nothing for this many seconds, and return until when, in seconds of the pace's clock."""
        self._closed_until = max(self._closed_until, self._clock() + seconds)
        return self._closed_until

    @property
    def closed_for(self) -> float:
        """The seconds until anything is sent again."""
        return max(self._closed_until - self._clock(), 0.0)

    def own_pause(self, shared: float | None) -> float:
        """Return `closed_for`, or 0 if the pause is the shared one, which ends at this time."""
        return 0.0 if self._closed_until == shared else self.closed_for

    def wake(self) -> None:
        """Check again whether a request may be sent."""
        self._pump()

    def note_headers(self, headers: Mapping[str, str]) -> None:
        """Pause until the reset if an answer's headers report that a limit is used up."""
        if seconds := used_up_for(headers):
            self.close_for(seconds)

    # -- when the next request may go ---------------------------------------------------------------------------

    def _wait(self, tokens: float) -> float:
        """Return the seconds until a request may be sent; infinity if another request must end first."""
        now = self._clock()
        if self._probe is not None:  # refusals come at once, answers may take minutes
            if now < self._probe.started + _PROBE_S:
                return self._probe.started + _PROBE_S - now
            self._open(now)
        if self.in_flight >= max(int(self.limit), 1) and (wait := self._until_wider(now)):
            return wait
        buckets = self.requests.wait(1, now), self.tokens.wait(tokens, now), self._accepted.bucket.wait(1, now)
        return max(self._closed_until - now, *buckets, 0.0)

    def _until_wider(self, now: float) -> float:
        """Return the seconds until more requests may be under way although none ends; infinity if none may."""
        if self.limit >= self.soon:
            return float("inf")
        if now < self._filled_at + _OPENING_S:
            return self._filled_at + _OPENING_S - now
        self.limit = min(2 * self.limit, float(self.soon))
        return 0.0

    def _grant(self, tokens: float) -> Lease:
        lease = Lease(tokens, self._clock())
        self.in_flight += 1
        self._filled_at = lease.started
        self._peak = max(self._peak, self.in_flight)
        self.requests.take(1)
        self.tokens.take(tokens)
        self._accepted.send()
        self._newest.append(lease)
        self._taken += 1
        if self._probing:
            self._probe, self._probing = lease, False
        else:
            self._accepted.judge(lease.started)
        return lease

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

    # -- when nearly all are refused -------------------------------------------------------------------------------

    def _close(self, lease: Lease, now: float, wait_s: float | None) -> None:
        """Send nothing for a time, since nothing is accepted, and then one request first."""
        closed = self._probing or self._probe is not None
        if not closed or lease is self._probe:
            self._closings += 1
            self._probing, self._probe = True, None
            if not wait_s:  # a service that refuses all and asks for no wait would be asked without end
                wait_s = min(_PAUSE_S * 2.0 ** (self._closings - 1), _LONGEST_PAUSE_S)
        self._closed_until = max(self._closed_until, now + self._spread(wait_s or 0.0))

    def _all_refused(self, lease: Lease) -> bool:
        """Return True if nearly all of the requests that were sent just before this one were refused, too."""
        before = (each.refused for each in reversed(self._newest) if each.started <= lease.started)
        newest = list(islice(before, _NEWEST))
        least = _LEAST_CLOSED if self._taken > self._opened[1] else LEAST_REFUSED
        return sum(newest) >= max(least, 0.9 * len(newest))

    def _open(self, now: float) -> None:
        """Go on at the rate at which the service accepted requests, the pause included."""
        seconds = (now if self._probe is None else self._probe.started) - self._opened[0]
        self._accepted.start(self._taken - self._opened[1], max(seconds, 0.1), now)
        self._probe, self._closings = None, 0
        self._opened = (now, self._taken)
        self._newest.clear()

    def _spread(self, seconds: float) -> float:
        return seconds * (1 + 0.1 * self._random())

    # -- the number under way, by the time that answers take ----------------------------------------------------

    def _decrease(self, factor: float, now: float) -> None:
        self.limit = max(self.limit * factor, 1.0)
        self._growing = self._opening = False
        self._round.clear()

    def _end_round(self, now: float) -> None:
        typical, rate = median(self._round), len(self._round) / max(now - self._round_began, 1e-6)
        self._round.clear()
        self._round_began = now
        self._best = typical if self._best is None else min(self._best * 1.01, typical)
        usual = self._usual = typical if self._usual is None else self._usual + 0.1 * (typical - self._usual)
        reached, self._peak = self._peak >= self._round_limit, 0
        if typical > SLOW * usual:
            self._decrease(0.9, now)
        elif not reached:
            pass  # then the limit says nothing
        elif typical <= SLOW * self._best or rate > 1.1 * self._grown_rate:
            self._grown_rate = rate
            if not self._growing:
                self.limit = min(self.limit + max(1.0, self.limit / 16), float(self.ceiling))
        else:
            self._growing = False
        self._round_limit = int(self.limit)
