"""Typed errors of HTTP answers: the class by status, the delay from headers, and HTML error pages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite

from interlingua._plugins.wire import WireResponse
from interlingua.errors import (
    AuthenticationError,
    BadRequestError,
    ContextWindowExceededError,
    InterlinguaError,
    ModelNotFoundError,
    OverloadedError,
    PermissionDeniedError,
    ProviderError,
    QuotaExceededError,
    RateLimitError,
    ServerError,
)

_BY_STATUS: dict[int, type[ProviderError]] = {
    401: AuthenticationError,
    402: QuotaExceededError,
    403: PermissionDeniedError,
    404: ModelNotFoundError,
    **dict.fromkeys((408, 409), ServerError),
    413: ContextWindowExceededError,
    429: RateLimitError,
    **dict.fromkeys((503, 529), OverloadedError),
}


def error_class_for_status(status: int) -> type[ProviderError]:
    """Return the error class for a status."""
    return _BY_STATUS.get(status) or (ServerError if status >= 500 else BadRequestError)


def error_for_status(response: WireResponse) -> ProviderError:
    """Return the error for a status, with the delay that the headers request."""
    text = response.body[:300].decode("utf-8", "replace").strip()
    if response.status < 400 and (address := response.headers.get("location")):
        address = address.partition("?")[0]
        text = f"the service redirects to {address}, and redirects are not followed: set base_url to that address"
    kind = error_class_for_status(response.status)
    return kind(text or "no body", status=response.status, retry_after=retry_after(response.headers))


_HTML = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body|title|h1)\b", re.I | re.S
)
_TITLE = re.compile(rb"<(title|h1)\b[^>]*>(.*?)</\1", re.I | re.S)


def describe_html(response: WireResponse) -> str | None:
    """Return a description of a body that is an HTML page, with its title; None for other bodies and for redirects."""
    if 300 <= response.status < 400 or _HTML.match(response.body, 0, 4096) is None:
        return None
    found = _TITLE.search(response.body, 0, 65536)
    title = " ".join(found[2].decode("utf-8", "replace").split())[:200] if found else ""
    hint = "; is the base URL right?" if response.status < 500 else ""
    return f"an HTML page{f' ({title})' if title else ''} instead of an answer{hint}"


_SECRET_HEADER = re.compile("auth|key|token|secret|cookie|credential")
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.S)


def is_cut_off(body: bytes) -> bool:
    """Return True if a body is empty, or JSON that ends within a string, an array or an object."""
    rest = _STRING.sub(b"", body.strip())
    if rest[:1] not in (b"{", b"["):
        return not rest
    return b'"' in rest or sum(map(rest.count, b"{[")) > sum(map(rest.count, b"}]"))


def hide_secrets(error: InterlinguaError, sent: Mapping[str, str]) -> None:
    """Replace the values of secret headers of the request, which a service may quote, in everything an error shows."""
    secrets = [value.split() for name, value in sent.items() if _SECRET_HEADER.search(name.lower())]
    for word in (word for words in secrets for word in words if len(word) >= 8):
        texts = (error.message, error.code, error.request_id)
        error.message, error.code, error.request_id = (text and text.replace(word, "…") for text in texts)  # type: ignore[assignment]
        error.body = error.body and error.body.replace(word.encode(), "…".encode())
    error.args = (error.message,)


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Return `retry-after-ms` or `retry-after` (seconds or an HTTP date) in seconds; None if absent or unreadable."""
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        with suppress(KeyError, ValueError):
            return max(seconds, 0.0) if isfinite(seconds := float(headers[name]) / unit) else None
    try:
        date = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max((date - (now or datetime.now(UTC))).total_seconds(), 0.0)
