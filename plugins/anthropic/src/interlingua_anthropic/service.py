"""The service: host, auth, API version, and what its errors mean (sheet anthropic §1, §10).

Never sends anything and never puts a key anywhere but into the signer's answer.
The plugin object and the stream come in.
"""

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
from interlingua.json import loads
from interlingua.plugins.wire import (
    Connection,
    ConnectionSettings,
    WireRequest,
    WireResponse,
    error_class_for_status,
    error_for_status,
    no_auth,
    retry_after,
)
from interlingua_anthropic.catalogue import API

VERSION = "2026-10-21"
SAMPLING_VERSION = "2023-06-01"  # the only live one that still takes temperature, top_p and top_k

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
_SHOULD_RETRY = {"true": True, "false": False}  # the service's own advice (sheet §10)
_ENVELOPE = ("error", "message", "detail")
_SPEND_CODES = ("enforced_spend_limit_reached", "contract_spend_limit_reached")
_TOO_LONG = (
    "prompt is too long",
    "exceed context limit",
    "exceeds the maximum context",
    "exceeds the available context",
)


def connection(settings: ConnectionSettings) -> Connection:
    """Say how to reach the service.

    Options: `version` pins `anthropic-version`; `workspace_id`, `user_profile_id` and `betas` become headers; `auth:
    bearer` sends the key as a bearer token instead of `x-api-key` (exactly one of them is sent, sheet §1).
    """
    key = settings.api_key or settings.environ.get("ANTHROPIC_API_KEY")
    base = settings.base_url or settings.environ.get("ANTHROPIC_BASE_URL") or "https://api.anthropic.com"
    bearer = settings.options.get("auth") == "bearer"

    def auth(_request: WireRequest) -> Mapping[str, str]:
        return {"authorization": f"Bearer {key}"} if bearer else {"x-api-key": str(key)}

    headers = {"anthropic-version": str(settings.options.get("version", VERSION))}
    if betas := settings.options.get("betas"):
        headers["anthropic-beta"] = betas if isinstance(betas, str) else ",".join(betas)
    for option in ("workspace_id", "user_profile_id"):
        if value := settings.options.get(option):
            headers[f"anthropic-{option.replace('_', '-')}"] = str(value)
    return Connection(
        base_url=base.rstrip("/").removesuffix("/v1"),
        auth=auth if key else no_auth,
        headers=headers,
        joined=("anthropic-beta",),  # a list (sheet §1): a request adds to what the connection set
        env=("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
        has_key=bool(key) or settings.base_url is not None,
        hosts=("api.anthropic.com", "aiplatform.googleapis.com"),
        endpoints={API: r"(/messages|:(r|streamR)awPredict)$"},
    )


def from_wire_error(response: WireResponse) -> ProviderError:
    """Turn a failed answer into the typed error its body names; status alone decides where there is no body."""
    try:
        body = loads(response.body)
    except ValueError:
        body = None
    if isinstance(body, list) and body:
        body = body[0]  # as the cloud host wraps its errors
    if isinstance(body, dict):
        return error_from_body(body, status=response.status, headers=response.headers)
    error = error_for_status(response)  # an edge answer, such as 413, may lack the JSON shape (sheet §10)
    error.request_id = response.headers.get("request-id")
    return error


def is_error(body: Mapping[str, Any]) -> bool:
    """True when a body or an event is an error; proxies leave the type out."""
    if "type" in body:
        return bool(body["type"] == "error")
    return bool(body.get("error")) or any(isinstance(body.get(name), str) for name in _ENVELOPE)


def error_from_body(body: Any, *, status: int | None = None, headers: Mapping[str, str] | None = None) -> ProviderError:
    """Turn an error object (of a failed answer or of a stream) into its typed error."""
    envelope = body if isinstance(body, dict) else {}
    detail = envelope.get("error")
    if not isinstance(detail, dict):
        told = next((envelope[name] for name in _ENVELOPE if envelope.get(name)), None)
        detail = {"message": told or str(body or "")}
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
    if code in _SPEND_CODES:
        return QuotaExceededError
    if any(phrase in message.lower() for phrase in _TOO_LONG):
        return ContextWindowExceededError
    found = _BY_TYPE.get(kind)
    if found is BadRequestError and status not in (None, 400):
        return error_class_for_status(status)  # the type is "also used for other 4xx" (sheet §10)
    if found is None:
        return error_class_for_status(status) if status else ServerError
    return found
