"""The service's models and their capabilities, from `models.json` and the generation in a name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import attrs

from interlingua.errors import CapabilityError
from interlingua.plugins import EMPTY, FrozenDict, ModelInfo, find_model, freeze_object, load_catalogue
from interlingua.types import ModelCapabilities

API = "generate"
INTERACTIONS = "interactions"
APIS = (API, INTERACTIONS)

IMAGES = ("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif")

AUDIO = (
    *("audio/wav", "audio/mp3", "audio/aiff", "audio/aac", "audio/ogg", "audio/flac", "audio/mpeg", "audio/m4a"),
    *("audio/l16", "audio/opus", "audio/alaw", "audio/mulaw", "audio/webm"),
)
VIDEO = (
    *("video/mp4", "video/mpeg", "video/mpg", "video/mov", "video/avi", "video/x-flv", "video/webm", "video/wmv"),
    "video/3gpp",
)
_OFFICE = "application/vnd.openxmlformats-officedocument."
_OPEN = "application/vnd.oasis.opendocument."
DOCUMENTS = (
    *("application/pdf", "text/csv", "application/vnd.ms-powerpoint", "application/msword", "application/vnd.ms-excel"),
    *(f"{_OFFICE}{kind}" for kind in ("presentationml.presentation", "wordprocessingml.document")),
    *(f"{_OFFICE}{kind}" for kind in ("wordprocessingml.template", "spreadsheetml.sheet")),
    *(f"{_OPEN}{kind}" for kind in ("presentation", "text", "spreadsheet")),
)

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
    signed_blocks=("text", "tool_use"),
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
# Capabilities of the Interactions API (WIRE.md, Interactions content, Interactions answers).
_OF_INTERACTIONS: Mapping[str, Any] = {
    "api": INTERACTIONS,
    "supports_deferred_tools": True,
    "supports_streaming_tool_calls": True,
    "supports_citations": True,
    "supports_image_urls": True,
    "accepted_image_media_types": (*IMAGES, "image/gif", "image/bmp", "image/tiff"),
    "accepted_audio_media_types": AUDIO,
    "accepted_video_media_types": VIDEO,
    "accepted_document_media_types": DOCUMENTS,
    "accepts_unsigned_thinking": False,
    "signed_blocks": ("tool_use",),
    "blank_text": "nowhere",
    "json_mode": freeze_object({"response_format": {"type": "text", "mime_type": "application/json"}}),
}
# An agent runs with its own settings: there is no generation_config, and no schema for its answer.
_OF_AGENTS: Mapping[str, Any] = dict.fromkeys(
    ("supports_structured_output", "supports_tool_choice", "supports_named_tool_choice", "structured_output_streams"),
    False,
)
# Limit on media of the models listed (WIRE.md, Parts).
_MEDIA = {"max_images": 3600}
_PREVIEW = re.compile(r"-(?:preview(?:-\d{2}-\d{2,4})?|\d{3})\Z")  # `-preview`, `-preview-09-2025`, `-001`
_agent = re.compile(r"(deep-research|antigravity|code-mender)-").match
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


def is_decider(model: str) -> bool:
    """Return whether a model answers questions of fixed kinds only."""
    return model.removeprefix("models/").startswith("gemini-decision")


def api_of(model: str, wanted: str | None) -> str:
    """Return the API: the requested API, else that of the model, else generateContent.

    Raises:
        CapabilityError: this provider does not have the requested API, or the model needs another.
    """
    known = model_of(model)
    needed = known.api if known is not None else None
    if wanted is None:
        return needed or (INTERACTIONS if is_decider(model) else API)
    if wanted not in APIS or (needed is not None and wanted != needed):
        available = needed or ", ".join(APIS)
        raise CapabilityError(f"no API {wanted!r} for {model}; available: {available}", path="options.api")
    return wanted


def capabilities_of(name: str, api: str | None = None) -> ModelCapabilities:
    """Return the capabilities of a model; a model that is not listed has its generation's defaults.

    Raises:
        CapabilityError: as `api_of`.
    """
    return _capabilities(name, api_of(name, api))


@cache
def _capabilities(name: str, api: str) -> ModelCapabilities:
    model = model_of(name)
    # media inside results: third generation and later
    third = (generation_of(name) or 0) >= 3
    defaults = attrs.evolve(
        DEFAULTS,
        supports_tool_result_images=third,
        supports_tool_result_documents=third,
        structured_output_with_tools=third,
        **(_OF_INTERACTIONS if api == INTERACTIONS else {}),
        **(_OF_AGENTS if is_agent(name) else {}),
    )
    if model is None:
        return defaults
    return attrs.evolve(
        defaults,
        # a listed model that the documentation of this API does not name may be refused
        assumed=api == INTERACTIONS and not model.facts.get("interactions"),
        max_context_tokens=model.max_context_tokens or DEFAULTS.max_context_tokens,
        max_output_tokens=model.max_output_tokens or DEFAULTS.max_output_tokens,
        **{**_MEDIA, **model.capabilities},
    )


def facts_of(name: str) -> FrozenDict:
    """Return the further facts about a model in `models.json`; an absent fact is unknown.

    `thinking` is `none`, `budget` or `level`, with `levels`, `budget` and `thinking_off`; `interactions` is true for a
    model that the service's SDK lists for that API.
    """
    model = model_of(name)
    return EMPTY if model is None else model.facts


def is_signed(name: str) -> bool:
    """Return True when a call of the current turn must carry a signature (third generation and later)."""
    return (generation_of(name) or 0) >= 3


def is_agent(name: str) -> bool:
    """Return True for an agent, which is asked by another field than a model."""
    return _agent(name) is not None
