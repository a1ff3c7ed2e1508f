"""The protocol between the clients and what moves their requests: httpx, pycurl, memory, or your own transport.

A transport sends one request and returns a reply whose headers have arrived; iterating over the reply yields the body.
Everything else (retries, decompression, size limits, the total time limit, decoding) is done by the clients, over any
transport. `Client(transport=…)` takes a `Transport` and `AsyncClient(transport=…)` an `AsyncTransport`, and leave it
open. Both also take the name of a transport that an installed distribution declares in the entry point group
`interlingua.transports`: a callable with the keyword argument `blocking` that returns one or the other.

A transport raises only `InterlinguaError`s, because only it knows the exceptions of its library. `TimeLimits.timed_out`
and the functions of this module make the errors that clients, retries and users expect. Any other exception passes
through the client unchanged, as a bug in the transport.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

import attrs

from interlingua._plugins.connection import HttpRequest
from interlingua.errors import APIConnectionError, APITimeoutError, CallerError
from interlingua.types.options import explain_arguments

__all__ = [
    "AsyncReply", "AsyncTransport", "HttpRequest", "Reply", "TimeLimits", "Timeout", "Transport", "bad_header",
    "connection_failed", "transport_closed", "unsendable",
]  # fmt: skip

Phase = Literal["connect", "pool", "first_byte", "between_chunks"]
_WAITS: Mapping[Phase, tuple[str, str]] = {
    "connect": ("no connection", "connect"),
    "pool": ("no connection became free", "connect"),
    "first_byte": ("no answer", "first_byte"),
    "between_chunks": ("no more data", "between_chunks"),
}


def _check(_timeout: object, field: attrs.Attribute[Any], value: object) -> None:
    if value is not None and (not isinstance(value, (int, float)) or not value > 0):
        raise CallerError(
            f"a timeout must be a number of seconds above 0, or None for no limit; got {field.name}={value!r}"
        )


@explain_arguments(places=lambda: dict.fromkeys(("read", "write"), "use between_chunks=…"))
@attrs.frozen(kw_only=True)
class Timeout:
    """Time limits of one call, in seconds; None means no limit.

    Attributes:
        connect: until the connection is established.
        first_byte: then, until the answer's status and headers arrive; a model may think for minutes before it answers.
        between_chunks: from one piece of the body to the next.
        total: the whole call, including retries, the waits between them, uploads and the exchange of a key. With
            `http_client=`, one read may overrun it, by no more than was left when the body began.
    """

    connect: float | None = attrs.field(default=10.0, validator=_check)
    first_byte: float | None = attrs.field(default=600.0, validator=_check)
    between_chunks: float | None = attrs.field(default=120.0, validator=_check)
    total: float | None = attrs.field(default=None, validator=_check)

    @classmethod
    def of(cls, value: Timeout | float | None) -> Timeout:
        """Read a `timeout=` argument: a number of seconds is the total.

        Raises:
            CallerError: it is neither a Timeout nor a positive number.
        """
        return value if isinstance(value, Timeout) else cls() if value is None else cls(total=value)


class TimeLimits:
    """The time limits of one call, as a transport reads them: each when its wait begins.

    The total counts from the creation of this object, and shortens the other limits as it runs out.

    Attributes:
        timeout: the limits as the caller set them; None if an httpx client that was created with timeouts applies
            its own.
    """

    __slots__ = ("_clock", "_end", "timeout")

    def __init__(self, timeout: Timeout | None, clock: Callable[[], float] = time.monotonic) -> None:
        self.timeout = timeout
        self._clock = clock
        self._end = None if timeout is None or timeout.total is None else clock() + timeout.total

    @property
    def connect(self) -> float | None:
        """Seconds until the connection must be established."""
        return None if self.timeout is None else self._shorten(self.timeout.connect)

    @property
    def first_byte(self) -> float | None:
        """Seconds until the headers of the reply must have arrived."""
        return None if self.timeout is None else self._shorten(self.timeout.first_byte)

    @property
    def between_chunks(self) -> float | None:
        """Seconds until the next piece of the body must have arrived."""
        return None if self.timeout is None else self._shorten(self.timeout.between_chunks)

    def _shorten(self, limit: float | None) -> float | None:
        left = self.left()
        return limit if left is None else min(limit or left, left)

    def left(self) -> float | None:
        """Return the seconds left of the total; None without a total.

        Raises:
            APITimeoutError: the total is used up; another attempt has no time either.
        """
        if self._end is None or self.timeout is None:
            return None
        left = self._end - self._clock()
        if left <= 0:
            text = f"the answer was not complete after total={self.timeout.total:g} s"
            raise APITimeoutError(text, retryable=False)
        return left

    def timed_out(self, phase: Phase) -> APITimeoutError:
        """Return the error for a wait that took too long, with the limit in its text.

        Args:
            phase: which limit was exceeded. `pool` is `connect`, spent waiting for a connection to become free.
        """
        try:
            self.left()
        except APITimeoutError as used_up:
            return used_up
        what, name = _WAITS[phase]
        limit = "the HTTP client's own limit" if self.timeout is None else f"{name}={getattr(self.timeout, name):g} s"
        return APITimeoutError(f"{what} within {limit}", phase="connect" if name == "connect" else "response")


class _BaseReply(Protocol):
    @property
    def status(self) -> int:
        """HTTP status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Response headers, with names in lower case."""

    def abort(self) -> None:
        """Wake a read that waits in another thread or task: it ends or raises APIConnectionError. May do nothing."""


class Reply(_BaseReply, Protocol):
    """A reply whose headers have arrived.

    Iterating yields the pieces of the body as they arrive, still encoded as `content-encoding` says, and raises
    `APIConnectionError` or `APITimeoutError` if it breaks off.
    """

    def __iter__(self) -> Iterator[bytes]: ...

    def close(self) -> None:
        """Release the connection; close it if the body was not read to its end. May be called twice."""


class Transport(Protocol):
    """Moves requests, for `Client`; threads may share it."""

    def open(self, request: HttpRequest, limits: TimeLimits) -> Reply:
        """Send a request and return its reply as soon as the headers have arrived; redirects are not followed.

        Args:
            request: the request to send. `headers` are complete but for `host` and `content-length`.
            limits: read `connect` and `first_byte` now, and `between_chunks` when a read of the body begins.

        Raises:
            APIConnectionError: no connection, or it broke off (`connection_failed`).
            APITimeoutError: a limit was exceeded (`limits.timed_out`).
            CallerError: the request cannot be sent (`unsendable`, `bad_header`), or the transport is closed.
        """

    def close(self) -> None:
        """Close the connections."""


class AsyncReply(_BaseReply, Protocol):
    """As `Reply`, for `AsyncTransport`."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def aclose(self) -> None:
        """Release the connection, as `Reply.close` does."""


