"""The serving plugin: Chat Completions as OpenRouter's models use it, which declares no paths."""

from __future__ import annotations

from interlingua_chat_completions.serving import ChatServing
from interlingua_openrouter.dialect import dialect_of

plugin = ChatServing(dialect_of)
