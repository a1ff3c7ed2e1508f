"""Typed errors from failed answers and error events: by status word, reason in the details, then by words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from interlingua.errors import (
    APITimeoutError,
    AuthenticationError,
    BadRequestError,
    CallerError,
    ContextWindowExceededError,
    InterlinguaError,
    ModelNotFoundError,
    OverloadedError,
    PermissionDeniedError,
    PluginError,
    ProviderError,
    QuotaExceededError,
    RateLimitError,
    ServerError,
)
from interlingua.plugins import WireResponse, dumps, error_class_for_status, error_for_status, loads, retry_after
from interlingua_google.models import INTERACTIONS

if TYPE_CHECKING:
    from interlingua_serving import ServeContext

_BY_STATUS_WORD: dict[str, type[ProviderError]] = {
    "INVALID_ARGUMENT": BadRequestError,
    "FAILED_PRECONDITION": PermissionDeniedError,  # region or billing of this account
    "OUT_OF_RANGE": BadRequestError,
    "UNAUTHENTICATED": AuthenticationError,
    "PERMISSION_DENIED": PermissionDeniedError,
    "NOT_FOUND": ModelNotFoundError,
    "RESOURCE_EXHAUSTED": RateLimitError,
    "DEADLINE_EXCEEDED": ServerError,
    "CANCELLED": ServerError,
    "INTERNAL": ServerError,
    "UNKNOWN": ServerError,
    "UNAVAILABLE": OverloadedError,
}
_BY_CODE: dict[str, tuple[type[ProviderError], bool | None]] = {  # words of the Interactions API, and retryable
    "too_many_requests": (RateLimitError, None),
    "invalid_request": (BadRequestError, None),
    "not_implemented": (ServerError, False),
}
_INTERACTION_WORDS = {"INVALID_ARGUMENT": "invalid_request", "RESOURCE_EXHAUSTED": "too_many_requests"}
_KEY_REASONS = ("API_KEY_INVALID", "API_KEY_EXPIRED", "ACCESS_TOKEN_EXPIRED", "CREDENTIALS_MISSING")
_MONEY_REASONS = ("BILLING_DISABLED",)
_SPENT = "credits are depleted"  # a 429 like a limit by the minute
_NOT_RETRIED = ("CANCELLED",)  # the official SDK's retry set has no 499
_INVALID = ("INVALID_ARGUMENT", "OUT_OF_RANGE", "invalid_request", None)
_TOO_LONG = ("exceeds the maximum number of tokens", "input token count")
_TOO_LONG_HERE = "the input token count exceeds the maximum number of tokens allowed"
_WRITTEN: tuple[tuple[type[InterlinguaError], int, str], ...] = (
    (AuthenticationError, 401, "UNAUTHENTICATED"),
    (QuotaExceededError, 403, "PERMISSION_DENIED"),
    (PermissionDeniedError, 403, "PERMISSION_DENIED"),
    (ModelNotFoundError, 404, "NOT_FOUND"),
    (RateLimitError, 429, "RESOURCE_EXHAUSTED"),
    (OverloadedError, 503, "UNAVAILABLE"),
    (APITimeoutError, 504, "DEADLINE_EXCEEDED"),
    (ServerError, 500, "INTERNAL"),
    (CallerError, 400, "INVALID_ARGUMENT"),
    (ProviderError, 400, "INVALID_ARGUMENT"),
)
_delay = re.compile(r"(\d+(?:\.\d+)?)s").fullmatch


def from_wire_error(response: WireResponse) -> ProviderError:
    """Return the typed error of a failed answer: by its body, or by its status if the body names no error."""
    try:
        body = loads(response.body)
    except ValueError:
        body = None
    found = envelope_in(body)
    if found is None:
        return error_for_status(response)
    return error_from_envelope(found, status=response.status, headers=response.headers)


def envelope_in(body: Any) -> Mapping[str, Any] | None:
    """Return the error object of a body; the array form of a stream wraps it in a list."""
    if isinstance(body, list):
        return next((found for item in body if (found := envelope_in(item)) is not None), None)
    error = body.get("error") if isinstance(body, dict) else None
    if isinstance(error, str):
        return {"message": error}
    return error if isinstance(error, dict) else None


def error_from_envelope(
    error: Mapping[str, Any], *, status: int | None = None, headers: Mapping[str, str] | None = None
) -> ProviderError:
    """Return the typed error of an error object, of a failed answer or of a stream."""
    message = str(error.get("message") or "no message")
    code = error.get("code")
    word = error.get("status") or (code if isinstance(code, str) else None)
    details = [item for item in error.get("details") or () if isinstance(item, dict)]
    reasons = [str(item["reason"]) for item in details if "reason" in item]
    http_status = status if status is not None and status >= 400 else code if isinstance(code, int) else None
    kind = _class_of(message, word, reasons, http_status)
    return kind(
        message,
        status=status if status is not None else http_status,
        code=reasons[0] if reasons else word if isinstance(word, str) else None,
        retryable=False if word in _NOT_RETRIED else _BY_CODE.get(str(word), (None, None))[1],
        retry_after=_retry_delay(details) or retry_after(headers or {}),
    )


def _class_of(message: str, word: Any, reasons: list[str], status: int | None) -> type[ProviderError]:
    if any(reason in _KEY_REASONS for reason in reasons) or "API key not valid" in message:
        return AuthenticationError  # though its status is 400
    if any(reason in _MONEY_REASONS for reason in reasons) or _SPENT in message.lower():
        return QuotaExceededError
    if word in _INVALID and any(words in message for words in _TOO_LONG):
        return ContextWindowExceededError
    found = (_BY_STATUS_WORD.get(word) or _BY_CODE.get(word, (None,))[0]) if isinstance(word, str) else None
    return found or (error_class_for_status(status) if status else ServerError)


def _retry_delay(details: list[dict[str, Any]]) -> float | None:
    for item in details:
        delay = _delay(str(item.get("retryDelay")))
        if delay is not None:
            return float(delay[1])
    return None


def to_wire_error(error: InterlinguaError, context: ServeContext) -> WireResponse:
    """Write an error body with its status, in the form of the API."""
    body = error_envelope(error)
    status = body["error"]["code"]
    if context.api == INTERACTIONS:
        status, said = interaction_error(error)
        body = {"error": said}
    headers = {"content-type": "application/json; charset=UTF-8"}
    if error.retry_after is not None:
        headers["retry-after"] = f"{error.retry_after:.0f}"
    return WireResponse(status=status, headers=headers, body=dumps(body))


def interaction_error(error: InterlinguaError) -> tuple[int, dict[str, str]]:
    """Return the status of a failure and the error object of the Interactions API, whose code is a word."""
    said = error_envelope(error)["error"]
    return said["code"], {
        "message": said["message"],
        "code": _INTERACTION_WORDS.get(said["status"], said["status"].lower()),
    }


def error_envelope(error: InterlinguaError) -> dict[str, Any]:
    """Return the error object of a failure."""
    status, word = next(
        ((status, word) for kind, status, word in _WRITTEN if isinstance(error, kind)), (500, "INTERNAL")
    )
    if isinstance(error, ServerError) and error.status == 503:
        status, word = 503, "UNAVAILABLE"
    message = "internal error" if isinstance(error, PluginError) else error.message
    if isinstance(error, ContextWindowExceededError) and not any(words in message for words in _TOO_LONG):
        message = f"{_TOO_LONG_HERE}: {message}"
    made: dict[str, Any] = {"code": status, "message": message, "status": word}
    if isinstance(error, QuotaExceededError):
        info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": _MONEY_REASONS[0]}
        made["details"] = [{**info, "domain": "googleapis.com"}]
    elif error.retry_after is not None:
        delay = f"{error.retry_after:.3f}".rstrip("0").rstrip(".") + "s"
        made["details"] = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}]
    return {"error": made}
