"""The models this service has and what each can do, from `models.json` (sheet anthropic §5, §11).

Never asks the network; a model not listed gets this provider's defaults, marked assumed.
The plugin object and `to_wire` come in.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import attrs

from interlingua.catalogue import ModelInfo, find_model, load_catalogue
from interlingua.json import EMPTY, FrozenDict
from interlingua.types.options import AdapterCapabilities

API = "messages"

# Facts of the wire itself; what differs by model stands in models.json. Client call ids must match the sheet's
# pattern (§3); its length cap is the strictest host's (64).
DEFAULTS = AdapterCapabilities(
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
    supports_tool_result_images=True,
    supports_image_urls=True,
    supports_tool_choice=True,
    thinking_scope="model",
    tool_id_pattern=r"[A-Za-z0-9_-]{1,64}",
    tool_id_max_length=64,
    tool_name_pattern=r"[A-Za-z0-9_-]{1,128}",
    tool_name_max_length=128,
    max_cache_hints=4,
    api=API,
    assumed=True,
)
# Limits on media of the models listed (vision and PDF pages of the service's documentation, read 2026-11; bytes of an
# image: REGRESSIONS case 21). Smaller windows take fewer images and pages.
_MEDIA = {"max_image_bytes": 5 * 1024 * 1024, "max_image_side": 8000, "many_images": 20, "many_images_side": 2000}
_SMALL_WINDOW, _FEW, _MANY = 200_000, 100, 600


@cache
def models() -> tuple[ModelInfo, ...]:
    """Return the catalogue."""
    return load_catalogue(files(__package__).joinpath("models.json").read_bytes())


@cache
def model_of(name: str) -> ModelInfo | None:
    """Return the catalogue's entry for a name, alias or dated snapshot."""
    return find_model(models(), name)


@cache
def capabilities_of(name: str) -> AdapterCapabilities:
    """Return what this service can carry with a model; the same object for the same name."""
    model = model_of(name)
    if model is None:
        return DEFAULTS
    window = model.max_context_tokens or DEFAULTS.max_context_tokens
    most = _FEW if window <= _SMALL_WINDOW else _MANY
    limits = {**_MEDIA, "max_images": most, "max_document_pages": most}
    return attrs.evolve(
        DEFAULTS,
        assumed=False,
        max_context_tokens=window,
        max_output_tokens=model.max_output_tokens or DEFAULTS.max_output_tokens,
        **{**limits, **model.capabilities},
    )


def facts_of(name: str) -> FrozenDict:
    """Return the model's facts beyond capabilities (`thinking`, `sampling`, `prefill`, …); absent means unknown."""
    model = model_of(name)
    return EMPTY if model is None else model.facts
