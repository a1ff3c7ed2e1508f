"""What this service can carry with each model (sheet zai §2): the dialect's share, the defaults, the catalogue's entry.

Never promises what is unproven: images only where a listed model takes them, no schema, no forced tool.
The plugin object comes in.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from interlingua.types.options import AdapterCapabilities
from interlingua_chat_completions.capabilities import capabilities_of
from interlingua_zai.catalogue import model_of
from interlingua_zai.dialect import dialect_of

# Text documents go as text; there is no other file (§2: unverified) and no audio.
_DEFAULTS: dict[str, Any] = {
    "supports_documents": True,
    "accepted_document_media_types": ["text/plain", "text/markdown", "text/csv"],
    "accepted_audio_media_types": [],
}


@cache
def capabilities_for(name: str) -> AdapterCapabilities:
    """Return what this service can carry with a model; the same object for the same name."""
    return capabilities_of(dialect_of(name), _DEFAULTS, model_of(name))
