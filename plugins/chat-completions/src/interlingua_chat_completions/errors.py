"""Failed answers to typed errors: the envelope in its several shapes, then its words, then the status.

Never raises and never retries; an envelope that cannot be read is classified by status alone.
The format's front door and both readers come in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from interlingua import errors as tree
from interlingua.errors import ProviderError
from interlingua.json import dumps, loads
from interlingua.plugins.wire import WireResponse, error_class_for_status, error_for_status, retry_after
from interlingua_chat_completions.dialect import Dialect
from interlingua_chat_completions.error_words import (
    BY_WORD,
    BY_WORD_WITHOUT_STATUS,
    KEY_PHRASES,
    MODEL_MISSING,
    NEVER_FITS,
    OVERFLOW_PHRASES,
    OVERFLOW_STATUSES,
    QUOTA_PHRASES,
    WORDS_ONLY_STATUSES,
)

_ENVELOPE_KEYS = ("error", "detail", "errors", "message", "msg")
_NO_HEADERS: Mapping[str, str] = {}


@attrs.frozen
class _Envelope:
    message: str
    words: tuple[str, ...]
    status: int | None
    request_id: str | None = None


def is_error(body: Mapping[str, Any]) -> bool:
    """True when a body with a good status is an error all the same (REGRESSIONS case 15)."""
    if body.get("error") or body.get("choices"):
        return bool(body.get("error"))
    return body.get("object") == "error" or any(body.get(key) for key in _ENVELOPE_KEYS)


def from_wire_failure(response: WireResponse, dialect: Dialect) -> ProviderError:
    """Return the typed error of an answer with a status of 400 and above."""
    try:
        body = loads(response.body)
    except ValueError:
        body = None
    if isinstance(body, list) and body:
        body = body[0]
    if not isinstance(body, dict) or not any(body.get(key) for key in _ENVELOPE_KEYS):
        return error_for_status(response)
    return from_wire_envelope(body, dialect, status=response.status, headers=response.headers)


def from_wire_envelope(
    body: Mapping[str, Any], dialect: Dialect, *, status: int | None = None, headers: Mapping[str, str] = _NO_HEADERS
) -> ProviderError:
    """Return the typed error of an error body.

    Args:
        body: the object that holds the envelope.
        dialect: its `error_codes` come first.
        status: the HTTP status; None inside a 200, where the envelope's own number stands in for it.
        headers: names in lower case; they tell the delay, the request id and `x-should-retry`.
    """
    envelope = _envelope(body)
    status = status if status is not None else envelope.status
    kind = _kind(envelope, status, dialect)
    error = kind(
        envelope.message,
        status=status,
        code=next(iter(envelope.words), None),
        request_id=_request_id(headers, dialect) or envelope.request_id,
        retry_after=retry_after(headers),
    )
    wish = headers.get("x-should-retry")
    if wish in ("true", "false"):
        error.retryable = wish == "true"
    if NEVER_FITS.search(envelope.message.lower()):
        error.retryable = False
    return error


def _request_id(headers: Mapping[str, str], dialect: Dialect) -> str | None:
    return next((headers[name] for name in dialect.request_id_headers if headers.get(name)), None)


def _kind(envelope: _Envelope, status: int | None, dialect: Dialect) -> type[ProviderError]:
    text = envelope.message.lower()
    told = [name for phrase, name in dialect.error_phrases.items() if phrase in text]
    for name in (*told, *(dialect.error_codes.get(word) for word in envelope.words)):
        named = getattr(tree, str(name), None)
        if named is not None:
            return named  # type: ignore[no-any-return]
    if NEVER_FITS.search(text):
        return tree.RateLimitError
    if status in OVERFLOW_STATUSES and any(phrase in text for phrase in OVERFLOW_PHRASES):
        return tree.ContextWindowExceededError
    for word in envelope.words:
        kind = BY_WORD.get(word.lower())
        if kind is not None:
            return kind
    kind = _of_text(text, status)
    if kind is not None:
        return kind
    if status is not None and status >= 400:
        named = getattr(tree, str(dialect.error_codes.get(f"status {status}")), None)
        return named or error_class_for_status(status)
    for word in envelope.words:
        kind = BY_WORD_WITHOUT_STATUS.get(word.lower())
        if kind is not None:
            return kind
    return tree.ServerError


def _of_text(text: str, status: int | None) -> type[ProviderError] | None:
    """Return the class that only the message names."""
    if any(phrase in text for phrase in QUOTA_PHRASES):
        return tree.QuotaExceededError
    if status in WORDS_ONLY_STATUSES and any(phrase in text for phrase in KEY_PHRASES):
        return tree.AuthenticationError
    if status in WORDS_ONLY_STATUSES and MODEL_MISSING.search(text):
        return tree.ModelNotFoundError
    return None


def _envelope(body: Mapping[str, Any]) -> _Envelope:
    inner: Any = body.get("error") or body.get("detail") or body.get("errors")
    if isinstance(inner, list) and inner:
        inner = inner[0]
    holder: Mapping[str, Any] = inner if isinstance(inner, dict) else body
    message = holder.get("message") or holder.get("msg") or (inner if not isinstance(inner, dict) else None)
    if not isinstance(message, str):
        message = dumps(message or dict(body)).decode()[:1000]
    message += _upstream(holder.get("metadata"), message)
    words, status = _words(holder)
    request_id = body.get("request_id")
    return _Envelope(message, words, status, request_id if isinstance(request_id, str) else None)


def _upstream(metadata: Any, message: str) -> str:
    """Return what the service behind a router said; the router's own message often says only that there was one."""
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    if not isinstance(raw, str) or not raw or raw in message:
        return ""
    return f" ({metadata.get('provider_name') or 'upstream'}: {raw[:600]})"


def _words(holder: Mapping[str, Any]) -> tuple[tuple[str, ...], int | None]:
    """Collect the words that classify, narrowest first, and a status number among them."""
    found: list[Any] = [holder.get("code"), holder.get("type")]
    for name in ("metadata", "innererror"):  # sheet openrouter §5; the second one from recorded traffic
        inner = holder.get(name)
        if isinstance(inner, dict):
            found += [inner.get("error_type"), inner.get("code")]
    numbers = [str(holder.get(name)) for name in ("status_code", "status", "code")]
    status = next((int(number) for number in numbers if number.isdecimal() and 400 <= int(number) <= 599), None)
    return tuple(str(word) for word in found if isinstance(word, str | int) and word != ""), status
