"""The service's models and their capabilities, from `models.json`."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from types import SimpleNamespace
from typing import Protocol, cast

import attrs

from interlingua.plugins import EMPTY, FrozenDict, ModelInfo, find_model, load_catalogue
from interlingua.types import ModelCapabilities

API = "messages"

# Limits of the wire itself; limits that differ by model are in models.json. The length of a call id is the strictest
# host's (WIRE.md, Tools).
DEFAULTS = ModelCapabilities(
    supports_thinking=True,
    supports_images=True,
    supports_tools=True,
    supports_system_prompt=True,
    supports_structured_output=True,
    supports_streaming=True,
    supports_streaming_tool_calls=True,
    supports_parallel_tool_calls=True,
    supports_prompt_caching=True,
    supports_system_messages_in_list=False,
    max_context_tokens=200_000,
    max_output_tokens=4096,
    accepted_image_media_types=("image/jpeg", "image/png", "image/gif", "image/webp"),
    supports_documents=True,
    accepted_document_media_types=("application/pdf", "text/plain"),
    supports_citations=True,
    supports_tool_result_images=True,
    supports_tool_result_documents=True,
    supports_image_urls=True,
    supports_tool_choice=True,
    supports_named_tool_choice=True,
    thinking_scope="model",
    tool_id_pattern=r"[A-Za-z0-9_-]{1,64}",
    tool_id_max_length=64,
    tool_name_pattern=r"[A-Za-z0-9_-]{1,128}",
    tool_name_max_length=128,
    max_cache_hints=4,
    caches_only_hints=True,
    # response schemas (WIRE.md, Structured output)
    structured_output_with_tools=True,
    structured_output_streams=True,
    structured_in_prompt=True,
    schema_max_optional=24,
    schema_max_unions=16,
    api=API,
    assumed=True,
)
_OF_CLAUDE = attrs.evolve(DEFAULTS, supports_deferred_tools=True)  # other models on this wire have no tool search
# models that take another effort within the conversation (WIRE.md, System)
_CHANGES_EFFORT = ("claude-fable-5-1", "claude-mythos-5-1", "claude-opus-5")
# Limits on media of the models listed (WIRE.md, Media); smaller windows take fewer images and pages.
_MEDIA = {"max_image_bytes": 5 * 1024 * 1024, "max_image_side": 8000, "many_images": 20, "many_images_side": 2000}
_SMALL_WINDOW, _FEW, _MANY = 200_000, 100, 600


@cache
def models() -> tuple[ModelInfo, ...]:
    """Return the models of `models.json`."""
    return load_catalogue(files(__package__).joinpath("models.json").read_bytes())


@cache
def model_of(name: str) -> ModelInfo | None:
    """Return the model of a name, alias or dated snapshot; None if it is not listed."""
    return find_model(models(), name)


@cache
def capabilities_of(name: str) -> ModelCapabilities:
    """Return the capabilities of a model; a model that is not listed has the defaults, marked as assumed."""
    model = model_of(name)
    if model is None:
        return _OF_CLAUDE
    window = model.max_context_tokens or DEFAULTS.max_context_tokens
    most = _FEW if window <= _SMALL_WINDOW else _MANY
    limits = {**_MEDIA, "max_images": most, "max_document_pages": most}
    return attrs.evolve(
        _OF_CLAUDE,
        assumed=False,
        max_context_tokens=window,
        max_output_tokens=model.max_output_tokens or DEFAULTS.max_output_tokens,
        # a budget and a forced tool refuse each other, adaptive thinking does not mind (WIRE.md, Tools)
        forced_tool_with_thinking="adaptive" in model.facts.get("thinking", ()),
        thinks_by_default=model.facts.get("thinking_omitted") in ("on", "always"),
        **{**limits, **model.capabilities},
    )


@cache
def capabilities_with_changes(name: str) -> ModelCapabilities:
    """Return the capabilities at the service itself, which other hosts of Claude do not share in all."""
    found = capabilities_of(name)
    if not found.supports_system_messages_in_list:
        return found
    return attrs.evolve(found, supports_tool_changes=True, supports_effort_changes=name.startswith(_CHANGES_EFFORT))


class KnownModels(Protocol):
    """Facts about the models of one service of this API."""

    def facts_of(self, name: str) -> FrozenDict:
        """Return further facts about a model; an absent fact is unknown."""

    def capabilities_of(self, name: str) -> ModelCapabilities:
        """Return the capabilities of a model."""


@cache
def facts_of(name: str) -> FrozenDict:
    """Return the further facts about a model in `models.json`; an absent fact is unknown."""
    model = model_of(name)
    return EMPTY if model is None else model.facts


OWN_MODELS = cast("KnownModels", SimpleNamespace(facts_of=facts_of, capabilities_of=capabilities_of))
"""The service's own models."""
