"""OpenAI's models and their capabilities by API; a model that is not listed has the defaults, marked as assumed."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import attrs

from interlingua.errors import CapabilityError
from interlingua.plugins import EMPTY, FrozenDict, ModelInfo, find_model, load_catalogue
from interlingua.types import ModelCapabilities

RESPONSES = "responses"
CHAT = "chat"
APIS = (RESPONSES, CHAT)
USER_ID_LENGTH = 128  # WIRE.md, Chat request
IMAGE_DETAILS = ("auto", "low", "high", "original")  # WIRE.md, Chat content parts

_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_PDF = "application/pdf"
_SEARCHES_TOOLS = ("gpt-5.4", "gpt-5.5", "gpt-5.6", "gpt-6")  # families (WIRE.md, Changes)
_DOCUMENTS = (
    _PDF,
    "text/plain",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
)

# Limits of every model on either API. Call ids are opaque, 64 characters at most (WIRE.md, Responses tools);
# the pattern holds the characters of ids that services on these wires issue themselves.
_COMMON = ModelCapabilities(
    supports_images=True,
    supports_tools=True,
    supports_system_prompt=True,
    supports_structured_output=True,
    supports_streaming=True,
    supports_streaming_tool_calls=True,
    supports_parallel_tool_calls=True,
    supports_system_messages_in_list=True,
    max_context_tokens=128_000,
    max_output_tokens=16_384,
    accepted_image_media_types=_IMAGES,
    supports_image_urls=True,
    supports_documents=True,
    accepted_document_media_types=(_PDF, "text/plain", "text/markdown", "text/csv"),
    supports_tool_choice=True,
    supports_named_tool_choice=True,
    blank_text="anywhere",  # recorded on both APIs, of users and of assistants
    tool_id_pattern=r"[A-Za-z0-9_.:-]{1,64}",
    # response schemas (WIRE.md, Structured outputs)
    structured_output_with_tools=True,
    structured_output_streams=True,
    structured_in_prompt=True,
    forced_tool_with_thinking=True,
    schema_all_required=True,
    schema_recursive=True,
    schema_max_depth=10,
    schema_max_properties=5000,
    schema_max_enum_values=1000,
    assumed=True,
)

DEFAULTS: dict[str, ModelCapabilities] = {
    RESPONSES: attrs.evolve(
        _COMMON,
        api=RESPONSES,
        json_mode={"text": {"format": {"type": "json_object"}}},  # the input holds the word "json"
        supports_thinking=True,
        thinking_scope="model",
        supports_citations=True,
        supports_tool_result_images=True,
        supports_tool_result_documents=True,
        accepted_document_media_types=_DOCUMENTS,
    ),
    # No reasoning comes back or goes in, and audio is taken here only (WIRE.md, Reasoning and sampling).
    CHAT: attrs.evolve(
        _COMMON,
        api=CHAT,
        json_mode={"response_format": {"type": "json_object"}},
        supports_audio=True,
        accepted_audio_media_types=("audio/wav", "audio/mpeg", "audio/mp3"),
    ),
}
# Limits on media of the models listed: the vision page of the service's documentation.
_MEDIA = {"max_images": 500, "max_media_bytes": 50 * 1024 * 1024}
# Models that take audio have it in their name, and are not listed; others refuse audio (recorded).
_NOT_IN_CHAT = {"supports_thinking": False, "thinking_scope": "never", "supports_audio": False}


@cache
def models() -> tuple[ModelInfo, ...]:
    """Return the catalogue."""
    return load_catalogue(files(__package__).joinpath("models.json").read_bytes())


@cache
def model_of(name: str) -> ModelInfo | None:
    """Return the catalogue's entry for a name, alias or dated snapshot.

    A fine-tuned model (`ft:<model>:<organisation>:…`) is its base model with separate prices, if any are known.
    """
    if not name.startswith("ft:"):
        return find_model(models(), name)
    tuned = name.split(":")[1]
    base = find_model(models(), tuned)
    if base is None:
        return None
    own = find_model(_fine_tuned(), tuned)
    unpriced = attrs.evolve(base, id=f"ft:{base.id}", aliases=(), prices=())
    return unpriced if own is None else attrs.evolve(unpriced, prices=own.prices, pricing_version=own.pricing_version)


@cache
def _fine_tuned() -> tuple[ModelInfo, ...]:
    """Return the prices of fine-tuned models, by the model that they were made of."""
    return load_catalogue(files(__package__).joinpath("fine_tuned.json").read_bytes())


def facts_of(name: str) -> FrozenDict:
    """Return the model's facts: `reasoning` (none, off, on, always), `sampling`, …; an absent fact is unknown.

    `efforts` are the accepted efforts, `chat_efforts` those of Chat Completions if they are fewer. `chat_tools_think`
    is false if Chat Completions accepts functions only without reasoning (WIRE.md, Reasoning and sampling).
    """
    model = model_of(name)
    return EMPTY if model is None else model.facts


def api_of(model: str, wanted: str | None) -> str:
    """Return the API: the requested one, else the one that the model needs, else Responses.

    Raises:
        CapabilityError: this provider does not have the requested API.
    """
    if wanted is None:
        known = model_of(model)
        return known.api if known is not None and known.api is not None else RESPONSES
    if wanted not in APIS:
        raise CapabilityError(f"no API {wanted!r}; available: {', '.join(APIS)}", path="options.api")
    return wanted


@cache
def capabilities_of(name: str, api: str) -> ModelCapabilities:
    """Return the capabilities of a model with one API; the same arguments return the same object."""
    defaults = DEFAULTS[api]
    model = model_of(name)
    if model is None:
        return defaults
    changes: dict[str, Any] = {**_MEDIA, **model.capabilities}
    if changes.get("supports_images") is False:
        changes |= dict.fromkeys(
            ("supports_tool_result_images", "supports_tool_result_documents", "supports_image_urls"), False
        )
        texts = [kind for kind in defaults.accepted_document_media_types if kind != _PDF]  # WIRE.md, Chat content parts
        changes["accepted_document_media_types"] = tuple(texts)
    if model.facts.get("cache_writes"):  # breakpoints exist from the gpt-5.6 family on (WIRE.md, Prompt caching)
        changes |= {"supports_prompt_caching": True, "max_cache_hints": 4}
    if api == CHAT:
        changes |= _NOT_IN_CHAT
    return attrs.evolve(
        defaults,
        assumed=False,
        max_context_tokens=model.max_context_tokens or defaults.max_context_tokens,
        max_output_tokens=model.max_output_tokens or defaults.max_output_tokens,
        **changes,
    )


@cache
def capabilities_with_changes(name: str, api: str) -> ModelCapabilities:
    """Return the capabilities at OpenAI itself, whose Responses API takes changes and deferred tools (WIRE.md)."""
    found = capabilities_of(name, api)
    if api != RESPONSES or not found.supports_tools:
        return found
    return attrs.evolve(
        found,
        supports_tool_changes=True,
        supports_effort_changes=name.startswith("gpt-6"),
        supports_format_changes=name.startswith("gpt-6"),
        supports_deferred_tools=name.startswith(_SEARCHES_TOOLS),
    )
