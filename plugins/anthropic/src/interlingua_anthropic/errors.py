"""Typed errors from failed answers and error events, and errors written for callers of this API."""

from __future__ import annotations

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
from interlingua.plugins import (
    RequestContext,
    WireResponse,
    dumps,
    error_class_for_status,
    error_for_status,
    loads,
    retry_after,
)

if TYPE_CHECKING:
    from interlingua_serving import ServeContext

THREAD_REFUSED = "thread_unsupported_request"
"""The code that makes callers send the whole conversation instead of a message thread (WIRE.md)."""
_BY_TYPE: dict[str, type[ProviderError]] = {
    "invalid_request_error": BadRequestError,
    "authentication_error": AuthenticationError,
    "billing_error": QuotaExceededError,
    "permission_error": PermissionDeniedError,
    "not_found_error": ModelNotFoundError,
    "request_too_large": ContextWindowExceededError,
    "conflict_error": ServerError,
    "rate_limit_error": RateLimitError,
    "api_error": ServerError,
    "timeout_error": ServerError,
    "overloaded_error": OverloadedError,
}
_SHOULD_RETRY = {"true": True, "false": False}  # WIRE.md, Errors
_ENVELOPE = ("error", "message", "detail")
_SPEND_CODES = ("enforced_spend_limit_reached", "contract_spend_limit_reached")
_SPENT = "credit balance is too low"  # a 400 of the broad type
_BAD_SIGNATURE = "invalid `signature` in `thinking` block"
OWN_THINKING = "own_thinking"
"""In a request's echo: the caller set `thinking`, and with it how thinking of another conversation is taken."""
_TOO_LONG_HERE = "prompt is too long"  # clients look for these words to shorten their history
_TOO_LONG = (
    "prompt is too long",
    "exceed context limit",
    "exceeds the maximum context",
    "exceeds the available context",
)

_WRITTEN: tuple[tuple[type[InterlinguaError], int, str], ...] = (
    (AuthenticationError, 401, "authentication_error"),
    (QuotaExceededError, 402, "billing_error"),
    (PermissionDeniedError, 403, "permission_error"),
    (ModelNotFoundError, 404, "not_found_error"),
    (RateLimitError, 429, "rate_limit_error"),
    (OverloadedError, 529, "overloaded_error"),
    (APITimeoutError, 504, "timeout_error"),
    (ServerError, 500, "api_error"),
    (CallerError, 400, "invalid_request_error"),
    (ProviderError, 400, "invalid_request_error"),
)


def from_wire_error(response: WireResponse, context: RequestContext) -> ProviderError:
    """Return the typed error of a failed answer: by its body, or by its status if the body is not readable."""
    error = _from_wire_error(response)
    error.refuses_thinking = refuses_thinking(error) and OWN_THINKING not in context.echo
    return error


def refuses_thinking(error: ProviderError) -> bool:
    """Return True if the service refused the signature of earlier thinking, on any host (WIRE.md, Thinking)."""
    return type(error) is BadRequestError and _BAD_SIGNATURE in error.message.lower()


def _from_wire_error(response: WireResponse) -> ProviderError:
    try:
        body = loads(response.body)
    except ValueError:
        body = None
    if isinstance(body, list) and body:
        body = body[0]  # as the cloud host wraps its errors
    if isinstance(body, dict):
        return error_from_body(body, status=response.status, headers=response.headers)
    error = error_for_status(response)  # an edge answer, such as 413, may not be JSON
    error.request_id = response.headers.get("request-id")
    return error


def is_error(body: Mapping[str, Any]) -> bool:
    """Return True for an error body or event; some proxies leave out its type."""
    if "type" in body:
        return bool(body["type"] == "error")
    return bool(body.get("error")) or any(isinstance(body.get(name), str) for name in _ENVELOPE)


def error_from_body(body: Any, *, status: int | None = None, headers: Mapping[str, str] | None = None) -> ProviderError:
    """Return the typed error of an error object, of a failed answer or of a stream."""
    envelope = body if isinstance(body, dict) else {}
    detail = envelope.get("error")
    if not isinstance(detail, dict):
        text = next((envelope[name] for name in _ENVELOPE if envelope.get(name)), None)
        detail = {"message": text or str(body or "")}
    message = str(detail.get("message") or "no message")
    details = detail.get("details")
    code = details.get("error_code") if isinstance(details, dict) else None
    names = headers or {}
    failed = status if status is not None and status >= 400 else None
    kind = _class_of(str(detail.get("type")), message, code, failed)
    return kind(
        message,
        status=status,
        request_id=_text(envelope.get("request_id")) or names.get("request-id"),
        code=_text(code) or _text(detail.get("type")),
        retryable=_SHOULD_RETRY.get(names.get("x-should-retry", "")),
        retry_after=retry_after(names),
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _class_of(kind: str, message: str, code: str | None, status: int | None) -> type[ProviderError]:
    if code in _SPEND_CODES or _SPENT in message.lower():
        return QuotaExceededError
    if any(phrase in message.lower() for phrase in _TOO_LONG):
        return ContextWindowExceededError
    found = _BY_TYPE.get(kind)
    if found is BadRequestError and status not in (None, 400):
        return error_class_for_status(status)  # the type is used for other 4xx as well
    if found is None:
        return error_class_for_status(status) if status else ServerError
    return found


def to_wire_error(error: InterlinguaError, context: ServeContext) -> WireResponse:
    """Write an error body with its status."""
    status, detail = error_detail(error)
    body = {"type": "error", "error": detail, "request_id": f"req_{context.answer_id}"}
    headers = {"content-type": "application/json", "request-id": f"req_{context.answer_id}"}
    if error.retry_after is not None:
        headers["retry-after"] = f"{error.retry_after:.0f}"
    return WireResponse(status=status, headers=headers, body=dumps(body))


def error_detail(error: InterlinguaError) -> tuple[int, dict[str, Any]]:
    """Return the status and the error object of a failure."""
    found = [(status, kind) for cls, status, kind in _WRITTEN if isinstance(error, cls)]
    status, kind = found[0] if found else (500, "api_error")
    message = "internal error" if isinstance(error, PluginError) else error.message
    if isinstance(error, ContextWindowExceededError) and _TOO_LONG_HERE not in message.lower():
        message = f"{_TOO_LONG_HERE}: {message}"
    detail: dict[str, Any] = {"type": kind, "message": message}
    if error.code == THREAD_REFUSED:
        detail["details"] = {"error_code": error.code}
    return status, detail
