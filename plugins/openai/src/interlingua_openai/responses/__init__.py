"""The Responses wire format, both directions and its stream (sheet openai_responses).

Never knows a host or a key (the service does), so a compatible service can use it as it is.
The plugin object and its auxiliary exchanges come in.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interlingua_openai.responses import from_wire as from_wire
    from interlingua_openai.responses import stream as stream
    from interlingua_openai.responses import to_wire as to_wire

# A hook loads what it needs when it is first called (PEP 562): a client is made without any of it.
_PARTS = frozenset({"from_wire", "stream", "to_wire"})

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    if name not in _PARTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
