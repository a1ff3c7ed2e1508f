"""Typed errors from failed answers, by the words of their envelope, then the status; error bodies for callers."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any

import attrs

from interlingua import errors
from interlingua.errors import (
    APITimeoutError,
    AuthenticationError,
    BadRequestError,
    CallerError,
    ContentRefusedError,
    ContextWindowExceededError,
    InterlinguaError,
    ModelNotFoundError,
    OverloadedError,
    PermissionDeniedError,
    PluginError,
    ProviderError,
    QuotaExceededError,
    RateLimitError,
    RejectedAnswerError,
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
from interlingua.types import ErrorInfo, MessageStatus, StopReason, TextBlock
from interlingua_chat_completions.dialect import Dialect

_WORDS: dict[type[ProviderError], tuple[str, ...]] = {
    ContextWindowExceededError: (
        "context_length_exceeded", "exceed_context_size_error", "too_many_prompt_tokens",
        "model_context_window_exceeded", "context_window_exceeded", "token_limit_exceeded",
    ),
    QuotaExceededError: (
        "insufficient_quota", "credit_balance_exhausted", "billing_hard_limit_reached", "billing_not_active",
        "insufficient_balance", "payment_required", "exceeded_current_quota_error",
    ),
    RateLimitError: ("slow_down", "rate_limit_exceeded", "rate_limit_error", "ratelimitreached", "too_many_requests"),
    OverloadedError: (
        "server_is_overloaded", "overloaded_error", "overloaded", "service_unavailable_error", "provider_overloaded",
        "provider_unavailable", "engine_overloaded_error",
    ),
    ContentRefusedError: (
        "content_filter", "content_policy_violation", "responsibleaipolicyviolation", "moderation_blocked", "refusal",
    ),
    ModelNotFoundError: (
        "model_not_found", "model_decommissioned", "deploymentnotfound", "unknown_model", "model_not_available",
    ),
    AuthenticationError: ("invalid_api_key", "authentication_error", "authentication"),
    PermissionDeniedError: (
        "permission_denied", "permission_error", "unsupported_country_region_territory", "forbidden",
    ),
}  # fmt: skip
_BY_WORD: dict[str, type[ProviderError]] = {word: kind for kind, words in _WORDS.items() for word in words}
# too broad to overrule a status; they decide only for an error inside a 200
_BY_WORD_WITHOUT_STATUS: dict[str, type[ProviderError]] = {
    "invalid_request_error": BadRequestError,
    "invalid_request": BadRequestError,
    "bad request": BadRequestError,
    "server_error": ServerError,
    "internal_error": ServerError,
    "internal_server_error": ServerError,
    "api_error": ServerError,
    "server": ServerError,
    "timeout": ServerError,
}
# too many input tokens are answered with 400, 413, 429 or 500, and only the message tells
_OVERFLOW_PHRASES = (
    "maximum context length", "max context length", "context length exceeded", "available context size",
    "exceeds the context", "exceed the context", "context window", "prompt is too long", "prompt too long",
    "input is too long", "reduce the length of the messages", "request too large",
)  # fmt: skip
# a single request above the limit per minute: waiting does not help, and the model's window is not what it exceeds
_NEVER_FITS = re.compile(r"request too large\b.*(?:tokens per min|\(tpm\))", re.DOTALL)
# services that answer 400 with a broad code, or none, and say it in words only (recorded traffic)
_MODEL_MISSING = re.compile(
    r"\bmodel(?: not found| not exist|[ :][`'\"]?\S+ (?:does not exist|was not found|not found))"
    r"|\bis not a valid model id\b|\bsupported api model names are\b"
)
# a 404 that is not about the model's name: it is there and cannot do this
_UNSUPPORTED = re.compile(r"\b(?:is|are) not supported (?:in|by|with) this model\b")
_WAIT = re.compile(r"\b(?:try again|retry) in (?:(?P<m>\d+)m)?(?:(?P<s>\d+(?:\.\d+)?)s|(?P<ms>\d+(?:\.\d+)?)ms)")
_SOME_DAY_IN_MILLISECONDS = 1e11  # as seconds, the year 5138
_KEY_PHRASES = ("incorrect api key", "invalid api key")
_WORDS_ONLY_STATUSES = frozenset((None, 400, 404))
_QUOTA_PHRASES = (
    "insufficient balance", "exceeded your current quota", "insufficient credits",
    "credit balance is too low", "credits are depleted", "used all available credits",  # of makers behind a router
)  # fmt: skip
_OVERFLOW_STATUSES = frozenset((None, 400, 413, 422, 429, 500))
_ENVELOPE_KEYS = ("error", "detail", "errors", "message", "msg")
_NO_HEADERS: Mapping[str, str] = {}


@attrs.frozen
class _Envelope:
    message: str
    words: tuple[str, ...]
    status: int | None
    request_id: str | None = None
    headers: Mapping[str, str] = _NO_HEADERS
    rejected: str | None = None


def error_in(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the object that holds the error in a body whose status is not one: the body, or its first choice."""
    if body.get("error"):
        return body
    choices = body.get("choices")
    if choices:
        first = choices[0] if isinstance(choices, list) else None
        return first if isinstance(first, dict) and first.get("error") else None
    return body if body.get("object") == "error" or any(body.get(key) for key in _ENVELOPE_KEYS) else None


