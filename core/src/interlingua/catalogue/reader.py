r"""Reading a catalogue file: JSON in, models out.

Never goes to the network or the disk: the plugin hands over the text of its own file.
Provider plugins come in, and the tool that refreshes the files.

The file is one object::

    {"pricing_version": "2026-11-21",          kept with each cost computed from these prices
     "source": "…", "source_provider": "…",    where the prices come from; for people and the refresh tool
     "standard_service_tiers": ["default"],    how the provider names its usual tier
     "models": [{
       "id": "…", "aliases": ["…"], "api": null,
       "max_context_tokens": n|null, "max_output_tokens": n|null,
       "capabilities": {…}, "facts": {…},
       "prices": [{
         "from": "2026-08-21"|null,            first UTC day; the last row that applies counts
         "utc_hours": ["01:00", "04:00"],      only for time-of-day prices
         "service_tier": "flex",               only for a tier that is not the usual one
         "input_per_mtok_usd": "3", "output_per_mtok_usd": "15", "cached_read_per_mtok_usd": "0.3",
         "cache_write_per_mtok_usd": "3.75", "cache_write_1h_per_mtok_usd": "6",
         "audio_input_per_mtok_usd": "7", "cached_audio_read_per_mtok_usd": "0.7",
         "tiers": [{"above_input_tokens": 200000, "input_per_mtok_usd": "6", …}]}]}]}

Prices are decimal strings. Only "models" and each "id" must be there; an unknown key of a model or a price is refused,
because a misspelt price would pass for an unknown one. A tier repeats every price that the row has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua import jsontext
from interlingua.catalogue.rows import LazyPrices, refuse
from interlingua.catalogue.values import ModelInfo
from interlingua.errors import DecodeError

_MODEL_KEYS = frozenset(
    ("id", "aliases", "api", "max_context_tokens", "max_output_tokens", "capabilities", "facts", "prices")
)


def load_catalogue(text: str | bytes) -> tuple[ModelInfo, ...]:
    """Read a catalogue; price rows are only read when first touched, for this is on the way of a cold start.

    Args:
        text: the JSON described in this module.

    Raises:
        DecodeError: not JSON, or not of this shape; `path` is the JSON pointer of the fault. Faults inside
            "prices" are raised when the prices of that model are first looked at.
    """
    try:
        file = jsontext.loads_fast(text)
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
    refuse(row.keys() - _MODEL_KEYS, path)
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
