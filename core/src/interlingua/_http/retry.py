"""The rule by which failed attempts are repeated."""

from __future__ import annotations

import attrs

from interlingua.errors import CallerError, InterlinguaError
from interlingua.types.options import explain_arguments


@explain_arguments()
@attrs.frozen(kw_only=True)
class Retry:
    """When and how often a failed request is tried again. A stream is never retried after its first event.

    Attributes:
        max_attempts: attempts in all, the first included.
        initial_delay: seconds before the second attempt; doubled for each further one.
        max_delay: longest wait in seconds. If a service asks for a longer one, the typed error is raised at once, with
            `retry_after`.
        jitter: largest share of a wait that is taken off at random, 0 to 1; a wait that the service asked for is kept.
    """

    max_attempts: int = 3
    initial_delay: float = 0.5
    max_delay: float = 60.0
    jitter: float = 0.25

    @classmethod
    def of(cls, value: Retry | int | None) -> Retry:
        """Read a `retry=` argument: a number is how many times to try again after the first attempt.

        Raises:
            CallerError: it is neither a Retry nor a number.
        """
        if value is None or isinstance(value, Retry):
            return value or cls()
        if not isinstance(value, int) or value < 0:
            raise CallerError(f"retry must be a Retry or the number of further attempts, not {value!r}")
        return cls(max_attempts=value + 1)

    def delay(self, error: InterlinguaError, attempt: int) -> float | None:
        """Return the seconds to wait after an attempt (numbered from 1) failed, or None to give up."""
        if not error.retryable or attempt >= self.max_attempts:
            return None
        if error.retry_after:
            return error.retry_after if error.retry_after <= self.max_delay else None
        from random import random  # noqa: PLC0415  loads a hash library, and few calls are retried

        return min(self.initial_delay * 2.0 ** (attempt - 1), self.max_delay) * (1 - self.jitter * random())  # noqa: S311
