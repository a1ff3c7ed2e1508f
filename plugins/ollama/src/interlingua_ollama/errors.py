"""Typed errors from failed answers and errors inside a stream: sentences without a type (WIRE.md, Errors)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.errors import (
    AuthenticationError,
    ContextWindowExceededError,
    ModelNotFoundError,
    OverloadedError,
    ProviderError,
    ServerError,
)
from interlingua.plugins import WireResponse, dumps, error_class_for_status, error_for_status, loads, retry_after

# an overflow is an error only if `truncate` is off
OVERFLOW = ("exceeded max context length", "exceeds the context length", "exceeds maximum context length")
_NO_HEADERS: Mapping[str, str] = {}


def from_wire_error(response: WireResponse) -> ProviderError:
    """Return the typed error of a failed answer: by its body, or by its status if the body is not readable."""
    try:
        body = loads(response.body)
    except ValueError:
        body = None
    if not isinstance(body, dict) or not body.get("error"):
        return error_for_status(response)
    return error_from_body(body, status=response.status, headers=response.headers)


def error_from_body(
    body: Mapping[str, Any], *, status: int | None = None, headers: Mapping[str, str] = _NO_HEADERS
) -> ProviderError:
    """Return the typed error of an `error` object, of a failed answer or of a line in a stream."""
    error = body["error"]
    message = error if isinstance(error, str) else dumps(error).decode()
    if status is None or status < 400:
        inner = body.get("status")
        status = inner if isinstance(inner, int) and inner >= 400 else None
    return _class_of(message.lower(), status)(message, status=status, retry_after=retry_after(headers))


def _class_of(words: str, status: int | None) -> type[ProviderError]:
    if any(phrase in words for phrase in OVERFLOW):
        return ContextWindowExceededError
    if status is not None:
        return error_class_for_status(status)
    if words.startswith("model ") and "not found" in words:
        return ModelNotFoundError
    if words == "unauthorized":
        return AuthenticationError
    return OverloadedError if "server busy" in words else ServerError
