"""OpenAI for interlingua: the Responses API and, through the shared format, Chat Completions.

Never imported by core: the entry point `openai` of the group `interlingua.providers` leads to `plugin`.
Applications come in through that entry point alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interlingua_openai import auxiliary as auxiliary
    from interlingua_openai import catalogue as catalogue
    from interlingua_openai import chat as chat
    from interlingua_openai import responses as responses
    from interlingua_openai import service as service

# A hook loads what it needs when it is first called (PEP 562): a client is made without any of it.
_PARTS = frozenset({"auxiliary", "catalogue", "chat", "responses", "service"})

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    if name not in _PARTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
