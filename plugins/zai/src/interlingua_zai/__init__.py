"""Z.ai for interlingua: the GLM models, over the shared Chat Completions format.

Never imported by core: the entry point `zai` of the group `interlingua.providers` leads to `plugin`.
Applications come in through that entry point alone.
"""

from __future__ import annotations

__all__: list[str] = []
