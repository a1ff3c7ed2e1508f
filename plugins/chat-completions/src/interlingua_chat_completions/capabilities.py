"""What a service on this wire can carry: the format's share, then the dialect's, then the row's and the model's.

Never reads a file; the same arguments give the same object, which core's caches rely on.
The row-driven providers here and the plugins of services on this format come in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from interlingua.catalogue import ModelInfo
from interlingua.types.options import AdapterCapabilities
from interlingua_chat_completions.dialect import Dialect
from interlingua_chat_completions.format import API

IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
AUDIO = ("audio/wav", "audio/x-wav", "audio/mpeg", "audio/mp3")
DOCUMENTS = ("application/pdf", "text/plain", "text/markdown", "text/csv")
FIELDS = frozenset(field.name for field in attrs.fields(AdapterCapabilities))


def capabilities_of(
    dialect: Dialect, stated: Mapping[str, Any], model: ModelInfo | None, api: str = API
) -> AdapterCapabilities:
    """Return the declaration for one model.

    Args:
        dialect: decides reasoning, schemas, forcing, parallel calls and cache markers.
        stated: the row's own statements, by field name; lists become tuples.
        model: the catalogue's entry; None is an unknown model, which gets the row's defaults and `assumed`.
        api: name of the wire format.
    """
    facts: dict[str, Any] = {
        "supports_tools": True,
        "supports_system_prompt": True,
        "supports_streaming": True,
        "supports_streaming_tool_calls": True,
        "supports_parallel_tool_calls": True,
        "supports_system_messages_in_list": not dialect.single_system,
        "supports_structured_output": dialect.structured == "json_schema",
        "supports_tool_choice": {"required", "named"} <= dialect.tool_choices,
        "supports_prompt_caching": dialect.cache_breakpoints,
        "max_cache_hints": 4 if dialect.cache_breakpoints else 0,
        "supports_thinking": dialect.takes_reasoning,
        "thinking_scope": dialect.reasoning_scope if dialect.takes_reasoning else "never",
        "accepts_unsigned_thinking": dialect.takes_reasoning,
        "accepted_image_media_types": IMAGES,
        "accepted_audio_media_types": AUDIO,
        "accepted_document_media_types": DOCUMENTS,
        # ids are opaque here (sheet openai_chat §2): these characters are in ids that services issue themselves
        "tool_id_pattern": r"[A-Za-z0-9_.:-]{1,64}",
        **stated,
        "api": api,
        "assumed": model is None,
    }
    if model is not None:
        facts["max_context_tokens"] = model.max_context_tokens or facts.get("max_context_tokens", 0)
        facts["max_output_tokens"] = model.max_output_tokens or facts.get("max_output_tokens", 0)
        facts.update(model.capabilities)
    return AdapterCapabilities(**{name: _tuple(value) for name, value in facts.items()})


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
