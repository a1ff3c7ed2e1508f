"""The rate of requests that a service accepts, by the share that it refuses; and buckets whose rate changes."""

from __future__ import annotations

from math import log

import attrs

from interlingua.limits import Bucket

LEAST_SAMPLES = 16
LEAST_REFUSED = 3  # fewer refusals say nothing
_TOLERATED = 0.01  # the share of refusals may exceed the usual share by so much, in one span
_TOLERATED_FIRST = 0.1  # while the number under way doubles
_TOLERATED_LONG = 0.03  # over many spans
_TRIED = 0.05  # the share by which the refusals at a higher rate are taken to exceed those at the accepted one
_LOWER = 0.9  # of the accepted rate, after too many refusals: surely low enough
_LARGE = 0.1  # a larger share of refusals at a lower rate may have to do with it
_MOST_USUAL = 0.3  # a larger share has a cause
_DEVIATIONS = 3  # of a share from its usual value, that chance may explain
_SURE = 3.0  # e to this power: how much likelier one of two explanations of the refusals has to be
_SURE_OF_LOAD = 4.0  # as `_SURE`, while the rate does not change
_SURE_OF_TRY = 2.0  # as `_SURE`, while a higher rate is tried: a return costs little
_CALM = 4  # spans at a rate before it grows
_MOST_PATIENCE = 12  # spans at a rate before it grows, after many signals at about the same rate
_FASTEST = 0.25  # growth of the rate in a span: services refuse a rise that is too steep
_LEAST_SENT = 10  # fewer requests do not tell whether too many are refused
_LONG_S = 30.0  # a rate measured for longer is known
_FEW_TAKEN = 64  # requests; the rate at which so few were accepted may be far from what the service accepts
_LEAST_RATE = 0.2  # requests a second; a service that accepts fewer refuses the others
_LEAST_SHARE = 0.005  # of refusals that is taken to be usual
_LARGEST_SHARE = 0.9
_TESTED = 0.03  # a larger usual share is tested at a lower rate
_LEAST_TESTED = 6  # fewer refusals do not tell how large it is
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

    def add(self, span: _Span) -> None:
        """Add the counts of a later span."""
        self.sent += span.sent
        self.refused += span.refused

    def weigh(self, share: float, larger: float) -> float:
        """Return how much likelier the larger share explains the refusals: the logarithm of the ratio."""
        return self.refused * log(larger / share) + (self.sent - self.refused) * log((1 - larger) / (1 - share))


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
    is_test: bool = False  # of a usual share that may be too high
    lower_sent: int = 0
    lower_refused: int = 0

    @property
    def share(self) -> float:
        return self.refused / self.sent

    @property
    def enough(self) -> int:
        """Requests at a lower rate that decide, though few differ."""
        return (4 if self.is_test else 2) * _SPAN_SENT

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


@attrs.define
class _Try:
    """A try of higher rates, step by step; after it, of the rate to which it returned.

    Each span is weighed: is more refused than at the accepted rate? Where the service refuses nothing at that rate, the
    first refusal is enough.
    """

    accepted: float  # the rate that was held before
    chance: float  # the share that was refused at it
    lower: float = 0.0  # the rate to return to
    steps: int = 0  # 0 after the return
    evidence: float = 0.0  # of the spans before: how much likelier more is refused

    def weigh(self, span: _Span, rate: float) -> float:
        """Return how much likelier it is that more is refused at this rate: the logarithm of the ratio."""
        more = min(1 - self.accepted / rate, _TRIED if self.steps else _TOLERATED_LONG)
        return self.evidence + span.weigh(self.chance, self.chance + (1 - self.chance) * more)

    def step(self, rate: float) -> float:
        """Return the next rate: by larger steps after each, and where many are refused by chance."""
        self.steps += 1
        self.lower = 0.98 * rate
        growth: float = max(0.01 * 1.5**self.steps, 0.5 * self.chance**0.5)
        return rate * (1 + min(growth, _FASTEST))

    def go_back(self) -> float:
        """Return the rate to return to, which may still be too high."""
        back = max(self.accepted, self.lower)
        self.lower, self.steps, self.evidence = 0.88 * back, 0, 0.0
        return back


