"""When to try again, and after how long: a pure rule over typed errors.

Never sleeps, and never reads a header: the error already says what the provider asked for.
The clients come in, and applications that want another rule.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from interlingua.errors import CallerError, InterlinguaError


def _random() -> float:
    from random import random  # noqa: PLC0415  loads a hash library, and few calls are retried

    return random()  # noqa: S311  spreads load, keeps no secret


@attrs.frozen(kw_only=True)
class Retry:
    """The rule for trying again; a stream that has begun to give events is never tried again.

    Attributes:
        max_attempts: attempts in all, the first included.
        initial: seconds before the second attempt; doubled for each further one.
        maximum: longest wait in seconds. A provider that asks for more gets no further attempt: the typed error is
            raised at once, with `retry_after` (REGRESSIONS case 26).
        jitter: largest share of a wait of our own choosing that is taken off at random, 0 to 1.
    """

    max_attempts: int = 3
    initial: float = 0.5
    maximum: float = 60.0
    jitter: float = 0.25

    @classmethod
    def of(cls, value: Retry | int | None) -> Retry:
        """Read what a caller may give: a number is how many times to try again after the first attempt.

        Raises:
            CallerError: it is neither.
        """
        if value is None:
            return cls()
        if isinstance(value, Retry):
            return value
        if not isinstance(value, int) or value < 0:
            raise CallerError(f"retry is a Retry, or how many times to try again, not {value!r}")
        return cls(max_attempts=value + 1)

    def delay(self, error: InterlinguaError, attempt: int, random: Callable[[], float] = _random) -> float | None:
        """Return the seconds to wait after a failed attempt, or None to give up.

        Args:
            error: what failed; its `retryable` and `retry_after` decide.
            attempt: number of the attempt that failed, from 1.
            random: gives 0 to 1.
        """
        if not error.retryable or attempt >= self.max_attempts:
            return None
        if error.retry_after:
            return error.retry_after if error.retry_after <= self.maximum else None
        own = min(self.initial * 2.0 ** (attempt - 1), self.maximum)
        return own * (1 - self.jitter * random())
