"""The Parrot service for interlingua.

Never imported by core: the entry point `parrot` of the group `interlingua.providers` leads to `plugin`.
"""

from __future__ import annotations

__all__: list[str] = []
