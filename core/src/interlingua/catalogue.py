"""Models and prices: read from a plugin's models.json, looked up by name."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from functools import cached_property
from itertools import pairwise
from typing import Any

import attrs

from interlingua.errors import DecodeError
from interlingua.json import EMPTY, FrozenDict, freeze_object, loads_fast


@attrs.frozen(kw_only=True)
class Rates:
    """List prices in USD per million tokens; None means that the source has no such price.

    Attributes:
        input_per_mtok_usd: plain input.
        output_per_mtok_usd: output, reasoning included.
        cached_read_per_mtok_usd: input read from the provider's prompt cache.
        cache_write_per_mtok_usd: input written to the cache for the provider's default time.
        cache_write_1h_per_mtok_usd: input written to the cache for one hour.
        audio_input_per_mtok_usd: audio input.
        cached_audio_read_per_mtok_usd: audio input read from the cache.
        units: USD for one of each of `Usage.extra_units`, by its name.
    """

    input_per_mtok_usd: Decimal | None = None
    output_per_mtok_usd: Decimal | None = None
    cached_read_per_mtok_usd: Decimal | None = None
    cache_write_per_mtok_usd: Decimal | None = None
    cache_write_1h_per_mtok_usd: Decimal | None = None
    audio_input_per_mtok_usd: Decimal | None = None
    cached_audio_read_per_mtok_usd: Decimal | None = None
    units: FrozenDict = EMPTY


@attrs.frozen(kw_only=True)
class PriceTier(Rates):
    """Rates that bill the whole request once its inclusive input passes `above_input_tokens`.

    Attributes:
        above_input_tokens: the rates apply to requests of more inclusive input tokens than this.
    """

    above_input_tokens: int


@attrs.frozen(kw_only=True)
class Price(Rates):
    """The rates of one model from one day on; of the rows that apply at a moment, the last one counts.

    Attributes:
        since: first UTC day of these rates; None means from the beginning.
        utc_hours: (from, to) hours of the UTC day, `to` excluded, for time-of-day prices; None means all day.
        service_tier: the processing tier these rates are for, as the provider reports it; None is the standard one.
        tiers: rates of larger requests, in rising order of `above_input_tokens`.
    """

    since: date | None = None
    utc_hours: tuple[time, time] | None = None
    service_tier: str | None = None
    tiers: tuple[PriceTier, ...] = ()

    def active(self, at: datetime) -> bool:
        """Say whether these rates apply at a moment; a naive `at` is taken as UTC."""
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
        """Return the rates for a request of so many inclusive input tokens: of the highest tier passed, or the base."""
        passed: Rates = self
        for tier in self.tiers:
            if input_tokens > tier.above_input_tokens:
                passed = tier
        return passed


@attrs.frozen(kw_only=True)
class ModelInfo:
    """One model of a provider, as its provider's catalogue describes it.

    Attributes:
        id: the provider's own id, without the provider key.
        aliases: other names of the same model.
        api: the provider's API this model must be called with; None where the provider's default serves it.
        max_context_tokens: context window in tokens; None is unknown.
        max_output_tokens: most tokens one answer may have; None is unknown.
        capabilities: overrides of the provider's default capabilities, by field name.
        facts: what else the adapter needs to know of the model; each plugin documents its own keys.
        prices: dated list prices; empty where none is known, which does not mean free.
        pricing_version: version of the price data, stored with every cost computed from it.
        standard_service_tiers: names under which the provider reports its standard tier.
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


_RATES = tuple(name for name in attrs.fields_dict(Rates) if name != "units")
_PRICE_KEYS = frozenset((*_RATES, "units", "from", "utc_hours", "service_tier", "tiers"))
_TIER_KEYS = frozenset((*_RATES, "units", "above_input_tokens"))


def _refuse_unknown(keys: Collection[str], path: str) -> None:
    for key in sorted(keys):
        raise DecodeError(f"unknown key {key!r} in a catalogue", path=f"{path}/{key}")


class LazyPrices(Sequence[Price]):
    """The prices of one model, read when first used: a cold start needs none. Equal to the tuple of them."""

    def __init__(self, rows: list[Any], path: str) -> None:
        self._rows = rows
        self._path = path

    @cached_property
    def _prices(self) -> tuple[Price, ...]:
        return tuple(_price(row, f"{self._path}/{place}") for place, row in enumerate(self._rows))

    def __getitem__(self, place: Any) -> Any:
        return self._prices[place]

    def __iter__(self) -> Iterator[Price]:
        return iter(self._prices)

    def __len__(self) -> int:
        return len(self._rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple | LazyPrices) and self._prices == tuple(other)

    def __hash__(self) -> int:
        return hash(self._prices)

    def __repr__(self) -> str:
        return repr(self._prices)


