"""Mistral for interlingua, over the shared Chat Completions format.

Never imported by core: the entry point `mistral` of the group `interlingua.providers` leads to `plugin`.
Applications come in through that entry point alone.
"""

from __future__ import annotations

__all__: list[str] = []