class AcceptedRate:
    """The rate of requests that a service accepts; free until it has refused too many.

    Then it is the rate at which the service accepted requests. It is held for a time, the longer the more often the
    service refused what is above it. Then higher rates are tried until more is refused.

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
        self._tested_share = 0.0  # a usual share that did not change at a lower rate
        self._span = _Span(now)
        self._signal: _Signal | None = None
        self._try: _Try | None = None
        self._seeking = True  # the rate doubles until the first refusals at it
        self._calm = _Span(now)  # all that was sent at the rate, and the number of spans
        self._calm_spans = 0
        self._calm_rate = 0.0  # the last rate at which few were refused, until it is tried again
        self._many = _Span(now)  # the newest spans in which more was refused than usual
        self._evidence = 0.0  # of these spans: how much likelier the rate is too high
        self._patience = _CALM  # spans until the rate grows
        self._ceiling = 0.0  # the rate at which too many were refused last

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
        self._signal = self._try = None
        is_unknown = taken < _FEW_TAKEN or (self._seeking and self.per_second is None and seconds < _LONG_S)
        is_same = self._ceiling > 0 and 0.5 < rate / max(self._ceiling, _LEAST_RATE) < 2  # as the time before
        self._seeking = is_unknown and not is_same
        self._wait_for_growth(rate, now)
        self._set_rate(rate, now)

    def judge(self, now: float) -> None:
        """Change the rate by the share of requests that was refused at it."""
        span, signal = self._span, self._signal
        seconds = now - span.began
        if self._try is not None:
            self._judge_try(self._try, now)
            return
        is_low = seconds >= _SPAN_S and not span.refused  # a very low rate grows, too
        least_sent = 1 if is_low or (self._seeking and signal is None) else _LEAST_SENT
        if span.sent < least_sent or seconds < (0.25 if span.refused >= LEAST_SAMPLES else 1):
            return
        share, rate, usual = span.refused / span.sent, span.sent / seconds, self._usual_share
        likely = usual + 2 * (usual / span.sent) ** 0.5 + (_TOLERATED if self.per_second else _TOLERATED_FIRST)
        if span.sent < (_SPAN_SENT if signal is None else signal.enough) and self._is_unsure(span, likely):
            return
        self._span, self._signal = _Span(now), None
        is_over = span.refused >= LEAST_REFUSED and share > likely
        if signal is not None and share < _MOST_USUAL:
            signal.add(span)
            if not (is_over and signal.is_load(span)):
                self._learn_usual_share(signal, now)
                return
        if is_over:
            accepted = rate * (1 - share)
            if signal is None:
                accepted = min(accepted, max(self._calm_rate, 0.8 * accepted))
            self._lower(_Signal(self.per_second, rate, span.sent, span.refused, usual), _LOWER * accepted, now)
            return
        self._calm.add(span)
        self._calm_spans += 1
        self._calm_rate = rate
        if self.per_second is None:
            if self._calm.sent >= 4 * _SPAN_SENT:
                self._usual_share = self._calm.refused / self._calm.sent
            return
        if self._is_too_high(span, rate, now):
            return
        if span.sent + 1 > 0.9 * self.per_second * seconds:
            self._grow(self.per_second, now)

    # -- too many refusals -----------------------------------------------------------------------------------------

    def _is_unsure(self, span: _Span, likely: float) -> bool:
        """Return True if chance may explain that many refusals, or what a lower rate seems to have changed."""
        share = span.refused / span.sent
        deviation = (share * (1 - share) / span.sent) ** 0.5
        if self._signal is None or share >= _MOST_USUAL:
            most = likely if self._signal is None else _MOST_USUAL
            return span.refused >= LEAST_REFUSED and most < share < most + _DEVIATIONS * deviation
        return abs(self._signal.evidence(span)) < _SURE

    def _is_too_high(self, span: _Span, rate: float, now: float) -> bool:
        """Return True, and try a lower rate, if slightly more than usual is refused for long."""
        usual = min(max(self._usual_share, _LEAST_SHARE), _LARGEST_SHARE)
        self._evidence = max(self._evidence + span.weigh(usual, usual + _TOLERATED_LONG), 0.0)
        if not self._evidence:
            self._many = _Span(now)
            return False
        many = self._many
        many.add(span)
        if self._evidence < _SURE_OF_LOAD or many.refused < LEAST_REFUSED:
            return False
        self._evidence, self._calm_rate, self._many = 0.0, 0.0, _Span(now)
        signal = _Signal(self.per_second, rate, many.sent, many.refused, self._usual_share)
        self._lower(signal, _LOWER * rate * (1 - signal.share), now)
        return True

    def _lower(self, signal: _Signal, rate: float, now: float) -> None:
        """Try a rate that is surely low enough."""
        if signal.usual > _LARGE:  # perhaps it was learned at two rates that were both too high
            self._usual_share = signal.usual = 0.0
        self._signal = signal
        self._set_rate(rate, now)

    def _learn_usual_share(self, signal: _Signal, now: float) -> None:
        """Set the rate after too many refusals, by the share that was refused at a rate that is surely low enough."""
        if signal.evidence() > (-_SURE if signal.is_test else 0):  # the lower rate did not help
            share = (signal.refused + signal.lower_refused) / (signal.sent + signal.lower_sent)
            self._usual_share = self._tested_share = share
            self.bucket.rate = None
            if signal.limit is not None:
                self._set_rate(signal.limit, now)
            return
        self._usual_share = share = signal.lower_refused / signal.lower_sent
        self._tested_share = 0.0
        self._seeking = self._seeking and signal.limit is None
        self._wait_for_growth(signal.rate, now)
        self._calm_rate = 0.0
        self._set_rate(0.98 * signal.rate * (1 - signal.share) / (1 - share), now)

    # -- higher rates ----------------------------------------------------------------------------------------------

    def _grow(self, rate: float, now: float) -> None:
        """Raise the rate, if it was held for long enough; or test whether a large usual share has to do with it."""
        calm = self._calm
        if self._seeking:
            self._set_rate(2 * rate, now)
        elif self._calm_spans > self._patience and calm.sent > self._patience**2:
            share = self._usual_share = min(self._usual_share, calm.refused / calm.sent)
            if calm.refused >= _LEAST_TESTED and share > max(_TESTED, 1.3 * self._tested_share):
                signal = _Signal(rate, rate, calm.sent, calm.refused, share, is_test=True)
                self._wait_for_growth(rate, now)
                self._lower(signal, 0.97 * rate * (1 - signal.share), now)
            else:
                self._try = _Try(rate, min(max(calm.refused, 0.1) / calm.sent, _LARGEST_SHARE))
                self._set_rate(self._try.step(rate), now)

    def _judge_try(self, attempt: _Try, now: float) -> None:
        """Raise the rate further, or return to a lower one, by the refusals since it is above the accepted one."""
        span, rate = self._span, self.bucket.rate or _LEAST_RATE
        seconds = now - span.began
        evidence = attempt.weigh(span, rate)
        if evidence > _SURE_OF_TRY:
            if attempt.steps:
                self._wait_for_growth(rate, now)
            back = attempt.go_back()
            if back == attempt.accepted:
                self._try = None
            self._set_rate(back, now)
        elif seconds >= 1 and span.sent >= _LEAST_SENT:
            self._span = _Span(now)
            attempt.evidence = max(evidence, 0.0) if attempt.steps else evidence
            if attempt.steps and evidence < 0.5 and span.sent + 1 > 0.9 * rate * seconds:
                self._set_rate(attempt.step(rate), now)
            elif not attempt.steps and evidence < -1:
                self._try = None

    def _wait_for_growth(self, ceiling: float, now: float) -> None:
        """Let the rate not grow for a time; for longer, the more often the service refused more than about this."""
        is_same = 0.8 < ceiling / max(self._ceiling, 1e-9) < 1.25
        self._patience = min(2 * self._patience, _MOST_PATIENCE) if is_same else _CALM
        self._ceiling = ceiling
        self._calm, self._calm_spans = _Span(now), 0
        self._many, self._evidence = _Span(now), 0.0

    def _set_rate(self, per_second: float, now: float) -> None:
        self.bucket.set_rate(max(per_second, _LEAST_RATE), now, burst_s=0.1)
        self._span = _Span(now)
