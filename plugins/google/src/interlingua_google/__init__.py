"""Google's Gemini API (generateContent) for interlingua.

Never imported by core: the entry point `google` of the group `interlingua.providers` leads to `plugin`.
Applications come in through that entry point alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interlingua_google import auxiliary as auxiliary
    from interlingua_google import catalogue as catalogue
    from interlingua_google import estimate as estimate
    from interlingua_google import failures as failures
    from interlingua_google import from_wire as from_wire
    from interlingua_google import service as service
    from interlingua_google import stream as stream
    from interlingua_google import to_wire as to_wire

# A hook loads what it needs when it is first called (PEP 562): a client is made without any of it.
_PARTS = frozenset({"auxiliary", "catalogue", "estimate", "failures", "from_wire", "service", "stream", "to_wire"})

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    if name not in _PARTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
