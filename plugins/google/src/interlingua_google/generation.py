"""Options -> `generationConfig` (sheet gemini §2, §5).

Never decides about tools or contents. `to_wire` comes in.
"""

from __future__ import annotations

from typing import Any

from interlingua.errors import CapabilityError
from interlingua.plugins.wire import Loss, option_loss
from interlingua.types.options import AdapterOptions
from interlingua_google.catalogue import capabilities_of, generation_of
from interlingua_google.schema import to_wire_schema
from interlingua_google.thinking import to_wire_thinking

_NAMES = {
    "max_tokens": "maxOutputTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "seed": "seed",
}


def to_wire_generation(options: AdapterOptions, losses: list[Loss], *, tools: bool) -> dict[str, Any]:
    """Return the config; {} where nothing was asked.

    Raises:
        CapabilityError: a schema where the model takes none, or (before the third generation) none beside tools.
    """
    asked = {wire: value for name, wire in _NAMES.items() if (value := getattr(options, name)) is not None}
    if options.stop:
        asked["stopSequences"] = list(options.stop)
    if options.response_schema is not None:
        if not capabilities_of(options.model).supports_structured_output:
            raise CapabilityError(f"{options.model} has no structured output", path="options.response_schema")
        generation = generation_of(options.model)
        if tools and generation is not None and generation < 3:
            raise CapabilityError(
                f"{options.model} takes no response schema together with tools; ask without tools",
                path="options.response_schema",
            )
        asked["responseMimeType"] = "application/json"
        path = "options.response_schema"
        asked["responseJsonSchema"] = to_wire_schema(options.response_schema, losses, path, "option")
    if (thinking := to_wire_thinking(options, losses)) is not None:
        asked["thinkingConfig"] = thinking
    if options.user_id is not None:
        losses.append(option_loss("user_id", "dropped", "this wire has no end-user id"))
    return asked
