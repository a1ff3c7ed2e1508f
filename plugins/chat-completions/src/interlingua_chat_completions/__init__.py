"""The Chat Completions format: `ChatProvider` and `Dialect` for plugins of services that speak it.

Never imports its parts before they are asked for (PEP 562), so that finding the package costs nothing.
Plugins of services on this format come in; the registry goes to `rows`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)
