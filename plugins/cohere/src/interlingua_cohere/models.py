"""The service's models and their capabilities, from `models.json`."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import attrs

from interlingua.plugins import ModelInfo, find_model, load_catalogue
from interlingua.types import ModelCapabilities

API = "chat-v2"

# Limits of the wire itself; limits that differ by model are in models.json.
DEFAULTS = ModelCapabilities(
    supports_thinking=True,  # reasoning, and the plan before calls, which every model with tools writes
    supports_images=False,
    supports_tools=True,
    supports_system_prompt=True,
    supports_structured_output=True,
    supports_streaming=True,
    supports_streaming_tool_calls=True,
    supports_parallel_tool_calls=True,
    supports_system_messages_in_list=True,
    supports_documents=True,
    supports_tool_result_documents=True,
    supports_citations=True,
    supports_tool_choice=True,
    supports_named_tool_choice=False,  # REQUIRED and NONE, and no tool by its name
    accepted_document_media_types=("text/plain", "text/markdown", "text/csv", "text/html", "application/json"),
    thinking_scope="model",
    accepts_unsigned_thinking=True,  # plain text, no signature
    tool_id_pattern=r"[A-Za-z0-9_.:-]{1,128}",  # ids begin with the tool's name
    tool_id_max_length=128,
    tool_name_pattern=r"[A-Za-z_][A-Za-z0-9_]{0,63}",
    max_images=20,
    json_mode={"response_format": {"type": "json_object"}},
    schema_all_required=True,  # each object has at least one required property (WIRE.md, Request)
    structured_output_streams=True,  # and not beside tools; JSON has to be asked for in words (WIRE.md, Request)
    api=API,
    assumed=True,
)


@cache
def models() -> tuple[ModelInfo, ...]:
    """Return the models of `models.json`."""
    return load_catalogue(files(__package__).joinpath("models.json").read_bytes())


@cache
def model_of(name: str) -> ModelInfo | None:
    """Return the model of a name or alias; None if it is not listed."""
    return find_model(models(), name)


@cache
def capabilities_of(name: str) -> ModelCapabilities:
    """Return the capabilities of a model; a model that is not listed has the defaults, with images."""
    model = model_of(name)
    if model is None:
        return attrs.evolve(DEFAULTS, supports_images=True, supports_image_urls=True, accepted_image_media_types=IMAGES)
    return attrs.evolve(
        DEFAULTS,
        assumed=False,
        max_context_tokens=model.max_context_tokens or 0,
        max_output_tokens=model.max_output_tokens or 0,
        **{**(_SEES if model.facts.get("images") else {}), **model.capabilities},
    )


IMAGES = ("image/png", "image/jpeg", "image/webp", "image/gif")
_SEES = {"supports_images": True, "supports_image_urls": True, "accepted_image_media_types": IMAGES}


def takes_thinking(name: str) -> bool:
    """Return True if a model reasons or is not listed; other models lack the option `thinking`."""
    model = model_of(name)
    return model is None or bool(model.facts.get("thinking"))
