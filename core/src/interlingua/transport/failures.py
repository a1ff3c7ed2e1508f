"""What an HTTP library's exceptions mean, told by their class names, so that any httpx-compatible client will do.

Never imports that library, and never repeats text that may hold a header's value.
The transports come in.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from interlingua.errors import CallerError, ConnectTimeout, InterlinguaError, ResponseTimeout, TransportError
from interlingua.transport.timeout import Limits

_NOT_SENT = frozenset({"InvalidURL", "UnsupportedProtocol"})
_BAD_HEADERS = "a header holds characters HTTP does not allow (was a key pasted with a line break?)"

_CLOSED = "the client is closed: make a new one, or keep this one open"


def failure(error: Exception, limits: Limits, *, in_body: bool, url: str = "") -> InterlinguaError | None:
    """Return the typed error for what an HTTP client raised; None if it is not about the exchange (a bug: let it rise).

    Args:
        error: the exception.
        limits: the limits of the call, to name the one that was broken.
        in_body: True once the answer's headers had arrived.
        url: where the request was to go, for the message, which tells its host only.
    """
    if isinstance(error, InterlinguaError):
        return error
    names = {kind.__name__ for kind in type(error).__mro__}
    if names & {"TimeoutException", "TimeoutError"}:
        return _timed_out(names, limits, in_body=in_body)
    if names & _NOT_SENT:
        return CallerError(f"the request cannot be sent to {_place(url)}: {error}")
    if "LocalProtocolError" in names or isinstance(error, UnicodeEncodeError):
        return CallerError(_BAD_HEADERS)
    if isinstance(error, RuntimeError) and "closed" in str(error):
        return CallerError(_CLOSED)
    if names & {"TransportError", "HTTPError", "StreamError", "OSError"}:
        what = "the connection broke" if in_body else f"no answer could be had from {_place(url)}"
        return TransportError(f"{what}: {type(error).__name__}: {error}")
    return None


def unmade(error: Exception) -> CallerError:
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


def _timed_out(names: set[str], limits: Limits, *, in_body: bool) -> InterlinguaError:
    try:
        limits.left()
    except ResponseTimeout as spent:
        return spent
    timeout = limits.timeout
    if "ConnectTimeout" in names or "PoolTimeout" in names:
        limit = "the HTTP client's own limit" if timeout is None else f"connect={timeout.connect:g} s"
        what = "no connection came free" if "PoolTimeout" in names else "no connection"
        return ConnectTimeout(f"{what} within {limit}")
    if timeout is None:
        return ResponseTimeout("no data within the HTTP client's own limit")
    if in_body:
        return ResponseTimeout(f"no more data for between_chunks={timeout.between_chunks:g} s")
    return ResponseTimeout(f"no answer within first_byte={timeout.first_byte:g} s")
