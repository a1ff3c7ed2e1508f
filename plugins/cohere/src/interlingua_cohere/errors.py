"""Typed errors from failed answers and errors inside a 200: a status, a sentence, rarely a type (WIRE.md, Errors)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.errors import (
    AuthenticationError,
    ContextWindowExceededError,
    ProviderError,
    QuotaExceededError,
    ServerError,
)
from interlingua.plugins import WireResponse, dumps, error_class_for_status, error_for_status, loads, retry_after

INVALID_TOKEN = 498
_OUTPUT_LIMIT = "max tokens must be"  # of the same kind as too long a prompt, and no matter of the context
_MONTHLY = ("calls / month", "monthly", "spend limit")


def from_wire_error(response: WireResponse) -> ProviderError:
    """Return the typed error of a failed answer: by its body, or by its status if the body is not readable."""
    try:
        body = loads(response.body)
    except ValueError:
        body = None
    if not isinstance(body, dict) or not body.get("message"):
        return error_for_status(response)
    return error_from_body(body, status=response.status, headers=response.headers)


def error_from_body(
    body: Mapping[str, Any], *, status: int | None = None, headers: Mapping[str, str] | None = None
) -> ProviderError:
    """Return the typed error of an error object, of a failed answer or inside a stream."""
    said = body.get("message")
    message = said if isinstance(said, str) else dumps(said).decode()
    kind = _class_of(message.lower(), body.get("error_type"), status)
    return kind(message, status=status, retry_after=retry_after(headers or {}))


def _class_of(words: str, error_type: Any, status: int | None) -> type[ProviderError]:
    if (error_type == "TOO_MANY_TOKENS" or words.startswith("too many tokens")) and _OUTPUT_LIMIT not in words:
        return ContextWindowExceededError
    if status == INVALID_TOKEN:
        return AuthenticationError
    if status == 429 and any(phrase in words for phrase in _MONTHLY):
        return QuotaExceededError
    return ServerError if status is None or status < 400 else error_class_for_status(status)
