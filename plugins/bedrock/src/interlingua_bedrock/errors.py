"""Typed errors from failed answers and exceptions inside a stream (WIRE.md, Errors)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.errors import (
    AuthenticationError,
    BadRequestError,
    ContextWindowExceededError,
    ModelNotFoundError,
    OverloadedError,
    PermissionDeniedError,
    ProviderError,
    QuotaExceededError,
    RateLimitError,
    ServerError,
)
from interlingua.plugins import WireResponse, error_class_for_status, error_for_status, loads, retry_after

REQUEST_ID = "x-amzn-requestid"
_BY_NAME: dict[str, type[ProviderError]] = {
    "AccessDenied": PermissionDeniedError,
    "ExpiredToken": AuthenticationError,
    "IncompleteSignature": AuthenticationError,
    "InternalFailure": ServerError,
    "InternalServer": ServerError,
    "InvalidClientTokenId": AuthenticationError,
    "InvalidSignature": AuthenticationError,
    "MissingAuthenticationToken": AuthenticationError,
    "ModelError": ServerError,
    "ModelNotReady": OverloadedError,
    "ModelStreamError": ServerError,
    "ModelTimeout": ServerError,
    "NotAuthorized": PermissionDeniedError,
    "OptInRequired": PermissionDeniedError,
    "RequestExpired": AuthenticationError,
    "ResourceNotFound": ModelNotFoundError,
    "ServiceQuotaExceeded": QuotaExceededError,
    "ServiceUnavailable": OverloadedError,
    "Throttling": RateLimitError,
    "TooManyRequests": RateLimitError,
    "UnrecognizedClient": AuthenticationError,
    "Validation": BadRequestError,
}
_TOO_LONG = (
    *("input is too long", "prompt is too long", "exceed context limit", "too many input tokens"),
    *("maximum context length", "exceeds the maximum number of tokens", "input tokens exceed"),
)
_NO_MODEL = ("model identifier is invalid", "model id is invalid")
_EXPIRED = ("security token included in the request is expired", "bearer token has expired")


def from_wire_error(response: WireResponse, *, own_thinking: bool = False) -> ProviderError:
    """Return the typed error of a failed answer: by its headers or body, else by its status.

    Args:
        response: the answer.
        own_thinking: the caller set the member `thinking` of Claude's own fields.
    """
    try:
        body = loads(response.body)
    except ValueError:
        body = None
    details = body if isinstance(body, dict) else {}
    name = error_name(response, details)
    if not details and not name:
        error = error_for_status(response)
        error.request_id = response.headers.get(REQUEST_ID)
        return error
    error = make_error(name, details, status=response.status, headers=response.headers)
    if response.status == 400 and not own_thinking:
        from interlingua_anthropic.errors import refuses_thinking  # noqa: PLC0415  for Claude alone

        error.refuses_thinking = refuses_thinking(error)
    return error


def error_name(response: WireResponse, details: Mapping[str, Any]) -> str:
    """Return the name of the exception in a failed answer; "" if it has no name."""
    return str(response.headers.get("x-amzn-errortype") or details.get("__type") or details.get("code") or "")


def make_error(
    name: str, details: Mapping[str, Any], *, status: int | None = None, headers: Mapping[str, str] | None = None
) -> ProviderError:
    """Return the typed error of an exception: of a failed answer, or of a frame in a stream.

    Args:
        name: the exception, in any of the forms `ns#ValidationException`, `ValidationException:http://…`,
            `validationException`.
        details: the body.
        status: status of the answer.
        headers: headers of the answer.
    """
    code = name.rpartition("#")[2].partition(":")[0]
    code = code[:1].upper() + code[1:]
    message = str(details.get("message") or details.get("Message") or "no message")
    original = [str(details[field]) for field in ("originalStatusCode", "originalMessage") if details.get(field)]
    if original:
        message = f"{message} (of the model: {': '.join(original)})"
    names = headers or {}
    kind = _class_of(code, message.lower(), status)
    return kind(
        message, status=status, code=code or None, request_id=names.get(REQUEST_ID), retry_after=retry_after(names)
    )


def _class_of(code: str, message: str, status: int | None) -> type[ProviderError]:
    kind = _BY_NAME.get(code.removesuffix("Exception"))
    if kind is None:
        kind = error_class_for_status(status) if status is not None and status >= 400 else ServerError
    if kind is BadRequestError:
        if any(words in message for words in _TOO_LONG):
            return ContextWindowExceededError
        if any(words in message for words in _NO_MODEL):
            return ModelNotFoundError
    if kind is PermissionDeniedError and any(words in message for words in _EXPIRED):
        return AuthenticationError
    return kind
