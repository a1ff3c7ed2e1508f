"""How this service speaks Chat Completions, as data for the shared format (sheet openrouter §2, §3, §5).

Never translates: the format library does, by the dialect it is given.
The plugin object, the catalogue and the service come in.
"""

from __future__ import annotations

import attrs

from interlingua_chat_completions.dialect import Dialect
from interlingua_chat_completions.format import ChatFormat

FORMAT = ChatFormat("openrouter")

# Words of `metadata.error_type` (sheet §5). Those as broad as a status (invalid_request, server, timeout, unmapped)
# are left to it, so that an overflow told in words only is still one.
_ERROR_TYPES = {
    "context_length_exceeded": "ContextWindowExceededError",
    "token_limit_exceeded": "ContextWindowExceededError",
    "max_tokens_exceeded": "BadRequestError",
    "string_too_long": "BadRequestError",
    "authentication": "AuthenticationError",
    "permission_denied": "PermissionDeniedError",
    "payment_required": "QuotaExceededError",
    "rate_limit_exceeded": "RateLimitError",
    "provider_overloaded": "OverloadedError",
    "provider_unavailable": "OverloadedError",
    "invalid_prompt": "BadRequestError",
    "not_found": "ModelNotFoundError",
    "precondition_failed": "BadRequestError",
    "payload_too_large": "BadRequestError",
    "unprocessable": "BadRequestError",
    "content_policy_violation": "ContentRefusedError",
    "refusal": "ContentRefusedError",
    "invalid_image": "BadRequestError",
    "image_too_large": "BadRequestError",
    "image_too_small": "BadRequestError",
    "unsupported_image_format": "BadRequestError",
    "image_not_found": "BadRequestError",
    "image_download_failed": "BadRequestError",
}

# Recorded 404s in which the model exists and the request's demands rule every upstream out, and a 403 of moderation.
_ERROR_PHRASES = {
    "no endpoints found that support": "BadRequestError",
    "no endpoints found matching your data policy": "PermissionDeniedError",
    "content violates usage guidelines": "ContentRefusedError",
}

DIALECT = Dialect(
    include_usage=False,  # §2: without effect, usage is always sent
    top_k=True,
    stop_limit=4,
    user_field="user",
    effort_shape="object",
    thinking_shape="object",
    reasoning_fields=("reasoning", "reasoning_content"),
    reasoning_echo="reasoning",  # only where an answer had no details; recorded
    reasoning_scope="model",
    reasoning_details=True,
    parallel_tool_calls=True,
    structured="json_schema",
    file_urls=True,
    cache_breakpoints=True,
    cache_style="cache_control",
    error_codes=_ERROR_TYPES,
    error_phrases=_ERROR_PHRASES,
    request_id_headers=("x-generation-id", "x-request-id"),
)

# recorded 400s, two of each: the upstream is handed a forced function without its name; its other models take it
_NAMELESS = frozenset(("x-ai/grok-4", "x-ai/grok-4-fast", "x-ai/grok-code-fast-1"))
_WITHOUT_NAMES = attrs.evolve(DIALECT, tool_choices=frozenset(("auto", "none", "required")))


def dialect_of(model: str) -> Dialect:
    """Return the dialect of one model, whichever variant (`vendor/model:variant`); the same object for the same one."""
    return _WITHOUT_NAMES if model.partition(":")[0].lstrip("~") in _NAMELESS else DIALECT