def from_wire_error(response: WireResponse, dialect: Dialect, context: RequestContext | None = None) -> ProviderError:
    """Return the typed error of an answer with a status of 400 and above; `context` as for `from_wire_error_body`."""
    try:
        body = loads(response.body)
    except ValueError:
        body = None
    if isinstance(body, list) and body:
        body = body[0]
    if not isinstance(body, dict) or not any(body.get(key) for key in _ENVELOPE_KEYS):
        return error_for_status(response)
    return from_wire_error_body(body, dialect, status=response.status, headers=response.headers, context=context)


def from_wire_error_body(
    body: Mapping[str, Any],
    dialect: Dialect,
    *,
    status: int | None = None,
    headers: Mapping[str, str] = _NO_HEADERS,
    context: RequestContext | None = None,
) -> ProviderError:
    """Return the typed error of an error body.

    Args:
        body: the object that holds the envelope.
        dialect: its `error_codes` have precedence.
        status: the HTTP status; None inside a 200, whose envelope may hold a number instead.
        headers: names in lower case; the delay, the request id and `x-should-retry` are read. A router reports the
            headers of its upstream in the body; they are used for missing ones.
        context: context of the exchange, to read an answer that the service made and rejected.
    """
    envelope = _envelope(body)
    status = status if status is not None else envelope.status
    kind = _kind(envelope, status, dialect)
    if envelope.rejected is not None and kind is BadRequestError:
        kind = RejectedAnswerError
    error = kind(
        envelope.message,
        status=status,
        code=next(iter(envelope.words), None),
        request_id=_request_id(headers, dialect) or envelope.request_id,
        retry_after=_delay(headers, envelope, kind),
    )
    if isinstance(error, RejectedAnswerError) and context is not None:
        error.partial = context.message(
            [TextBlock(text=envelope.rejected)] if envelope.rejected else [],
            stop_reason=StopReason.ERROR,
            status=MessageStatus.ERROR,
            error=ErrorInfo(type=type(error).__name__, message=str(error)),
        )
    wish = headers.get("x-should-retry")
    if wish in ("true", "false"):
        error.retryable = wish == "true"
    if _NEVER_FITS.search(envelope.message.lower()):
        error.retryable = False
    return error


def _delay(headers: Mapping[str, str], envelope: _Envelope, kind: type[ProviderError]) -> float | None:
    """Return the seconds to wait: from the headers, else headers in the body, a limit's reset time, or the message."""
    found = retry_after(headers)
    if found is None:
        found = retry_after(envelope.headers)
    if found is not None or not issubclass(kind, errors.RateLimitError):
        return found
    reset = headers.get("x-ratelimit-reset") or envelope.headers.get("x-ratelimit-reset")
    if reset is not None and reset.isdecimal():  # OpenRouter's: the time, in milliseconds
        moment = float(reset) / (1000 if float(reset) > _SOME_DAY_IN_MILLISECONDS else 1)
        return max(moment - time.time(), 0.0)
    wait = _WAIT.search(envelope.message.lower())
    if wait is None:
        return None
    return float(wait["m"] or 0) * 60 + float(wait["s"] or 0) + float(wait["ms"] or 0) / 1000


def _request_id(headers: Mapping[str, str], dialect: Dialect) -> str | None:
    return next((headers[name] for name in dialect.request_id_headers if headers.get(name)), None)


def _kind(envelope: _Envelope, status: int | None, dialect: Dialect) -> type[ProviderError]:
    text = envelope.message.lower()
    named_by_phrase = [name for phrase, name in dialect.error_phrases.items() if phrase in text]
    for name in (*named_by_phrase, *(dialect.error_codes.get(word) for word in envelope.words)):
        named = getattr(errors, str(name), None)
        if named is not None:
            return named  # type: ignore[no-any-return]
    if _NEVER_FITS.search(text):
        return errors.RateLimitError
    if status in _OVERFLOW_STATUSES and any(phrase in text for phrase in _OVERFLOW_PHRASES):
        return errors.ContextWindowExceededError
    for word in envelope.words:
        kind = _BY_WORD.get(word.lower())
        if kind is not None:
            return kind
    kind = _of_text(text, status)
    if kind is not None:
        return kind
    if status is not None and status >= 400:
        named = getattr(errors, str(dialect.error_codes.get(f"status {status}")), None)
        return named or error_class_for_status(status)
    for word in envelope.words:
        kind = _BY_WORD_WITHOUT_STATUS.get(word.lower())
        if kind is not None:
            return kind
    return errors.ServerError


