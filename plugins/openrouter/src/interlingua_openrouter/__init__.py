"""OpenRouter for interlingua: many vendors' models behind one Chat Completions endpoint.

Never imported by core: the entry point `openrouter` of the group `interlingua.providers` leads to `plugin`.
Applications come in through that entry point, and through `costs` for what the service says an answer cost.
"""

from __future__ import annotations

__all__: list[str] = []
