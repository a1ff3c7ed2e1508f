"""The Chat Completions format: `ChatProvider` and `Dialect` for plugins of services that speak it.

Never imports its parts before they are asked for (PEP 562), so that finding the package costs nothing.
Plugins of services on this format come in; the registry goes to `rows`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interlingua_chat_completions import errors as errors
    from interlingua_chat_completions import estimate as estimate
    from interlingua_chat_completions import from_wire as from_wire
    from interlingua_chat_completions import rules as rules
    from interlingua_chat_completions import stream as stream
    from interlingua_chat_completions import to_wire as to_wire
    from interlingua_chat_completions.capabilities import capabilities_of
    from interlingua_chat_completions.dialect import Dialect
    from interlingua_chat_completions.format import API, ENDPOINT, ChatFormat
    from interlingua_chat_completions.provider import ChatProvider

__all__ = ["API", "ENDPOINT", "ChatFormat", "ChatProvider", "Dialect", "capabilities_of"]

_HOMES = {
    "API": "format",
    "ENDPOINT": "format",
    "ChatFormat": "format",
    "ChatProvider": "provider",
    "Dialect": "dialect",
    "capabilities_of": "capabilities",
}
_PARTS = frozenset({"errors", "estimate", "from_wire", "rules", "stream", "to_wire"})


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return importlib.import_module(f"{__name__}.{name}")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)
