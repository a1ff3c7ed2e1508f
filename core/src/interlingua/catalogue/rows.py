"""Reading the price rows of one model, when somebody first asks for them.

Never decides which row counts: `ModelInfo.price_at` does.
Only the catalogue's reader comes in.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date, time
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import Any, overload

from interlingua.catalogue.values import Price, PriceTier
from interlingua.errors import DecodeError

_RATES = (
    "input_per_mtok_usd",
    "output_per_mtok_usd",
    "cached_read_per_mtok_usd",
    "cache_write_per_mtok_usd",
    "cache_write_1h_per_mtok_usd",
    "audio_input_per_mtok_usd",
    "cached_audio_read_per_mtok_usd",
)
_PRICE_KEYS = frozenset((*_RATES, "from", "utc_hours", "service_tier", "tiers"))
_TIER_KEYS = frozenset((*_RATES, "above_input_tokens"))


def refuse(keys: Collection[str], path: str) -> None:
    """Raise DecodeError for the first of these unknown keys, if any."""
    for key in sorted(keys):
        raise DecodeError(f"unknown key {key!r} in a catalogue", path=f"{path}/{key}")


class LazyPrices(Sequence[Price]):
    """The prices of one model: compares and counts as the tuple it becomes when first touched."""

    __slots__ = ("_path", "_read", "_rows")

    def __init__(self, rows: list[Any], path: str) -> None:
        self._rows = rows
        self._path = path
        self._read: tuple[Price, ...] | None = None

    def _prices(self) -> tuple[Price, ...]:
        if self._read is None:
            self._read = tuple(_price(row, f"{self._path}/{place}") for place, row in enumerate(self._rows))
        return self._read

    @overload
    def __getitem__(self, place: int) -> Price: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Price, ...]: ...
    def __getitem__(self, place: int | slice) -> Price | tuple[Price, ...]:
        return self._prices()[place]

    def __len__(self) -> int:
        return len(self._rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple | LazyPrices) and self._prices() == tuple(other)

    def __hash__(self) -> int:
        return hash(self._prices())

    def __repr__(self) -> str:
        return repr(self._prices())


def _price(row: Any, path: str) -> Price:
    if not isinstance(row, dict):
        raise DecodeError("a price is an object", path=path)
    refuse(row.keys() - _PRICE_KEYS, path)
    try:
        since = date.fromisoformat(row["from"]) if row.get("from") else None
        hours = row.get("utc_hours")
        utc_hours = (time.fromisoformat(hours[0]), time.fromisoformat(hours[1])) if hours else None
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise DecodeError(f"a price is dated wrongly: {error}", path=path) from error
    tiers = tuple(_tier(tier, f"{path}/tiers/{place}") for place, tier in enumerate(row.get("tiers") or ()))
    if any(low.above_input_tokens >= high.above_input_tokens for low, high in pairwise(tiers)):
        raise DecodeError("tiers rise", path=f"{path}/tiers")
    tier_name = row.get("service_tier")
    return Price(since=since, utc_hours=utc_hours, service_tier=tier_name, tiers=tiers, **_rates(row, path))


def _tier(row: Any, path: str) -> PriceTier:
    if not isinstance(row, dict) or type(row.get("above_input_tokens")) is not int:
        raise DecodeError("a tier is an object with above_input_tokens", path=f"{path}/above_input_tokens")
    refuse(row.keys() - _TIER_KEYS, path)
    return PriceTier(above_input_tokens=row["above_input_tokens"], **_rates(row, path))


def _rates(row: dict[str, Any], path: str) -> dict[str, Decimal]:
    return {key: _usd(row[key], f"{path}/{key}") for key in _RATES if row.get(key) is not None}


def _usd(value: Any, path: str) -> Decimal:
    try:
        if isinstance(value, str) and (price := Decimal(value)).is_finite() and price >= 0:
            return price
    except InvalidOperation:
        pass
    raise DecodeError("a price is a decimal number of USD in a string", path=path)
