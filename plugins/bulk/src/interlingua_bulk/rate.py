"""The rate of requests that a service accepts, by the share that it refuses; and buckets whose rate changes."""

from __future__ import annotations

from math import log

import attrs

from interlingua.limits import Bucket

LEAST_SAMPLES = 16
LEAST_REFUSED = 3  # fewer refusals say nothing
_TOLERATED = 0.01  # the share of refusals may exceed the usual share by so much
_TOLERATED_FIRST = 0.1  # while the number under way doubles
_LOWER = 0.9  # of the accepted rate, after too many refusals: surely low enough
_LARGE = 0.1  # a larger share of refusals at a lower rate may have to do with it
_MOST_USUAL = 0.3  # a larger share has a cause
_DEVIATIONS = 3  # of a share from its usual value, that chance may explain
_SURE = 3.0  # e to this power: how much likelier one of two explanations of the refusals has to be
_MOST_OVER = 0.55  # where requests are counted one by one, half of them are refused just above the rate
_CALM = 4  # spans at a rate before it grows
_CALM_SENT = 16  # requests before it grows, for each of those spans: a try costs several refusals
_MOST_PATIENCE = 12  # spans at a rate before it grows, after many signals at about the same rate
_FASTEST = 0.25  # growth of the rate in a span: services refuse a rise that is too steep
_LEAST_SENT = 10  # fewer requests do not tell whether too many are refused
_LONG_S = 30.0  # a rate measured for longer is known
_FEW_TAKEN = 64  # requests; the rate at which so few were accepted may be far from what the service accepts
_LEAST_RATE = 0.2  # requests a second; a service that accepts fewer refuses the others
_SPAN_S = 5.0  # seconds after which a rate at which nothing is refused is judged
_SPAN_SENT = 64  # requests by which a rate is judged
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

    def is_load(self, span: _Span) -> bool:
        """Return True if the many refusals at a lower rate have to do with it, since it changed their share.

        More are refused at a lower rate if the service had accepted the higher one for a time.
        """
        share = span.refused / span.sent
        more = share - self.share > _DEVIATIONS * (share * (1 - share) / span.sent) ** 0.5
        return share > _LARGE and (more or (self.share > 1.5 * share and self.evidence() < 0))

    def add(self, span: _Span) -> None:
        """Add a span at a lower rate."""
        self.lower_sent += span.sent
        self.lower_refused += span.refused


