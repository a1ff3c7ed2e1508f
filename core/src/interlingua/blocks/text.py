"""Blocks a model speaks in: text, thinking, and thinking it will not show.

Never holds a call, a result or media (see the neighbours), and never interprets a signature.
Messages and every room above may come in, through `interlingua.blocks`.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import attrs

from interlingua.cache import CacheHint
from interlingua.jsontext import FrozenDict, freeze_objects
from interlingua.values import quick


@quick
@attrs.frozen(kw_only=True)
class TextBlock:
    """Plain text (seed 003 §4.2).

    Attributes:
        text: what was said.
        citations: where it came from, each an object in the origin's own words.
        signature: opaque token of the origin that rides on text (seed 000 §2.1).
        cache: prompt-cache hint.
    """

    type: ClassVar[Literal["text"]] = "text"
    text: str
    citations: tuple[FrozenDict, ...] = attrs.field(default=(), converter=freeze_objects)
    signature: str | None = None
    cache: CacheHint | None = None


@quick
@attrs.frozen(kw_only=True)
class ThinkingBlock:
    """Reasoning shown by the model (seed 003 §4.2).

    Attributes:
        text: the reasoning; empty when the provider shows only its signature (the wire sheets).
        signature: opaque token that the origin wants back byte-equal.
    """

    type: ClassVar[Literal["thinking"]] = "thinking"
    text: str
    signature: str | None = None


@attrs.frozen(kw_only=True)
class RedactedThinkingBlock:
    """Reasoning the provider encoded; only its origin can read it (seed 003 §4.2)."""

    type: ClassVar[Literal["redacted_thinking"]] = "redacted_thinking"
    data: str
