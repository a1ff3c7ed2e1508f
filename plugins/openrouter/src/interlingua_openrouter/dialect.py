"""OpenRouter's models, and the dialect and capabilities of each.

The rules of a model's vendor apply too, because the vendor's rejections are returned as a 400 (WIRE.md, Upstream
rules).
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import attrs

from interlingua.plugins import FrozenDict, ModelInfo, find_model, load_catalogue
from interlingua.types import ModelCapabilities
from interlingua_anthropic.models import facts_of as claude_facts_of
from interlingua_chat_completions.dialect import Dialect, capabilities_of

# If no upstream of a model supports a part, the service answers 404 "no endpoints found". Images, files and forced
# tools are recorded; audio and video are stated only if the vendor takes them. A text document goes as text.
_DEFAULTS: dict[str, Any] = {
    "supports_images": True,
    "supports_image_urls": True,
    "supports_documents": True,
}
_VIDEO = {
    "supports_audio": True,
    "supports_video": True,
    "accepted_video_media_types": ["video/mp4", "video/mpeg", "video/quicktime", "video/webm"],
}
_VENDORS: dict[str, dict[str, Any]] = {
    "anthropic": {"tool_id_pattern": r"[A-Za-z0-9_-]{1,64}", "structured_output_with_tools": True},
    "openai": {"structured_output_with_tools": True},
    "google": _VIDEO,
    "x-ai": {"blank_text": "beside_calls"},  # recorded, as for z-ai
    "z-ai": {"blank_text": "beside_calls"},
    "mistralai": {"tool_id_pattern": r"[A-Za-z0-9]{9}", "tool_id_max_length": 9},
}
# Words of `metadata.error_type` (WIRE.md, Errors). Those as broad as a status (invalid_request, server, timeout,
# unmapped) are left to the status, so that a too long input that only the message names is still found.
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
    "payload_too_large": "ContextWindowExceededError",
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
    "no endpoints found that can handle the requested parameters": "BadRequestError",  # WIRE.md, Errors
    "no endpoints found matching your data policy": "PermissionDeniedError",
    "content violates usage guidelines": "ContentRefusedError",
}

DIALECT = Dialect(
    include_usage=False,  # without effect: usage is always sent (WIRE.md, Usage)
    top_k=True,
    stop_limit=4,
    user_field="user",
    effort_shape="object",
    thinking_shape="object",
    reasoning_fields=("reasoning", "reasoning_content"),
    reasoning_echo="reasoning",  # only if an answer had no details; recorded
    reasoning_scope="model",
    reasoning_details=True,
    parallel_tool_calls=True,
    structured="json_schema",
    image_details=("auto", "low", "high", "original"),
    file_urls=True,
    cache_breakpoints=True,
    cache_style="cache_control",
    error_codes=_ERROR_TYPES,
    error_phrases=_ERROR_PHRASES,
    request_id_headers=("x-generation-id", "x-request-id"),
)

# recorded 400s, two of each: the upstream is handed a forced function without its name; its other models take it
_NAMELESS = frozenset(("x-ai/grok-4", "x-ai/grok-4-fast", "x-ai/grok-code-fast-1"))
# what OpenAI itself refuses comes back as a 400; gpt-oss is served by others
_OPENAI = attrs.evolve(DIALECT, object_root=True)
_OPENAI_RESPONSES = attrs.evolve(_OPENAI, least_tokens=16)  # recorded: this model only; others of OpenAI take 1
# what Anthropic refuses comes back as a 400
_UNFORCED = attrs.evolve(DIALECT, tool_choices=frozenset(("auto", "none")))
_WITHOUT_NAMES = attrs.evolve(DIALECT, tool_choices=frozenset(("auto", "none", "required")))


def dialect_of(model: str) -> Dialect:
    """Return the dialect of one model and its variants (`vendor/model:variant`); the same object each time."""
    name = model.partition(":")[0].lstrip("~")
    if name == "openai/gpt-4.1":
        return _OPENAI_RESPONSES
    if name.startswith("openai/") and not name.startswith("openai/gpt-oss"):
        return _OPENAI
    if is_claude(name) and not facts_of_claude(name).get("forced_tool_choice", True):
        return _UNFORCED
    return _WITHOUT_NAMES if name in _NAMELESS else DIALECT


def is_claude(model: str) -> bool:
    """Return whether the vendor of a model is Anthropic, whose refusals come back through the router."""
    return model.lstrip("~").startswith("anthropic/")


def facts_of_claude(model: str) -> FrozenDict:
    """Return Anthropic's facts about a model of this router: `anthropic/claude-opus-5.5` is `claude-opus-5-5`."""
    name = model.partition(":")[0].lstrip("~").removeprefix("anthropic/")
    return claude_facts_of(name.replace(".", "-"))


@cache
def models() -> tuple[ModelInfo, ...]:
    """Return the catalogue."""
    return load_catalogue(files(__package__).joinpath("models.json").read_bytes())


@cache
def find_listed(name: str) -> ModelInfo | None:
    """Return the catalogue's entry; a variant (`vendor/model:variant`) that is not listed has its model's limits.

    It has no price, because core finds prices by the full name.
    """
    return find_model(models(), name) or find_model(models(), name.partition(":")[0])


@cache
def capabilities_for(name: str) -> ModelCapabilities:
    """Return the capabilities of a model; the same name returns the same object."""
    vendor = _VENDORS.get(name.partition("/")[0].lstrip("~"), {})
    stated = {**_DEFAULTS, **vendor, "caches_only_hints": is_claude(name)}
    return capabilities_of(dialect_of(name), stated, find_listed(name))
