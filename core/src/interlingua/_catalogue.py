"""Models and prices: read from a plugin's models.json, looked up by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import cached_property
from typing import Any, TypeVar

import attrs

from interlingua._json import EMPTY, FieldError, FrozenDict, freeze_object, loads_lossy, raise_field_error
from interlingua._values import validated
from interlingua.errors import CallerError, DecodeError

_T = TypeVar("_T")
_USD = re.compile(r"\d*\.?\d+(?:[eE][+-]?\d+)?")


def _usd(value: str | Decimal | None) -> Decimal | None:
    if value is None or isinstance(value, Decimal):
        return value
    if isinstance(value, str) and _USD.fullmatch(value):
        return Decimal(value)
    raise FieldError(f"expected a decimal number of USD in a string, got {value!r:.40}")


def _units(value: Mapping[str, Any]) -> FrozenDict:
    return FrozenDict({name: _usd(price) for name, price in value.items()})


def _day(value: str | date | None) -> date | None:
    return date.fromisoformat(value) if isinstance(value, str) else value


def _hours(value: Sequence[str | time] | None) -> tuple[time, time] | None:
    if value is None:
        return None
    start, end = (time.fromisoformat(hour) if isinstance(hour, str) else hour for hour in value)
    return start, end


@validated
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

    input_per_mtok_usd: Decimal | None = attrs.field(default=None, converter=_usd)
    output_per_mtok_usd: Decimal | None = attrs.field(default=None, converter=_usd)
    cached_read_per_mtok_usd: Decimal | None = attrs.field(default=None, converter=_usd)
    cache_write_per_mtok_usd: Decimal | None = attrs.field(default=None, converter=_usd)
    cache_write_1h_per_mtok_usd: Decimal | None = attrs.field(default=None, converter=_usd)
    audio_input_per_mtok_usd: Decimal | None = attrs.field(default=None, converter=_usd)
    cached_audio_read_per_mtok_usd: Decimal | None = attrs.field(default=None, converter=_usd)
    units: FrozenDict = attrs.field(default=EMPTY, converter=_units)


@validated
@attrs.frozen(kw_only=True)
class PriceTier(Rates):
    """Rates that bill the whole request once its inclusive input passes `above_input_tokens`.

    Attributes:
        above_input_tokens: the rates apply to requests of more inclusive input tokens than this.
    """

    above_input_tokens: int


@validated
@attrs.frozen(kw_only=True)
class Price(Rates):
    """The rates of one model from one day on; of the rows that apply at a moment, the last one counts.

    Attributes:
        since: first UTC day of these rates; None means from the beginning.
        utc_hours: (from, to) hours of the UTC day, `to` excluded, for time-of-day prices; None means all day.
        service_tier: the processing tier these rates are for, as the provider reports it; None means the standard tier.
        tiers: rates of larger requests, in rising order of `above_input_tokens`.
    """

    since: date | None = attrs.field(default=None, converter=_day)
    utc_hours: tuple[time, time] | None = attrs.field(default=None, converter=_hours)
    service_tier: str | None = None
    tiers: tuple[PriceTier, ...] = ()

    def active(self, at: datetime) -> bool:
        """Return whether these rates apply at a moment; a naive `at` is taken as UTC."""
        moment = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
        if self.since is not None and moment.date() < self.since:
            return False
        start, end = self.utc_hours or (time.min, time.min)
        now = moment.time()
        return start <= now < end if start < end else now >= start or now < end

    def rates(self, input_tokens: int) -> Rates:
        """Return the rates for a number of inclusive input tokens: those of the highest tier passed, or the base."""
        return next((tier for tier in reversed(self.tiers) if input_tokens > tier.above_input_tokens), self)


@validated
@attrs.frozen(kw_only=True)
class ModelInfo:
    """One model of a provider, as its provider's catalogue describes it.

    Attributes:
        id: the provider's own id, without the provider key.
        aliases: other names of the same model.
        maker: key of the maker's own provider, if this provider only hosts the model; a bare name means the maker's.
        api: the API that this model must be called with, or None for the provider's default.
        max_context_tokens: context window in tokens, or None if unknown.
        max_output_tokens: maximum number of tokens of one answer, or None if unknown.
        capabilities: overrides of the provider's default capabilities, by field name.
        facts: further facts that the plugin needs; each plugin documents its own keys.
        prices: dated list prices; empty if no price is known, which does not mean free.
        pricing_version: source and date of the prices, stored with every cost computed from them.
        standard_service_tiers: names under which the provider reports its standard tier.
    """

    id: str
    aliases: tuple[str, ...] = ()
    maker: str | None = None
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


class LazyPrices(Sequence[Price]):
    """The prices of one model, read when first used: a cold start needs none. Equal to the tuple of them."""

    def __init__(self, rows: list[Any], path: str) -> None:
        self._rows = rows
        self._path = path

    @cached_property
    def _prices(self) -> tuple[Price, ...]:
        return tuple(_read_price(row, f"{self._path}/{place}") for place, row in enumerate(self._rows))

    def __getitem__(self, place: Any) -> Any:
        return self._prices[place]

    def __len__(self) -> int:
        return len(self._rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple | LazyPrices) and self._prices == tuple(other)

    def __hash__(self) -> int:
        return hash(self._prices)

    def __repr__(self) -> str:
        return repr(self._prices)


def load_catalogue(text: str | bytes) -> tuple[ModelInfo, ...]:
    """Read a plugin's models.json; the prices in it are read when first used.

    Args:
        text: an object with `models`, `pricing_version` and `standard_service_tiers`; each model has the fields of
            ModelInfo, each price those of Price, with `from` for `since`. A model's own fields win.

    Raises:
        DecodeError: not JSON, or not of this shape; `path` is the JSON pointer of the fault. Faults inside
            `prices` are raised when the prices of that model are first used.
    """
    try:
        file = loads_lossy(text)
    except ValueError as error:
        raise DecodeError(f"a catalogue is not JSON: {error}") from error
    if not isinstance(file, dict) or not isinstance(file.get("models"), list):
        raise DecodeError("a catalogue is an object with a list of models", path="/models")
    shared = {name: file[name] for name in ("pricing_version", "standard_service_tiers") if file.get(name)}
    _make(ModelInfo, {"id": "", **shared}, "")  # an error in them is at the top of the file
    return tuple(_read_model(row, shared, f"/models/{place}") for place, row in enumerate(file["models"]))


def load_prices(text: str | bytes) -> dict[str, tuple[ModelInfo, ...]]:
    """Read a file of the user's prices: models by provider key, each as in a models.json.

    Args:
        text: an object with `pricing_version`, the source and date of the prices, and `providers`, an object of arrays.

    Raises:
        DecodeError: as `load_catalogue`; the prices are read at once.
    """
    try:
        file = loads_lossy(text)
    except ValueError as error:
        raise DecodeError(f"prices are not JSON: {error}") from error
    if not isinstance(file, dict) or not isinstance(file.get("providers"), dict) or not file.get("pricing_version"):
        raise DecodeError("prices are an object with `pricing_version` and `providers`", path="/providers")
    shared, found = {"pricing_version": file["pricing_version"]}, {}
    for key, rows in file["providers"].items():
        where = f"/providers/{key}"
        if not isinstance(rows, list):
            raise DecodeError("models are an array", path=where)
        found[key] = tuple(_read_model(row, shared, f"{where}/{place}") for place, row in enumerate(rows))
        for model in found[key]:
            tuple(model.prices)
    return found


def _read_model(row: Any, shared: dict[str, Any], path: str) -> ModelInfo:
    fields = shared | _make(dict[str, Any], row, path)
    prices = fields.get("prices", [])
    if not isinstance(prices, list):
        raise DecodeError("prices are an array", path=f"{path}/prices")
    return _make(ModelInfo, fields | {"prices": LazyPrices(prices, f"{path}/prices") if prices else ()}, path)


def _read_price(row: Any, path: str) -> Price:
    fields = _make(dict[str, Any], row, path)
    fields["since"] = fields.pop("from", None)
    tiers = enumerate(fields.get("tiers", ()))
    fields["tiers"] = tuple(_make(PriceTier, tier, f"{path}/tiers/{place}") for place, tier in tiers)
    return _make(Price, fields, path)


def _make(cls: Callable[..., _T], row: Any, path: str) -> _T:
    """Make a value of an object in the file, or raise a DecodeError; null stands for a default."""
    try:
        given = row if isinstance(row, dict) else raise_field_error("object", row)
        return cls(**{name: value for name, value in given.items() if value is not None})
    except (CallerError, TypeError, ValueError) as error:
        problem = error.__context__ if isinstance(error, CallerError) else error
        place = str(getattr(problem, "path", "")).replace(".", "/").replace("[", "/").replace("]", "")
        raise DecodeError(f"wrong in a catalogue: {problem}", path=path + place) from error


_DATED = re.compile(r"(?:[-@](?:\d{8}|\d{4}-\d{2}-\d{2})|@default)\Z")


def find_model(models: Iterable[ModelInfo], name: str) -> ModelInfo | None:
    """Return the model with this id, else with this alias, else the one whose dated snapshot this is.

    The name has no provider key. `-YYYYMMDD` and `-YYYY-MM-DD` (or with `@`) date a snapshot, and `@default` is the
    undated one.
    """
    known, dated = tuple(models), _DATED.search(name)
    for wanted in (name, name[: dated.start()]) if dated else (name,):
        by_id = (model for model in known if model.id == wanted)
        found = next(by_id, None) or next((model for model in known if wanted in model.aliases), None)
        if found is not None:
            return found
    return None
