"""Timeouts, retries, and the typed errors of failed connections."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import attrs

from interlingua.errors import APIConnectionError, APITimeoutError, CallerError, InterlinguaError

_NOT_SENT = frozenset({"InvalidURL", "UnsupportedProtocol"})
_BAD_HEADERS = "a header holds characters HTTP does not allow (was a key pasted with a line break?)"
_CLOSED = "the client is closed: make a new one, or keep this one open"


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


class Deadline:
    """A `Timeout` with the moment its call began; None leaves the limits of the HTTP client as they are."""

    __slots__ = ("_clock", "deadline", "timeout")

    def __init__(self, timeout: Timeout | None, clock: Callable[[], float] = time.monotonic) -> None:
        self.timeout = timeout
        self._clock = clock
        total = timeout.total if timeout is not None else None
        self.deadline = None if total is None else clock() + total

    def left(self) -> float | None:
        """Return the seconds left of the total, None without one; raise APITimeoutError where none are left."""
        if self.deadline is None:
            return None
        left = self.deadline - self._clock()
        if left <= 0:
            raise self.spent()
        return left

    def spent(self) -> APITimeoutError:
        """Return the error for a total that is used up; trying again would not bring the time back."""
        total = self.timeout.total if self.timeout is not None else None
        return APITimeoutError(f"the answer was not whole after total={total:g} s", retryable=False)

    def for_headers(self) -> dict[str, Any] | None:
        """Return the HTTP client's timeouts up to the answer's headers."""
        timeout = self.timeout
        if timeout is None:
            return None
        connect, first, left = timeout.connect, timeout.first_byte, self.left()
        if left is not None:
            connect, first = min(connect or left, left), min(first or left, left)
        return {"connect": connect, "pool": connect, "write": first, "read": first}

    def for_body(self) -> float | None:
        """Return the seconds one read of the body may take."""
        if self.timeout is None:
            return None
        limit, left = self.timeout.between_chunks, self.left()
        return limit if left is None else min(limit or left, left)


def _random() -> float:
    from random import random  # noqa: PLC0415  loads a hash library, and few calls are retried

    return random()  # noqa: S311  spreads load, keeps no secret


@attrs.frozen(kw_only=True)
class Retry:
    """The rule for trying again; a stream that has begun to give events is never tried again.

    Attributes:
        max_attempts: attempts in all, the first included.
        initial_delay: seconds before the second attempt; doubled for each further one.
        max_delay: longest wait in seconds. A provider that asks for more gets no further attempt: the typed error is
            raised at once, with `retry_after`.
        jitter: largest share of a wait of our own choosing that is taken off at random, 0 to 1.
    """

    max_attempts: int = 3
    initial_delay: float = 0.5
    max_delay: float = 60.0
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
            return error.retry_after if error.retry_after <= self.max_delay else None
        own = min(self.initial_delay * 2.0 ** (attempt - 1), self.max_delay)
        return own * (1 - self.jitter * random())


def error_for_failure(error: Exception, deadline: Deadline, *, in_body: bool, url: str = "") -> Exception:
    """Return the typed error for what an HTTP client raised, before the answer's headers had arrived or `in_body`.

    It names the limit that was broken, or the host. What is not about the exchange (a bug) is returned as it is.
    """
    names = {kind.__name__ for kind in type(error).__mro__}
    typed: InterlinguaError | None = None
    if isinstance(error, InterlinguaError):
        pass
    elif names & {"TimeoutException", "TimeoutError"}:
        typed = _timed_out(names, deadline, in_body=in_body)
    elif names & _NOT_SENT:
        typed = CallerError(f"the request cannot be sent to {_place(url)}: {error}")
    elif "LocalProtocolError" in names or isinstance(error, UnicodeEncodeError):
        typed = CallerError(_BAD_HEADERS)
    elif isinstance(error, RuntimeError) and "closed" in str(error):
        typed = CallerError(_CLOSED)
    elif names & {"TransportError", "HTTPError", "StreamError", "OSError"}:
        what = "the connection broke" if in_body else f"no answer could be had from {_place(url)}"
        typed = APIConnectionError(f"{what}: {type(error).__name__}: {error}")
    if typed is None:
        return error
    typed.__cause__ = None if isinstance(typed, CallerError) else error  # what a caller wrote may be secret
    return typed


def error_for_no_client(error: Exception) -> CallerError:
    """Return the error for an HTTP client that cannot be made; it reads proxies and certificates by itself."""
    what = f": {error}" if isinstance(error, (ImportError, OSError)) else ""  # others may repeat a proxy's password
    return CallerError(
        f"no HTTP client can be made ({type(error).__name__}{what}); look at HTTP_PROXY, HTTPS_PROXY, ALL_PROXY,"
        " SSL_CERT_FILE and SSL_CERT_DIR, or give http_client="
    )


def _place(url: str) -> str:
    """Return scheme, host and port: what stands before and behind them may be secret."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "no valid address"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts.netloc else "an address without a host"


def _timed_out(names: set[str], deadline: Deadline, *, in_body: bool) -> InterlinguaError:
    try:
        deadline.left()
    except APITimeoutError as spent:
        return spent
    timeout = deadline.timeout
    if "ConnectTimeout" in names or "PoolTimeout" in names:
        limit = "the HTTP client's own limit" if timeout is None else f"connect={timeout.connect:g} s"
        what = "no connection came free" if "PoolTimeout" in names else "no connection"
        return APITimeoutError(f"{what} within {limit}", phase="connect")
    if timeout is None:
        return APITimeoutError("no data within the HTTP client's own limit")
    if in_body:
        return APITimeoutError(f"no more data for between_chunks={timeout.between_chunks:g} s")
    return APITimeoutError(f"no answer within first_byte={timeout.first_byte:g} s")
