"""The typed error of a failed answer when its adapter has nothing better to say: by HTTP status alone.

Never reads a body: what a provider's words mean is its adapter's business. Also the retry delay that headers ask for.
The façade and adapters come in.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from interlingua.errors import (
    Authentication,
    ContextOverflow,
    InvalidRequest,
    ModelNotFound,
    Overloaded,
    PermissionDenied,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    ServerFault,
)
from interlingua.wire import WireResponse

_BY_STATUS: dict[int, type[ProviderError]] = {
    400: InvalidRequest,
    401: Authentication,
    402: QuotaExhausted,
    403: PermissionDenied,
    404: ModelNotFound,
    408: ServerFault,
    409: ServerFault,
    413: ContextOverflow,
    422: InvalidRequest,
    429: RateLimited,
    503: Overloaded,
    529: Overloaded,
}


def class_of_status(status: int) -> type[ProviderError]:
    """Return the error class a status alone suggests."""
    return _BY_STATUS.get(status) or (ServerFault if status >= 500 else InvalidRequest)


def error_of_status(response: WireResponse) -> ProviderError:
    """Return the error a status alone suggests, with the delay its headers ask for."""
    text = response.body[:300].decode("utf-8", "replace").strip()
    if response.status < 400 and (address := response.headers.get("location")):
        text = f"the service is at {address.partition('?')[0]}, and redirects are not followed: give that as base URL"
    kind = class_of_status(response.status)
    return kind(text or "no body", status=response.status, retry_after=retry_after(response.headers))


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Read `retry-after-ms` or `retry-after` (seconds or an HTTP date) in seconds; None when absent or unreadable."""
    milliseconds = headers.get("retry-after-ms")
    if milliseconds is not None:
        try:
            return max(float(milliseconds) / 1000, 0.0)
        except ValueError:
            pass
    text = headers.get("retry-after")
    if text is None:
        return None
    try:
        return max(float(text), 0.0)
    except ValueError:
        pass
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max((date - (now or datetime.now(UTC))).total_seconds(), 0.0)