class AcceptedRate:
    """The rate of requests that a service accepts; free until it has refused too many.

    Then it is the rate at which the service accepted requests. It is held for a time, the longer the more often the
    service refused what is above it, and then grows slowly, and faster while nothing is refused.

    A lower rate shows whether the refusals have to do with it. Those that do not become fewer are refused by chance:
    their share is the usual one, and only a larger share lowers the rate.

    Args:
        now: seconds, monotonic.

    Attributes:
        bucket: holds the rate.
    """

    def __init__(self, now: float) -> None:
        self.bucket = LeasedBucket(None, now)
        self._usual_share = 0.0  # of the requests, refused at any rate
        self._span = _Span(now)
        self._signal: _Signal | None = None
        self._doubt: _Signal | None = None  # after which a lower rate seemed to help
        self._seeking = True  # the rate doubles until the first refusals at it
        self._target = 0.0  # below this rate it grows at once
        self._calm = self._calm_sent = 0  # spans since the last signal, and the requests in them
        self._calm_rate = 0.0  # the last rate at which few were refused, until it is tried again
        self._patience = _CALM  # spans until the rate grows
        self._ceiling = 0.0  # the rate of the last signal
        self._held = 0.0  # the rate before it grew, while it grows
        self._grown = 0  # spans in which it grew

    @property
    def per_second(self) -> float | None:
        """Requests a second; None for no limit."""
        return self.bucket.rate

    @property
    def is_refused(self) -> bool:
        """Whether the service refuses a large share of the newest requests."""
        return self._span.refused >= max(LEAST_REFUSED, _MOST_USUAL * self._span.sent)

    def send(self) -> None:
        """Count a request."""
        self.bucket.take(1)
        self._span.sent += 1

    def refuse(self, started: float) -> None:
        """Count a refusal of a request that was sent at this time."""
        if started >= self._span.began:
            self._span.refused += 1

    def start(self, taken: int, seconds: float, now: float) -> None:
        """Begin again after the service refused everything.

        Args:
            taken: requests that it accepted since the last time.
            seconds: since then, the pause included.
            now: seconds, monotonic.
        """
        rate = max(taken, 1) / seconds
        self._signal, self._doubt, self._target = None, None, 0.0
        self._seeking = taken < _FEW_TAKEN or (self._seeking and self.per_second is None and seconds < _LONG_S)
        self._wait_for_growth(rate)
        self._set_rate(rate, now)

    def judge(self, now: float) -> None:
        """Change the rate by the share of requests that was refused at it."""
        span, usual = self._span, self._usual_share
        seconds = now - span.began
        few = self._seeking or (seconds >= _SPAN_S and not span.refused)  # a very low rate grows, too
        early = seconds < (0.25 if span.refused >= LEAST_SAMPLES else 1)
        if early or span.sent < (1 if few else _LEAST_SENT):
            return
        share, rate = span.refused / span.sent, span.sent / seconds
        likely = usual + 2 * (usual / span.sent) ** 0.5 + (_TOLERATED if self.per_second else _TOLERATED_FIRST)
        signal = self._signal
        if span.sent < (_SPAN_SENT if signal is None else 2 * _SPAN_SENT) and self._is_unsure(span, likely):
            return
        self._span, self._signal = _Span(now), None
        if self._doubt is not None and self._is_refuted(self._doubt, span, rate, now):
            return
        is_over = span.refused >= LEAST_REFUSED and share > likely
        if signal is not None and share < _MOST_USUAL:
            signal.add(span)
            if not (is_over and (signal.is_load(span) or 0 < self._held < rate)):
                self._learn_usual_share(signal, now)
                return
        if is_over:
            self._lower(span, rate, signal is None, now)
            return
        self._calm += 1
        self._calm_sent += span.sent
        self._calm_rate = rate
        if self.per_second is not None and span.sent + 1 > 0.9 * self.per_second * seconds:
            self._grow(self.per_second, now)

    def _lower(self, span: _Span, rate: float, is_first: bool, now: float) -> None:
        """Try a rate that is surely low enough, after too many refusals."""
        if self._usual_share > _LARGE:  # perhaps it was learned at two rates that were both too high
            self._usual_share = 0.0
        signal = self._signal = _Signal(self.per_second, rate, span.sent, span.refused, self._usual_share)
        accepted = rate * (1 - signal.share)
        if is_first:
            accepted = min(accepted, max(self._calm_rate, 0.8 * accepted))
        elif self._held:
            accepted = min(accepted, self._held)
        self._set_rate(_LOWER * (self._tried(signal) or accepted), now)

    def _grow(self, rate: float, now: float) -> None:
        """Raise the rate, if it was held for long enough."""
        if self._seeking:
            self._set_rate(2 * rate, now)
        elif rate < self._target:
            self._set_rate(min(rate * (1 + _FASTEST), self._target), now)
        elif self._calm > self._patience and self._calm_sent > _CALM_SENT * self._patience:
            self._held = self._held or rate
            self._grown += 1
            self._set_rate(rate * (1 + min(0.01 * 1.5**self._grown, _FASTEST)), now)

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
        self._doubt, self.bucket.rate = None, None
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
        self._wait_for_growth(signal.rate)
        accepted = self._tried(signal) or signal.rate * (1 - signal.share) / (1 - share)
        self._calm_rate = 0.0
        self._target = 0.85 * signal.rate if _MOST_USUAL < signal.share < _MOST_OVER else 0.0
        self._set_rate(0.98 * accepted, now)

    def _tried(self, signal: _Signal) -> float:
        """Return the rate just below a signal's at which few were refused; 0 if the share of the signal explains more.

        Where requests are counted one by one, about half of them are refused just above the rate.
        """
        is_half = _MOST_USUAL < signal.share < _MOST_OVER
        is_just_below = 0.8 * signal.rate < self._calm_rate < 1.05 * signal.rate
        return min(self._calm_rate, signal.rate) if is_half and is_just_below else 0.0

    def _wait_for_growth(self, ceiling: float) -> None:
        """Let the rate not grow for a time; for longer, the more often the service refused more than about this."""
        is_same = 0.8 < ceiling / max(self._ceiling, 1e-9) < 1.25
        self._patience = min(2 * self._patience, _MOST_PATIENCE) if is_same else _CALM
        self._ceiling = ceiling
        self._calm = self._calm_sent = self._grown = 0
        self._held = 0.0

    def _set_rate(self, per_second: float, now: float) -> None:
        self.bucket.set_rate(max(per_second, _LEAST_RATE), now, burst_s=0.1)
        self._span = _Span(now)
