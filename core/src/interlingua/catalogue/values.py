"""The values of a catalogue: a model, its dated prices, and the dearer prices of long requests.

Never reads a file and never multiplies a price by a count.
Catalogue, pricing and anyone who describes a model by hand come in.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal

import attrs

from interlingua.jsontext import EMPTY, FrozenDict, freeze_object


@attrs.frozen(kw_only=True)
class Rates:
    """List prices in USD per million tokens; None means the source names no such price.

    Attributes:
        input_per_mtok_usd: plain input.
        output_per_mtok_usd: output, reasoning included.
        cached_read_per_mtok_usd: input read from the provider's prompt cache.
        cache_write_per_mtok_usd: input written to the cache, at the provider's usual lifetime.
        cache_write_1h_per_mtok_usd: input written to the cache for one hour.
        audio_input_per_mtok_usd: audio input.
        cached_audio_read_per_mtok_usd: audio input read from the cache.
    """

    input_per_mtok_usd: Decimal | None = None
    output_per_mtok_usd: Decimal | None = None
    cached_read_per_mtok_usd: Decimal | None = None
    cache_write_per_mtok_usd: Decimal | None = None
    cache_write_1h_per_mtok_usd: Decimal | None = None
    audio_input_per_mtok_usd: Decimal | None = None
    cached_audio_read_per_mtok_usd: Decimal | None = None


@attrs.frozen(kw_only=True)
class PriceTier(Rates):
    """A cliff: once the inclusive input passes `above_input_tokens`, these rates bill the whole request."""

    above_input_tokens: int


@attrs.frozen(kw_only=True)
class Price(Rates):
    """The rates of one model from one day on; of the rows that apply at a moment, the last one counts.

    Attributes:
        since: first UTC day of these rates; None means from the beginning.
        utc_hours: (from, to) hours of the UTC day, `to` excluded, for time-of-day prices; None means all day.
        service_tier: the processing tier these rates are for, as the provider reports it; None is the usual one.
        tiers: cliffs, in rising order of `above_input_tokens`.
    """

    since: date | None = None
    utc_hours: tuple[time, time] | None = None
    service_tier: str | None = None
    tiers: tuple[PriceTier, ...] = ()

    def active(self, at: datetime) -> bool:
        """Tell whether these rates apply at a moment; a naive `at` is taken as UTC."""
        if self.since is None and self.utc_hours is None:
            return True
        moment = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
        if self.since is not None and moment.date() < self.since:
            return False
        if self.utc_hours is None:
            return True
        start, end = self.utc_hours
        now = moment.time()
        return start <= now < end if start <= end else now >= start or now < end

    def rates(self, input_tokens: int) -> Rates:
        """Return the rates for a request of so many inclusive input tokens: the highest cliff passed, or the base."""
        passed: Rates = self
        for tier in self.tiers:
            if input_tokens > tier.above_input_tokens:
                passed = tier
        return passed


@attrs.frozen(kw_only=True)
class ModelInfo:
    """One model of a provider, as its catalogue knows it (DESIGN 4, hook `models`).

    Attributes:
        id: the provider's own id, without the provider key.
        aliases: other names of the same model.
        api: the provider's API this model must be called with; None where the provider's default serves it.
        max_context_tokens: context window in tokens; None is unknown.
        max_output_tokens: most tokens one answer may have; None is unknown.
        capabilities: overrides of the provider's default capabilities, by field name.
        facts: what else the provider's adapter must know of the model; each plugin documents its own keys.
        prices: dated list prices; empty when the source has none, which is not the same as free.
        pricing_version: the version of the price data, kept with every cost computed from it (seed 003 §6.3).
        standard_service_tiers: names under which the provider reports its usual tier.
    """

    id: str
    aliases: tuple[str, ...] = ()
    api: str | None = None
    max_context_tokens: int | None = None
    max_output_tokens: int | None = None
    capabilities: FrozenDict = attrs.field(default=EMPTY, converter=freeze_object)
    facts: FrozenDict = attrs.field(default=EMPTY, converter=freeze_object)
    prices: Sequence[Price] = ()
    pricing_version: str | None = None
    standard_service_tiers: tuple[str, ...] = ("default", "standard")

    def price_at(self, at: datetime, service_tier: str | None = None) -> Price | None:
        """Return the price row that counts at a moment for a tier as reported, or None."""
        tier = None if service_tier in self.standard_service_tiers else service_tier
        rows = [price for price in self.prices if price.service_tier == tier and price.active(at)]
        return rows[-1] if rows else None