def _price(row: Any, path: str) -> Price:
    if not isinstance(row, dict):
        raise DecodeError("a price is an object", path=path)
    _refuse_unknown(row.keys() - _PRICE_KEYS, path)
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
    _refuse_unknown(row.keys() - _TIER_KEYS, path)
    return PriceTier(above_input_tokens=row["above_input_tokens"], **_rates(row, path))


def _rates(row: dict[str, Any], path: str) -> dict[str, Any]:
    units = _object(row, "units", path)
    return {
        **{key: _usd(row[key], f"{path}/{key}") for key in _RATES if row.get(key) is not None},
        "units": FrozenDict({name: _usd(price, f"{path}/units/{name}") for name, price in units.items()}),
    }


def _usd(value: Any, path: str) -> Decimal:
    try:
        if isinstance(value, str) and (price := Decimal(value)).is_finite() and price >= 0:
            return price
    except InvalidOperation:
        pass
    raise DecodeError("a price is a decimal number of USD in a string", path=path)


_MODEL_KEYS = frozenset(
    ("id", "aliases", "api", "max_context_tokens", "max_output_tokens", "capabilities", "facts", "prices")
)


def load_catalogue(text: str | bytes) -> tuple[ModelInfo, ...]:
    """Read a plugin's models.json; the prices in it are read when first used.

    Args:
        text: an object with `models`, `pricing_version` and `standard_service_tiers`; each model has the fields of
            ModelInfo, each price those of Price, with `from` for `since`.

    Raises:
        DecodeError: not JSON, or not of this shape; `path` is the JSON pointer of the fault. Faults inside
            `prices` are raised when the prices of that model are first used.
    """
    try:
        file = loads_fast(text)
    except ValueError as error:
        raise DecodeError(f"a catalogue is not JSON: {error}") from error
    if not isinstance(file, dict) or not isinstance(file.get("models"), list):
        raise DecodeError("a catalogue is an object with a list of models", path="/models")
    shared: dict[str, Any] = {"pricing_version": file.get("pricing_version")}
    if tiers := file.get("standard_service_tiers"):
        shared["standard_service_tiers"] = _strings(tiers, "/standard_service_tiers")
    models = tuple(_model(row, f"/models/{place}", shared) for place, row in enumerate(file["models"]))
    _check_names(models)
    return models


def _model(row: Any, path: str, shared: Mapping[str, Any]) -> ModelInfo:
    if not isinstance(row, dict) or not isinstance(row.get("id"), str):
        raise DecodeError("a model is an object with an id", path=f"{path}/id")
    _refuse_unknown(row.keys() - _MODEL_KEYS, path)
    prices = row.get("prices") or []
    if not isinstance(prices, list):
        raise DecodeError("prices are a list", path=f"{path}/prices")
    api = row.get("api")
    if not isinstance(api, str | None):
        raise DecodeError("an api is a name or null", path=f"{path}/api")
    return ModelInfo(
        id=row["id"],
        aliases=_strings(row.get("aliases") or [], f"{path}/aliases"),
        api=api,
        max_context_tokens=_count(row, "max_context_tokens", path),
        max_output_tokens=_count(row, "max_output_tokens", path),
        capabilities=_object(row, "capabilities", path),
        facts=_object(row, "facts", path),
        prices=LazyPrices(prices, f"{path}/prices") if prices else (),
        **shared,
    )


def _check_names(models: tuple[ModelInfo, ...]) -> None:
    seen: set[str] = set()
    for place, model in enumerate(models):
        for name in (model.id, *model.aliases):
            if name in seen:
                raise DecodeError(f"two models are named {name!r}", path=f"/models/{place}")
            seen.add(name)


def _strings(value: Any, path: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise DecodeError("expected a list of strings", path=path)
    return tuple(value)


def _count(row: dict[str, Any], key: str, path: str) -> int | None:
    value = row.get(key)
    if value is None or (type(value) is int and value > 0):
        return value
    raise DecodeError(f"{key} is a positive whole number or null", path=f"{path}/{key}")


def _object(row: dict[str, Any], key: str, path: str) -> dict[str, Any]:
    value = row.get(key) or {}
    if not isinstance(value, dict):
        raise DecodeError(f"{key} is an object", path=f"{path}/{key}")
    return value


_DATED = re.compile(r"[-@](?:\d{8}|\d{4}-\d{2}-\d{2})\Z")


def find_model(models: Iterable[ModelInfo], name: str) -> ModelInfo | None:
    """Return the model with this id, else with this alias, else the one whose dated snapshot this is.

    Args:
        models: a catalogue.
        name: model name without the provider key; `-YYYYMMDD` and `-YYYY-MM-DD` (or with `@`) date a snapshot.
    """
    known = tuple(models)
    found = _named(known, name)
    if found is None and (dated := _DATED.search(name)):
        found = _named(known, name[: dated.start()])
    return found


def _named(models: tuple[ModelInfo, ...], name: str) -> ModelInfo | None:
    by_id = (model for model in models if model.id == name)
    return next(by_id, None) or next((model for model in models if name in model.aliases), None)
