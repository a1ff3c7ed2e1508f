"""The words services put into `code`, `type` and messages, and the error class each stands for.

Never reads a body: the tables only. Sources: sheets openai_chat §8, openrouter §5, and the errors in recorded traffic.
The error reader comes in.
"""

from __future__ import annotations

import re

from interlingua.errors import (
    AuthenticationError,
    BadRequestError,
    ContentRefusedError,
    ContextWindowExceededError,
    ModelNotFoundError,
    OverloadedError,
    PermissionDeniedError,
    ProviderError,
    QuotaExceededError,
    RateLimitError,
    ServerError,
)

_WORDS: dict[type[ProviderError], tuple[str, ...]] = {
    ContextWindowExceededError: (
        "context_length_exceeded", "exceed_context_size_error", "too_many_prompt_tokens",
        "model_context_window_exceeded", "context_window_exceeded", "token_limit_exceeded",
    ),
    QuotaExceededError: (
        "insufficient_quota", "credit_balance_exhausted", "billing_hard_limit_reached", "billing_not_active",
        "insufficient_balance", "payment_required",
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
    PermissionDeniedError: ("permission_denied", "permission_error", "unsupported_country_region_territory", "forbidden"),
}  # fmt: skip
BY_WORD: dict[str, type[ProviderError]] = {word: kind for kind, words in _WORDS.items() for word in words}

# too broad to overrule a status; they decide only where there is none: an error inside a 200
BY_WORD_WITHOUT_STATUS: dict[str, type[ProviderError]] = {
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

# REGRESSIONS case 26: overflow comes as 400, 413, 429 or 500 and only its text says so
OVERFLOW_PHRASES = (
    "maximum context length", "max context length", "context length exceeded", "available context size",
    "exceeds the context", "exceed the context", "context window", "prompt is too long", "prompt too long",
    "input is too long", "reduce the length of the messages", "request too large",
)  # fmt: skip
# a single request above the limit per minute: waiting does not help, and the model's window is not what it exceeds
NEVER_FITS = re.compile(r"request too large\b.*(?:tokens per min|\(tpm\))", re.DOTALL)
# services that answer 400 with a broad code, or none, and say it in words only (recorded traffic)
MODEL_MISSING = re.compile(r"\bmodel(?: not found|[ :][`'\"]?\S+ (?:does not exist|was not found|not found))")
KEY_PHRASES = ("incorrect api key", "invalid api key")
WORDS_ONLY_STATUSES = frozenset((None, 400, 404))
QUOTA_PHRASES = ("insufficient balance", "exceeded your current quota", "insufficient credits")
OVERFLOW_STATUSES = frozenset((None, 400, 413, 422, 429, 500))
