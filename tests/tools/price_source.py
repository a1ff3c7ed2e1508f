"""List prices as the development dependency genai-prices has them, turned into rows of a catalogue file.

Never ships: nothing under tests/ is in a wheel.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from genai_prices import types as source
from genai_prices.data import providers

RATES = {
    "input_mtok": "input_per_mtok_usd",
    "output_mtok": "output_per_mtok_usd",
    "cache_read_mtok": "cached_read_per_mtok_usd",
    "cache_write_mtok": "cache_write_per_mtok_usd",
    "cache_write_1h_mtok": "cache_write_1h_per_mtok_usd",
    "input_audio_mtok": "audio_input_per_mtok_usd",
    "cache_audio_read_mtok": "cached_audio_read_per_mtok_usd",
}
UNITS = {  # what has a price of its own -> its name in Usage.extra_units, and how many of it that price is for
    "web_searches_kcount": ("web_search", 1_000),
    "storage_searches_kcount": ("file_search", 1_000),
    "output_image_mtok": ("image_output_tokens", 1_000_000),
}
ONE_PRICE = {
    "google"
}  # a model without a price of audio has one for all input (https://ai.google.dev/gemini-api/docs/pricing)
USUAL_TIERS = {"default"}
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)


def provider(key: str) -> source.Provider:
    """Return the package's provider of this id."""
    return next(entry for entry in providers if entry.id == key)


def find(entry: source.Provider, model_id: str) -> source.ModelInfo | None:
    """Return the package's model for an id of ours, by the package's own matching, or None."""
    return next((model for model in entry.models if model.is_match(model_id)), None)


def rows(model: source.ModelInfo, provider_id: str = "") -> list[dict[str, Any]]:
    """Return the price rows of a model; empty when the package prices it in units that `Usage` does not have."""
    standard = [_row(entry.prices, **_when(entry.constraint)) for entry in _conditional(model)]
    tiers = [row for context in _contexts(model) for row in _tier_rows(model, *context)]
    if any(row is None for row in (*standard, *tiers)):
        return []
    found = [row for row in (*standard, *tiers) if row]
    for row in found if provider_id in ONE_PRICE else ():
        for rates in (row, *row.get("tiers", ())):
            rates.setdefault("audio_input_per_mtok_usd", rates["input_per_mtok_usd"])
    return found


def _conditional(model: source.ModelInfo) -> list[source.ConditionalPrice]:
    if isinstance(model.prices, source.ModelPrice):
        return [source.ConditionalPrice(prices=model.prices)]
    return model.prices


def _contexts(model: source.ModelInfo) -> list[tuple[str, str]]:
    """Return the (key, value) contexts with prices of their own, in the package's order, each once."""
    single = [next(iter(variant.when.items())) for variant in model.price_variants or () if len(variant.when) == 1]
    return [context for context in dict.fromkeys(single) if context[1] not in USUAL_TIERS]


def _tier_rows(model: source.ModelInfo, key: str, value: str) -> Iterable[dict[str, Any] | None]:
    starts = {_start(variant.constraint) for variant in model.price_variants or () if variant.when == {key: value}}
    first = min(starts)
    starts |= {start for entry in _conditional(model) if (start := _start(entry.constraint)) > first}
    for start in sorted(starts):
        since = None if start == EARLIEST.date() else start
        moment = datetime.combine(start, time(), tzinfo=UTC)
        yield _row(model.get_prices(moment, {key: value}), since=since, service_tier=value)


def _start(constraint: Any) -> date:
    if constraint is None:
        return EARLIEST.date()
    if isinstance(constraint, source.StartDateConstraint):
        return constraint.start_date
    raise NotImplementedError(f"a service tier with time-of-day prices: {constraint}")


def _when(constraint: Any) -> dict[str, Any]:
    if isinstance(constraint, source.TimeOfDateConstraint):
        return {"utc_hours": [f"{_utc(constraint.start_time):%H:%M}", f"{_utc(constraint.end_time):%H:%M}"]}
    return {"since": constraint.start_date if constraint else None}


def _utc(moment: time) -> time:
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return datetime.combine(date(1970, 1, 2), aware).astimezone(UTC).time()


def _row(
    prices: source.ModelPrice, since: date | None = None, utc_hours: list[str] | None = None, service_tier: str = ""
) -> dict[str, Any] | None:
    known = {key: value for key, value in vars(prices).items() if value is not None}
    if not known.keys() or known.keys() - RATES.keys() - UNITS.keys():
        return None
    row: dict[str, Any] = {"from": since.isoformat() if since else None}
    row |= {"utc_hours": utc_hours} if utc_hours else {}
    row |= {"service_tier": service_tier} if service_tier else {}
    row |= _rates(known, 0)
    tiered = [value.tiers for value in known.values() if isinstance(value, source.TieredPrices)]
    cliffs = sorted({tier.start for tiers in tiered for tier in tiers})
    row |= {"tiers": [{"above_input_tokens": cliff} | _rates(known, cliff + 1) for cliff in cliffs]} if cliffs else {}
    return row


def _rates(known: dict[str, Any], input_tokens: int) -> dict[str, Any]:
    rates: dict[str, Any] = {name: _usd(known[key], input_tokens) for key, name in RATES.items() if key in known}
    counted = {name: (known[key], of) for key, (name, of) in UNITS.items() if key in known}
    units = {name: f"{Decimal(_usd(price, input_tokens)) / of:f}" for name, (price, of) in counted.items()}
    return rates | ({"units": units} if units else {})


def _usd(value: Decimal | source.TieredPrices, input_tokens: int) -> str:
    if isinstance(value, source.TieredPrices):
        passed = [tier.price for tier in value.tiers if input_tokens > tier.start]
        value = passed[-1] if passed else value.base
    return f"{value.normalize():f}"