def _of_text(text: str, status: int | None) -> type[ProviderError] | None:
    """Return the class that follows only from the message."""
    if any(phrase in text for phrase in _QUOTA_PHRASES):
        return errors.QuotaExceededError
    if status in _WORDS_ONLY_STATUSES and any(phrase in text for phrase in _KEY_PHRASES):
        return errors.AuthenticationError
    if status in _WORDS_ONLY_STATUSES and _MODEL_MISSING.search(text):
        return errors.ModelNotFoundError
    if status == 404 and _UNSUPPORTED.search(text):
        return errors.BadRequestError
    return None


def _envelope(body: Mapping[str, Any]) -> _Envelope:
    inner: Any = body.get("error") or body.get("detail") or body.get("errors")
    if isinstance(inner, list) and inner:
        inner = inner[0]
    holder: Mapping[str, Any] = inner if isinstance(inner, dict) else body
    message = holder.get("message") or holder.get("msg") or (inner if not isinstance(inner, dict) else None)
    if not isinstance(message, str):
        message = dumps(message or dict(body)).decode()[:1000]
    metadata = holder.get("metadata")
    message += _upstream(metadata, message)
    words, status = _words(holder)
    request_id = body.get("request_id")
    inner_headers = metadata.get("headers") if isinstance(metadata, dict) else None
    headers = (
        {name.lower(): str(text) for name, text in inner_headers.items()} if isinstance(inner_headers, dict) else {}
    )
    rejected = holder.get("failed_generation")
    return _Envelope(
        message,
        words,
        status,
        request_id if isinstance(request_id, str) else None,
        headers,
        rejected if isinstance(rejected, str) else None,
    )


def _upstream(metadata: Any, message: str) -> str:
    """Return the message of a router's upstream; the router's own message is often generic."""
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    if not isinstance(raw, str) or not raw or raw in message:
        return ""
    return f" ({metadata.get('provider_name') or 'upstream'}: {raw[:600]})"


def _words(holder: Mapping[str, Any]) -> tuple[tuple[str, ...], int | None]:
    """Collect the words that classify, narrowest first, and a status number among them."""
    found: list[Any] = [holder.get("code"), holder.get("type")]
    for name in (
        "metadata",
        "innererror",
    ):  # OpenRouter's; and one in recorded traffic
        inner = holder.get(name)
        if isinstance(inner, dict):
            found += [inner.get("error_type"), inner.get("code")]
    numbers = [str(holder.get(name)) for name in ("status_code", "status", "code")]
    status = next((int(number) for number in numbers if number.isdecimal() and 400 <= int(number) <= 599), None)
    return tuple(str(word) for word in found if isinstance(word, str | int) and word != ""), status


# what each failure is called when this format is served: status, `type`, `code`
_WRITTEN: tuple[tuple[type[InterlinguaError], int, str, str | None], ...] = (
    (AuthenticationError, 401, "invalid_request_error", "invalid_api_key"),
    (QuotaExceededError, 429, "insufficient_quota", "insufficient_quota"),
    (PermissionDeniedError, 403, "permission_error", "permission_denied"),
    (ModelNotFoundError, 404, "invalid_request_error", "model_not_found"),
    (RateLimitError, 429, "rate_limit_error", "rate_limit_exceeded"),
    (OverloadedError, 503, "overloaded_error", "server_is_overloaded"),
    (ContextWindowExceededError, 400, "invalid_request_error", "context_length_exceeded"),
    (ContentRefusedError, 400, "invalid_request_error", "content_policy_violation"),
    (APITimeoutError, 504, "server_error", "timeout"),
    (ServerError, 500, "server_error", None),
    (CallerError, 400, "invalid_request_error", None),
    (ProviderError, 400, "invalid_request_error", None),
)


def error_detail(error: InterlinguaError) -> tuple[int, dict[str, Any]]:
    """Return the status and the error object of a failure, as OpenAI writes them."""
    found = [(status, kind, code) for cls, status, kind, code in _WRITTEN if isinstance(error, cls)]
    status, kind, code = found[0] if found else (500, "server_error", None)
    message = "internal error" if isinstance(error, PluginError) else error.message
    return status, {"message": message, "type": kind, "param": None, "code": code}


def to_wire_error(error: InterlinguaError) -> WireResponse:
    """Write an error body with its status."""
    status, detail = error_detail(error)
    headers = {"content-type": "application/json"}
    if error.retry_after is not None:
        headers["retry-after"] = f"{error.retry_after:.0f}"
    return WireResponse(status=status, headers=headers, body=dumps({"error": detail}))