class AsyncTransport(Protocol):
    """Moves requests, for `AsyncClient`; takes the arguments and raises the errors of `Transport`.

    An AsyncClient makes a transport that was chosen by name once for each event loop. One that is passed as an object
    is used on every loop.
    """

    def open(self, request: HttpRequest, limits: TimeLimits) -> Awaitable[AsyncReply]:
        """Send a request and return its reply as soon as the headers have arrived."""

    async def aclose(self) -> None:
        """Close the connections."""


def unsendable(url: str, reason: object) -> CallerError:
    """Return the error for an address that a request cannot be sent to."""
    return CallerError(f"the request cannot be sent to {_place(url)}: {reason}")


def bad_header() -> CallerError:
    """Return the error for a header that HTTP does not allow; it does not quote the header, which may be a key."""
    return CallerError("a header contains characters that HTTP does not allow (was a key pasted with a line break?)")


def transport_closed() -> CallerError:
    """Return the error for a request after `close`."""
    return CallerError("the client is closed: create a new one, or keep this one open")


def connection_failed(error: BaseException, url: str | None = None, *, connected: bool = True) -> APIConnectionError:
    """Return the error for a connection that failed.

    Args:
        error: the exception that the library raised.
        url: the address, if no headers had arrived yet; None if the connection broke within the body.
        connected: False if nothing can have been sent.
    """
    what = "the connection broke" if url is None else f"no answer from {_place(url)}"
    return APIConnectionError(f"{what}: {type(error).__name__}: {error}", phase="response" if connected else "connect")


def _place(url: str) -> str:
    """Return scheme, host and port; the rest of an address may be secret."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an invalid address"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts.netloc else "an address without a host"
