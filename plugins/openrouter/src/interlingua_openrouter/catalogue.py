"""The models this service lists and what each can carry, from `models.json` and its vendor's rules.

Never asks the network; a model not listed gets this provider's defaults, marked assumed. The vendor's rules hold for
every model of it, because what the upstream refuses comes back as a 400 (sheet openrouter §6).
The plugin object comes in.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from interlingua.catalogue import ModelInfo, find_model, load_catalogue
from interlingua.types.options import AdapterCapabilities
from interlingua_chat_completions.capabilities import capabilities_of
from interlingua_openrouter.dialect import dialect_of

# A model that takes none of it answers 404 "no endpoints found": nobody is deceived. Images, files and forced tools
# are recorded; audio and video are stated only where the vendor takes them. A text document goes as text.
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
    "anthropic": {"tool_id_pattern": r"[A-Za-z0-9_-]{1,64}"},
    "google": _VIDEO,
    "mistralai": {"tool_id_pattern": r"[A-Za-z0-9]{9}", "tool_id_max_length": 9},
}


@cache
def models() -> tuple[ModelInfo, ...]:
    """Return the catalogue."""
    return load_catalogue(files(__package__).joinpath("models.json").read_bytes())


@cache
def model_of(name: str) -> ModelInfo | None:
    """Return the catalogue's entry; a variant (`vendor/model:variant`) that is not listed is its model for limits.

    Its price is another matter: core looks that up by the full name, and finds none.
    """
    return find_model(models(), name) or find_model(models(), name.partition(":")[0])


@cache
def capabilities_for(name: str) -> AdapterCapabilities:
    """Return what this service can carry with a model; the same object for the same name."""
    vendor = _VENDORS.get(name.partition("/")[0].lstrip("~"), {})
    return capabilities_of(dialect_of(name), {**_DEFAULTS, **vendor}, model_of(name))
