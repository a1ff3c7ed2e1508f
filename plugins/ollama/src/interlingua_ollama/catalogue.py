"""What this wire can carry; which models there are and what they cost, only the server and its owner know.

Never asks the network: every model gets these defaults, marked assumed (sheet ollama §2).
The plugin object and `to_wire` come in.
"""

from __future__ import annotations

from functools import cache

import attrs

from interlingua.types.options import AdapterCapabilities, AdapterOptions

API = "chat-native"

DEFAULTS = AdapterCapabilities(
    supports_thinking=True,
    supports_images=True,
    supports_tools=True,
    supports_system_prompt=True,
    supports_structured_output=True,
    supports_streaming=True,
    supports_parallel_tool_calls=True,
    supports_system_messages_in_list=True,  # no rules of order: the model's template decides (sheet §3)
    accepted_image_media_types=("image/jpeg", "image/png", "image/webp"),
    thinking_scope="model",
    accepts_unsigned_thinking=True,  # plain text, no signature (sheet §7)
    tool_id_pattern=r"[A-Za-z0-9_.:-]{1,64}",  # ids are free here; these are the characters of ids in use
    tool_name_pattern=r"[^\s]{1,128}",  # free (sheet MAPPING, name rule)
    tool_name_max_length=128,
    api=API,
    assumed=True,
)


def capabilities_of(options: AdapterOptions | None) -> AdapterCapabilities:
    """Return what can be carried; the window is what the request asks for with `num_ctx`, else unknown (0)."""
    asked = options.provider_options if options is not None else {}
    inner = asked.get("options")
    window = asked.get("num_ctx", inner.get("num_ctx") if isinstance(inner, dict) else None)
    return _with_window(window) if isinstance(window, int) and window > 0 else DEFAULTS


@cache
def _with_window(tokens: int) -> AdapterCapabilities:
    return attrs.evolve(DEFAULTS, max_context_tokens=tokens)


def takes_levels_only(model: str) -> bool:
    """True for the family whose thinking has levels and no off (sheet §3)."""
    return model.rpartition("/")[2].startswith("gpt-oss")
