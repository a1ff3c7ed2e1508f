"""The birds: what each can carry and costs, from `models.json`.

Never asks the network; a bird that is not listed gets the service's defaults, marked assumed.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import attrs
from interlingua.catalogue import ModelInfo, find_model, load_catalogue
from interlingua.types.options import AdapterCapabilities

from interlingua_parrot.service import API

DEFAULTS = AdapterCapabilities(
    supports_system_prompt=True,
    supports_tools=True,
    supports_parallel_tool_calls=True,
    supports_streaming=True,
    supports_streaming_tool_calls=True,
    tool_id_pattern=r"[A-Za-z0-9_.-]{1,64}",  # the service numbers tricks: `trick.1`
    api=API,
    assumed=True,
)


@cache
def models() -> tuple[ModelInfo, ...]:
    """Return the catalogue."""
    return load_catalogue(files(__package__).joinpath("models.json").read_bytes())


@cache
def capabilities_of(model: str) -> AdapterCapabilities:
    """Return what a model can carry."""
    info = find_model(models(), model)
    if info is None:
        return DEFAULTS
    limit = info.max_context_tokens or 0
    return attrs.evolve(DEFAULTS, assumed=False, max_context_tokens=limit, **info.capabilities)
