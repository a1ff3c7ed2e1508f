"""The service's models and their capabilities, from `models.json` and the generation in a name."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

import attrs

from interlingua.plugins import EMPTY, FrozenDict, ModelInfo, find_model, load_catalogue
from interlingua.types import ModelCapabilities

API = "generate"

IMAGES = ("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif")

# Limits of the wire itself; limits that differ by model are in models.json.
DEFAULTS = ModelCapabilities(
    supports_thinking=True,
    supports_images=True,
    supports_tools=True,
    supports_system_prompt=True,
    supports_structured_output=True,
    supports_streaming=True,
    supports_streaming_tool_calls=False,  # calls arrive whole
    supports_parallel_tool_calls=True,
    supports_prompt_caching=False,  # no markers: implicit, or a cached content named in the request (WIRE.md, Caching)
    supports_system_messages_in_list=False,
    max_context_tokens=1_000_000,
    max_output_tokens=65_536,
    accepted_image_media_types=IMAGES,
    supports_audio=True,
    supports_video=True,
    supports_documents=True,
    supports_tool_result_images=False,
    supports_image_urls=False,  # the client downloads them
    supports_tool_choice=True,
    supports_named_tool_choice=True,
    thinking_scope="model",
    accepts_unsigned_thinking=True,  # thought summaries carry no signature and are taken back (recorded)
    blank_text="anywhere",  # recorded in user and model contents, alone and beside other parts
    tool_id_pattern=r"[\x21-\x7e]{1,256}",
    tool_id_max_length=256,
    tool_name_pattern=r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}",
    tool_name_max_length=128,
    # response schemas (WIRE.md, Schemas); beside tools from the third generation on
    structured_output_streams=True,
    structured_in_prompt=True,
    json_mode={"generationConfig": {"responseMimeType": "application/json"}},
    forced_tool_with_thinking=True,
    schema_open_maps=True,
    api=API,
    assumed=True,
)
# Limit on media of the models listed (WIRE.md, Parts).
_MEDIA = {"max_images": 3600}
_PREVIEW = re.compile(r"-(?:preview(?:-\d{2}-\d{2,4})?|\d{3})\Z")  # `-preview`, `-preview-09-2025`, `-001`
_generation = re.compile(r"gemini-(\d+)").search


@cache
def models() -> tuple[ModelInfo, ...]:
    """Return the models of `models.json`."""
    return load_catalogue(files(__package__).joinpath("models.json").read_bytes())


@cache
def model_of(name: str) -> ModelInfo | None:
    """Return the model of a name, alias, preview or snapshot; None if it is not listed."""
    bare = name.removeprefix("models/")
    return find_model(models(), bare) or find_model(models(), _PREVIEW.sub("", bare))


@cache
def generation_of(name: str) -> int | None:
    """Return the model's generation by its name; None if the name does not tell."""
    found = _generation(name)
    return int(found[1]) if found else None


@cache
def capabilities_of(name: str) -> ModelCapabilities:
    """Return the capabilities of a model; a model that is not listed has its generation's defaults."""
    model = model_of(name)
    # media inside results: third generation and later
    third = (generation_of(name) or 0) >= 3
    defaults = attrs.evolve(
        DEFAULTS,
        supports_tool_result_images=third,
        supports_tool_result_documents=third,
        structured_output_with_tools=third,
    )
    if model is None:
        return defaults
    return attrs.evolve(
        defaults,
        assumed=False,
        max_context_tokens=model.max_context_tokens or DEFAULTS.max_context_tokens,
        max_output_tokens=model.max_output_tokens or DEFAULTS.max_output_tokens,
        **{**_MEDIA, **model.capabilities},
    )


def facts_of(name: str) -> FrozenDict:
    """Return the further facts about a model in `models.json`; an absent fact is unknown."""
    model = model_of(name)
    return EMPTY if model is None else model.facts


def is_signed(name: str) -> bool:
    """Return True when a call of the current turn must carry a signature (third generation and later)."""
    return (generation_of(name) or 0) >= 3
