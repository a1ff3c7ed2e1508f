"""The service's models and their capabilities, from `models.json` and from a model's maker and name."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import attrs

from interlingua.plugins import EMPTY, FrozenDict, ModelInfo, find_model, load_catalogue
from interlingua.types import ModelCapabilities

API = "converse"

IMAGES = {"image/png": "png", "image/jpeg": "jpeg", "image/gif": "gif", "image/webp": "webp"}
DOCUMENTS = {
    "application/pdf": "pdf",
    "text/csv": "csv",
    "application/msword": "doc",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "text/html": "html",
    "text/plain": "txt",
    "text/markdown": "md",
}
VIDEOS = {
    "video/mp4": "mp4",
    "video/x-matroska": "mkv",
    "video/quicktime": "mov",
    "video/webm": "webm",
    "video/x-flv": "flv",
    "video/mpeg": "mpeg",
    "video/x-ms-wmv": "wmv",
    "video/3gpp": "three_gp",
}
AUDIOS = {
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
    "audio/wav": "wav",
    "audio/ogg": "ogg",
    "audio/flac": "flac",
    "audio/aac": "aac",
    "audio/mp4": "mp4",
    "audio/webm": "webm",
    "audio/opus": "opus",
}

# Limits of the wire itself; limits of single models are in models.json (WIRE.md, Models).
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
    accepted_image_media_types=tuple(IMAGES),
    supports_audio=True,
    accepted_audio_media_types=tuple(AUDIOS),
    supports_video=True,
    accepted_video_media_types=tuple(VIDEOS),
    supports_documents=True,
    accepted_document_media_types=tuple(DOCUMENTS),
    supports_citations=True,
    supports_tool_result_images=True,
    supports_tool_result_documents=True,
    supports_image_urls=False,  # of Amazon S3 alone, which goes as an uploaded file
    supports_tool_choice=True,
    supports_named_tool_choice=True,
    thinking_scope="model",
    tool_id_pattern=r"[A-Za-z0-9_-]{1,64}",
    tool_id_max_length=64,
    tool_name_pattern=r"[A-Za-z0-9_-]{1,64}",
    tool_name_max_length=64,
    max_cache_hints=4,
    max_images=20,  # in a message of any model (WIRE.md, Media)
    # response schemas (WIRE.md, Structured answers)
    structured_output_with_tools=True,
    structured_output_streams=True,
    structured_in_prompt=True,
    api=API,
    assumed=True,
)
_LIMITS = {"max_images": 20, "max_image_bytes": 3_932_160, "max_image_side": 8000}  # 3.75 MB (WIRE.md, Media)

# Models that take no response schema: only newer Claude and the open-weight ones do (WIRE.md, Structured answers).
_WITHOUT_SCHEMAS = ("anthropic.claude-3", "anthropic.claude-opus-4-1-", "anthropic.claude-opus-4-2",
                    "anthropic.claude-sonnet-4-2", "amazon.", "meta.", "writer.", "cohere.", "ai21.")  # fmt: skip

_ARN = re.compile(r"arn:aws[a-z-]*:(?:bedrock|sagemaker):(?P<region>[a-z0-9-]*):[^:]*:(?P<rest>.+)").fullmatch
_DATE = re.compile(r"-\d{8}\Z")
_VERSION = re.compile(r"(-v\d+)?(:\d+)*$")
_GEOGRAPHY = re.compile(r"(?:global|us-gov|us|eu|apac|jp|au|ca|in)\.(?=[a-z0-9-]+\.)").match


@cache
def models() -> tuple[ModelInfo, ...]:
    """Return the models of `models.json`."""
    return load_catalogue(files(__package__).joinpath("models.json").read_bytes())


def region_of_arn(name: str) -> str | None:
    """Return the region in a model's ARN; None if the name is not an ARN or has no region."""
    found = _ARN(name)
    return (found["region"] or None) if found else None


@cache
def plain_name(name: str) -> str:
    """Return the model in a name: without ARN, geography and version (`us.amazon.nova-pro-v1:0`: `amazon.nova-pro`).

    The ARN of an application's own profile, a prompt or an imported model contains no model and is returned unchanged.
    """
    found = _ARN(name)
    if found and found["rest"].startswith(("foundation-model/", "inference-profile/")):
        name = found["rest"].partition("/")[2]
    if geography := _GEOGRAPHY(name):
        name = name[geography.end() :]
    return name if name.startswith("arn:") else _VERSION.sub("", name)


@cache
def model_of(name: str) -> ModelInfo | None:
    """Return the model of a name, of any geography, version and date; None if it is not listed.

    A name of the global endpoint has its own prices, lower than those of a region.
    """
    found = find_model(models(), name)
    if found is not None:
        return found
    plain, wide = plain_name(name), "global." in name
    for wanted in (plain, _DATE.sub("", plain)):
        same = [model for model in models() if plain_name(model.id) == wanted]
        if same:
            return next((model for model in same if model.id.startswith("global.") == wide), same[0])
    return None


@cache
def capabilities_of(name: str) -> ModelCapabilities:
    """Return the capabilities of a model; a model that is not listed has the defaults, marked as assumed."""
    model = model_of(name)
    family = family_of(name)
    own: dict[str, Any] = {
        "supports_named_tool_choice": family.named_choice,
        "caches_only_hints": family.reasoning == "claude",
    }
    if model is None:
        return attrs.evolve(DEFAULTS, **own)
    return attrs.evolve(
        DEFAULTS,
        assumed=False,
        max_context_tokens=model.max_context_tokens or 0,
        max_output_tokens=model.max_output_tokens or 0,
        supports_structured_output=not plain_name(name).startswith(_WITHOUT_SCHEMAS),
        **{**own, **_LIMITS, **model.capabilities},
    )


@cache
def facts_of(name: str) -> FrozenDict:
    """Return the further facts about a model in `models.json`; an absent fact is unknown."""
    model = model_of(name)
    return EMPTY if model is None else model.facts


class Family(NamedTuple):
    """How the models of a maker take options without a field in Converse (WIRE.md, Fields of the models).

    Attributes:
        reasoning: `claude`, `nova`, `effort` (`reasoning_effort`), `config` (`reasoning_config`), "" if it is unknown.
        top_k: path of the field in `additionalModelRequestFields`, empty if none is known.
        result_status: a result has an error flag.
        named_choice: a call of one tool can be demanded by its name.
        refused: media that only these models reject: `result video` in results, `s3 document` of the user in Amazon S3.
    """

    reasoning: str = ""
    top_k: tuple[str, ...] = ()
    result_status: bool = False
    refused: tuple[str, ...] = ()
    named_choice: bool = False


_FAMILIES: tuple[tuple[str, Family], ...] = (
    ("anthropic.", Family("claude", ("top_k",), True, ("s3 document",), named_choice=True)),
    ("amazon.nova-2", Family("nova", ("inferenceConfig", "topK"), True, ("result video",), named_choice=True)),
    ("amazon.nova", Family("", ("inferenceConfig", "topK"), True, ("result video",), named_choice=True)),
    ("openai.gpt-oss", Family("effort")),
    ("qwen.", Family("config")),
    ("mistral.", Family("", ("top_k",))),
    ("arn:", Family("", (), True, named_choice=True)),
)


@cache
def family_of(name: str) -> Family:
    """Return the family of a model by its name."""
    plain: Any = plain_name(name)
    return next((family for start, family in _FAMILIES if plain.startswith(start)), Family())
