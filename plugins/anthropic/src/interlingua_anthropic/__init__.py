"""Anthropic's Messages API for interlingua.

Never imported by core: the entry point `anthropic` of the group `interlingua.providers` leads to `plugin`.
Applications come in through that entry point alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interlingua_anthropic import auxiliary as auxiliary
    from interlingua_anthropic import catalogue as catalogue
    from interlingua_anthropic import estimate as estimate
    from interlingua_anthropic import from_wire as from_wire
    from interlingua_anthropic import service as service
    from interlingua_anthropic import stream as stream
    from interlingua_anthropic import to_wire as to_wire

# A hook loads what it needs when it is first called (PEP 562): a client is made without any of it.
_PARTS = frozenset({"auxiliary", "catalogue", "estimate", "from_wire", "service", "stream", "to_wire"})

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    if name not in _PARTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
