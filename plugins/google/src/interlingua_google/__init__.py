"""Google's Gemini API (generateContent) for interlingua.

Never imported by core: the entry point `google` of the group `interlingua.providers` leads to `plugin`.
Applications come in through that entry point alone.
"""

from __future__ import annotations

__all__: list[str] = []
