"""What an answer cost: tokens as the provider reported them, money as core computed it.

Never holds a price (the catalogue does) and never turns "not reported" into 0.
Message metadata, adapters and pricing may come in, through `interlingua.messages`.
"""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

import attrs

from interlingua.values import evolve, quick


class Buckets(NamedTuple):
    """Token counts that do not overlap; their sum is everything that was billed as tokens."""

    uncached_input: int
    cached_input: int
    cache_creation_input: int
    visible_output: int
    reasoning: int

    @property
    def total(self) -> int:
        """All tokens in and out."""
        return sum(self)


@quick
@attrs.frozen(kw_only=True)
class CostParts:
    """The cost in USD by token class, exact."""

    input: Decimal
    output: Decimal
    cached_read: Decimal
    cache_write: Decimal


@quick
@attrs.frozen(kw_only=True)
class Usage:
    """Tokens, money and time of one generated message (seed 003 §4.4; DESIGN 3).

    Attributes:
        input_tokens: all input, cached reads and cache writes included; None when not reported.
        output_tokens: all output, reasoning included; None when not reported.
        cached_input_tokens: part of input that was read from a cache.
        cache_creation_input_tokens: part of input that was written to a cache.
        cache_creation_1h_input_tokens: part of the writes that are kept for an hour and priced so.
        audio_input_tokens: part of input that was audio, where the provider tells and prices it apart.
        cached_audio_input_tokens: part of the cached reads that was audio.
        reasoning_tokens: part of output that was reasoning.
        service_tier: the tier the provider says it used, in its own words.
        cost_usd: sum of `cost`, or None when unknown, never 0 for unknown.
        cost: the parts, exact.
        cost_note: why the cost is unknown.
        pricing_version: which price table was used.
        latency_ms: milliseconds from sending to the end of the answer.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_creation_1h_input_tokens: int | None = None
    audio_input_tokens: int | None = None
    cached_audio_input_tokens: int | None = None
    reasoning_tokens: int | None = None
    service_tier: str | None = None
    cost_usd: Decimal | None = None
    cost: CostParts | None = None
    cost_note: str | None = None
    pricing_version: str | None = None
    latency_ms: int | None = None

    def buckets(self) -> Buckets:
        """Split the inclusive counts into disjoint ones; what was not reported counts as 0 here."""
        cached = self.cached_input_tokens or 0
        created = self.cache_creation_input_tokens or 0
        reasoning = self.reasoning_tokens or 0
        return Buckets(
            uncached_input=max((self.input_tokens or 0) - cached - created, 0),
            cached_input=cached,
            cache_creation_input=created,
            visible_output=max((self.output_tokens or 0) - reasoning, 0),
            reasoning=reasoning,
        )

    def updated(self, other: Usage) -> Usage:
        """Return this with every count that `other` reports put in its place (cumulative totals overwrite)."""
        changes = {name: value for name in _COUNTS if (value := getattr(other, name)) is not None}
        return evolve(self, **changes) if changes else self


_COUNTS = (
    "input_tokens",
    "output_tokens",
    "cached_input_tokens",
    "cache_creation_input_tokens",
    "cache_creation_1h_input_tokens",
    "audio_input_tokens",
    "cached_audio_input_tokens",
    "reasoning_tokens",
    "service_tier",
)
