"""OpenAI for interlingua: the Responses API and, through the shared format, Chat Completions.

Never imported by core: the entry point `openai` of the group `interlingua.providers` leads to `plugin`.
Applications come in through that entry point alone.
"""

from __future__ import annotations

__all__: list[str] = []
