"""Anthropic's Messages API for interlingua."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlingua.plugins import lazy_names

if TYPE_CHECKING:
    from interlingua_anthropic.client_tools import client_tool as client_tool
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__, {"client_tools": "client_tool"})
