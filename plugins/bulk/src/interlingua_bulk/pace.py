"""The pace of requests: an adaptive limit on open requests, rates, and the pauses that a service asks for."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from itertools import islice
from math import log
from random import random
from statistics import median

import attrs

from interlingua.limits import Bucket, used_up_for

FIRST = 8  # requests under way at the start: services refuse a rise that is too steep
SLOW = 2.0  # times the best median time per output token from which on the service counts as overloaded
LEAST_SAMPLES = 16
LEAST_REFUSED = 3  # fewer refusals say nothing
_LEAST_CLOSED = 5  # fewer refusals, though all are refused, may be chance
_TOLERATED = 0.01  # the share of refusals may exceed the usual share by so much
_TOLERATED_FIRST = 0.1  # while the number under way doubles
_LOWER = 0.9  # of the accepted rate, after too many refusals: surely low enough
_MOST_USUAL = 0.3  # a larger share has a cause
_DEVIATIONS = 3  # of a share from its usual value, that chance may explain
_SURE = 3.0  # e to this power: how much likelier one of two explanations of the refusals has to be
_MOST_OVER = 0.55  # where requests are counted one by one, half of them are refused just above the rate
_CALM = 4  # spans without a change of the rate before it grows
_LEAST_RATE = 0.2  # requests a second; a service that accepts fewer refuses the others
_SPAN_S = 5.0  # seconds after which a rate at which nothing is refused is judged
_SPAN_SENT = 64  # requests by which a rate is judged
_PAUSE_S = 0.5  # the first of the doubling pauses, if the service names none
_EQUAL_PAUSES = 3  # of one row, before they double: the rate is limited for all rows together
_LONGEST_PAUSE_S = 15.0
_PROBE_S = 1.0  # a request not refused until then is accepted: refusals come at once, answers may take minutes
_LEASE_WAIT_S = 1.0  # a lease wakes the pace up earlier


class LeasedBucket(Bucket):
    """A bucket whose rate may change, and whose amounts may be leased from a bucket that several nodes share."""

    __slots__ = ("_leased",)

    def __init__(self, per_minute: float | None, now: float, burst_s: float = 1.0) -> None:
        super().__init__(per_minute, now, burst_s)
        self._leased = False

    def begin_lease(self, seconds: float) -> None:
        """Replace the measured rate by the passed one.

        Args:
            seconds: until more is asked for; so much of the rate is kept at most, twice.
        """
        if self.rate is not None:
            self._leased = True
            self.level, self.capacity = 0.0, max(self.rate * seconds * 2, 1.0)

    def set_rate(self, per_second: float, now: float, burst_s: float) -> None:
        """Change the rate; what was taken or is left stays so, within the new capacity."""
        self.wait(0, now)
        self.level = 0.0 if self.rate is None else self.level
        self.rate, self.capacity, self._at = per_second, max(per_second * burst_s, 1.0), now
        self.level = min(self.level, self.capacity)

    def wanted(self) -> float:
        """Return the amount that still fits."""
        return 0.0 if self.rate is None else max(self.capacity - self.level, 0.0)

    def wait(self, amount: float, now: float) -> float:
        """Return the seconds until this amount is available; for more than the bucket holds, until it is full."""
        if self._leased:
            return 0.0 if self.level >= min(amount, self.capacity) else _LEASE_WAIT_S
        return super().wait(amount, now)


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


@attrs.define
class _Span:
    """Count of the requests that were sent at one rate, and of those refused."""

    began: float
    sent: int = 0
    refused: int = 0


@attrs.define
class _Signal:
    """Too many refusals in a span: the limit on the rate then, the rate itself, and what was sent and refused.

    And what was sent and refused since, at lower rates.
    """

    limit: float | None
    rate: float
    sent: int
    refused: int
    usual: float  # the share that was refused before
    lower_sent: int = 0
    lower_refused: int = 0

    @property
    def share(self) -> float:
        return self.refused / self.sent

    def evidence(self, span: _Span | None = None) -> float:
        """Return how much likelier this share is than the usual one, after what was refused at lower rates.

        The logarithm of the ratio: above 0, the lower rate did not help.
        """
        sent = self.lower_sent + (span.sent if span else 0)
        refused = self.lower_refused + (span.refused if span else 0)
        least = self.share - (self.share * (1 - self.share) / self.sent) ** 0.5
        same = min(max(least, 0.5 * self.share), 0.95)
        few = min(max(self.usual, 0.02, self.share / 3), 0.6 * same)
        return refused * log(same / few) + (sent - refused) * log((1 - same) / (1 - few))

    def add(self, span: _Span) -> None:
        """Add a span at a lower rate."""
        self.lower_sent += span.sent
        self.lower_refused += span.refused


class Pace:
    """Decides when the next request to one model is sent. For one event loop.

    Two limits hold. The number of requests under way starts small and grows with each answer, until answers get slow.
    The rate is free until the service refuses too many; then it is the rate at which the service accepted
    requests, which grows slowly, and faster while nothing is refused. Refusals that do not become fewer at a lower rate
    have nothing to do with it: their share is the usual one, and only a larger share lowers the rate.

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
        self._decreased_at = -1.0
        self._round: list[float] = []
        self._round_began = now
        self._round_limit = int(self.limit)  # when this round began
        self._peak = 0  # most under way in this round
        self._best: float | None = None  # seconds per output token: the least, and the average of late
        self._usual: float | None = None
        self._grown_rate = 0.0  # answers a second when the limit grew last

        self._accepted = LeasedBucket(None, now)  # the rate that the service accepts, once it has refused too many
        self._usual_share = 0.0  # of the requests, refused at any rate
        self._span = _Span(now)
        self._signal: _Signal | None = None
        self._doubt: _Signal | None = None  # after which a lower rate seemed to help
        self._calm = 0  # spans since the last signal
        self._calm_rate = 0.0  # the last rate at which few were refused, until it is tried again
        self._seeking = True  # the rate doubles until the first refusals at it
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
        return self._accepted.rate

    async def acquire(self, tokens: float = 0.0) -> Lease:
        """Wait until a request may be sent.

        Args:
            tokens: estimate of the tokens that it takes of the rate.
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
        if lease.started >= self._span.began:
            self._span.refused += 1
        if lease is self._probe or self._all_refused(lease):
            self._close(lease, now, wait_s)
        else:
            self._judge_rate(now)
        if wait_s is None:
            wait_s = min(_PAUSE_S * 2.0 ** max(tries - _EQUAL_PAUSES, 0), _LONGEST_PAUSE_S)
        self._end()
        return max(self._closed_until - now, self._spread(wait_s))

    def fail(self, lease: Lease) -> None:
        """Record a request that ended in any other way."""
        if lease is self._probe:
            self._open(self._clock())
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
        if self.in_flight >= max(int(self.limit), 1):
            return float("inf")
        buckets = self.requests.wait(1, now), self.tokens.wait(tokens, now), self._accepted.wait(1, now)
        return max(self._closed_until - now, *buckets, 0.0)

    def _grant(self, tokens: float) -> Lease:
        lease = Lease(tokens, self._clock())
        self.in_flight += 1
        self._peak = max(self._peak, self.in_flight)
        for bucket, amount in ((self.requests, 1), (self.tokens, tokens), (self._accepted, 1)):
            bucket.take(amount)
        self._newest.append(lease)
        self._taken += 1
        self._span.sent += 1
        if self._probing:
            self._probe, self._probing = lease, False
        else:
            self._judge_rate(lease.started)
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

    # -- the rate, by refusals ----------------------------------------------------------------------------------

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
        newest = list(islice(before, LEAST_SAMPLES))
        least = _LEAST_CLOSED if self._taken > self._opened[1] else LEAST_REFUSED
        return sum(newest) >= max(least, 0.9 * len(newest))

    def _open(self, now: float) -> None:
        """Go on at the rate at which the service accepted requests, the pause included."""
        began, before = self._opened
        self._probe, self._closings = None, 0
        self._opened = (now, self._taken)
        self._newest.clear()
        self._calm, self._signal, self._doubt = 0, None, None
        self._seeking = self._seeking and self.rate is None
        self._set_rate(max(self._taken - before, 1) / max(now - began, 0.1), now)

    def _judge_rate(self, now: float) -> None:
        """Change the rate by the share of requests that was refused at it."""
        span, usual = self._span, self._usual_share
        seconds = now - span.began
        few = self._seeking or (seconds >= _SPAN_S and not span.refused)  # a very low rate grows, too
        early = seconds < (0.25 if span.refused >= LEAST_SAMPLES else 1)
        if early or span.sent < (1 if few else LEAST_SAMPLES):
            return
        share, rate = span.refused / span.sent, span.sent / seconds
        likely = usual + 2 * (usual / span.sent) ** 0.5 + (_TOLERATED if self.rate else _TOLERATED_FIRST)
        signal = self._signal
        if span.sent < (_SPAN_SENT if signal is None else 2 * _SPAN_SENT) and self._is_unsure(span, likely):
            return
        self._span, self._signal = _Span(now), None
        if self._doubt is not None and self._is_refuted(self._doubt, span, rate, now):
            return
        if signal is not None and share < _MOST_USUAL:
            signal.add(span)
            self._learn_usual_share(signal, now)
            return
        if span.refused >= LEAST_REFUSED and share > likely:
            self._signal = _Signal(self.rate, rate, span.sent, span.refused, usual)
            self._set_rate(_LOWER * rate * (1 - share), now)
            return
        self._calm += 1
        self._calm_rate = rate
        if self.rate is not None and span.sent + 1 > 0.9 * self.rate * seconds:
            if self._seeking:
                self._set_rate(2 * self.rate, now)
            elif self._calm > _CALM:
                self._set_rate(self.rate * (1 + min(0.01 * 1.5 ** (self._calm - _CALM), 1.0)), now)

    def _is_unsure(self, span: _Span, likely: float) -> bool:
        """Return True if chance may explain that many refusals, or what a lower rate seems to have changed."""
        share = span.refused / span.sent
        deviation = (share * (1 - share) / span.sent) ** 0.5
        if self._signal is None or share >= _MOST_USUAL:
            most = likely if self._signal is None else _MOST_USUAL
            return span.refused >= LEAST_REFUSED and most < share < most + _DEVIATIONS * deviation
        return abs(self._signal.evidence(span)) < _SURE

    def _is_refuted(self, doubt: _Signal, span: _Span, rate: float, now: float) -> bool:
        """Return True, and allow the rate again, if a longer time shows that lower rates did not help."""
        doubt.add(span)
        evidence = doubt.evidence()
        if evidence > _SURE:
            self._allow(doubt, now)
            return True
        if evidence < -3 * _SURE or rate > doubt.rate:
            self._doubt = None
        return False

    def _allow(self, signal: _Signal, now: float) -> None:
        """Allow the rate of a signal again: its share of refusals is the usual one."""
        self._usual_share = (signal.refused + signal.lower_refused) / (signal.sent + signal.lower_sent)
        self._doubt, self._accepted.rate = None, None
        if signal.limit is not None:
            self._set_rate(signal.limit, now)

    def _learn_usual_share(self, signal: _Signal, now: float) -> None:
        """Set the rate after too many refusals, by the share that was refused at a rate that is surely low enough."""
        if signal.evidence() > 0:
            is_doubtful = self._doubt is not None and self._doubt.evidence() > -_SURE
            self._allow(self._doubt if self._doubt is not None and is_doubtful else signal, now)
            return
        self._usual_share = share = signal.lower_refused / signal.lower_sent
        self._doubt = self._doubt or signal
        self._seeking = self._seeking and signal.limit is None
        self._calm = 0
        tried, self._calm_rate = self._calm_rate if signal.share < _MOST_OVER else 0.0, 0.0
        accepted = signal.rate * (1 - signal.share) / (1 - share)
        self._set_rate(0.98 * (tried if accepted < 0.8 * tried else accepted), now)

    def _set_rate(self, per_second: float, now: float) -> None:
        self._accepted.set_rate(max(per_second, _LEAST_RATE), now, burst_s=0.1)
        self._span = _Span(now)

    def _spread(self, seconds: float) -> float:
        return seconds * (1 + 0.1 * self._random())

    # -- the number under way, by the time that answers take ----------------------------------------------------

    def _decrease(self, factor: float, now: float) -> None:
        self.limit = max(self.limit * factor, 1.0)
        self._decreased_at = now
        self._growing = False
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
