"""OpenAI for interlingua: the Responses API and, through the shared format, Chat Completions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlingua.plugins import lazy_names

if TYPE_CHECKING:
    from interlingua_openai.responses.client_calls import client_tool as client_tool
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__, {"responses.client_calls": "client_tool"})
