"""How long to wait for what: four limits a caller sets, and their reading against one call's clock.

Never sleeps and never raises by itself at a time of its own choosing: the transports ask.
The transports and the client may come in.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import attrs

from interlingua.errors import CallerError, ResponseTimeout


def _check(_timeout: object, field: attrs.Attribute[Any], value: object) -> None:
    if value is not None and (not isinstance(value, (int, float)) or value <= 0):
        raise CallerError(f"a timeout is a number of seconds above 0, or None for no limit, not {field.name}={value!r}")


@attrs.frozen(kw_only=True)
class Timeout:
    """Time limits of one call, in seconds; None means no limit.

    Attributes:
        connect: until a connection stands.
        first_byte: from there until the answer's status and headers; a model may think for minutes before it speaks.
        between_chunks: from one piece of the body to the next.
        total: the whole call, its retries and their waiting included. It is looked at between pieces, so a piece that
            is being waited for may overrun it, by no more than was left when the body began.
    """

    connect: float | None = attrs.field(default=10.0, validator=_check)
    first_byte: float | None = attrs.field(default=600.0, validator=_check)
    between_chunks: float | None = attrs.field(default=120.0, validator=_check)
    total: float | None = attrs.field(default=None, validator=_check)

    @classmethod
    def of(cls, value: Timeout | float | None) -> Timeout:
        """Read what a caller may give: a number of seconds is the total.

        Raises:
            CallerError: it is neither.
        """
        if value is None:
            return cls()
        return value if isinstance(value, Timeout) else cls(total=value)


class Limits:
    """A `Timeout` with the moment its call began.

    Args:
        timeout: the limits; None leaves the limits of the HTTP client as they are.
        clock: seconds, monotonic.
    """

    __slots__ = ("_clock", "deadline", "timeout")

    def __init__(self, timeout: Timeout | None, clock: Callable[[], float] = time.monotonic) -> None:
        self.timeout = timeout
        self._clock = clock
        total = timeout.total if timeout is not None else None
        self.deadline = None if total is None else clock() + total

    def left(self) -> float | None:
        """Return the seconds left of the total, None without one.

        Raises:
            ResponseTimeout: none are left.
        """
        if self.deadline is None:
            return None
        left = self.deadline - self._clock()
        if left <= 0:
            raise self.spent()
        return left

    def spent(self) -> ResponseTimeout:
        """Return the error for a total that is used up; trying again would not bring the time back."""
        total = self.timeout.total if self.timeout is not None else None
        return ResponseTimeout(f"the answer was not whole after total={total:g} s", retryable=False)

    def for_headers(self) -> dict[str, Any] | None:
        """Return the HTTP client's timeouts up to the answer's headers."""
        timeout = self.timeout
        if timeout is None:
            return None
        left = self.left()
        connect, first = _least(timeout.connect, left), _least(timeout.first_byte, left)
        return {"connect": connect, "pool": connect, "write": first, "read": first}

    def for_body(self) -> float | None:
        """Return the seconds one read of the body may take."""
        timeout = self.timeout
        return None if timeout is None else _least(timeout.between_chunks, self.left())


def _least(limit: float | None, left: float | None) -> float | None:
    if limit is None or left is None:
        return left if limit is None else limit
    return min(limit, left)
