"""Reading catalogue files: the shape the reader documents, and where a fault is."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import date, time
from decimal import Decimal
from typing import Any

import pytest

from interlingua._catalogue import ModelInfo, Price, PriceTier, find_model, load_catalogue
from interlingua.errors import DecodeError


def _file(*models: Any, **head: Any) -> str:
    return json.dumps({"pricing_version": "v1", "models": list(models), **head})


def test_a_full_model() -> None:
    tier = {"above_input_tokens": 200000, "input_per_mtok_usd": "6"}
    price = {
        "from": "2026-08-21",
        "utc_hours": ["01:00", "04:00"],
        "service_tier": "flex",
        "input_per_mtok_usd": "3",
        "output_per_mtok_usd": "15",
        "cached_read_per_mtok_usd": "0.3",
        "cache_write_per_mtok_usd": "3.75",
        "cache_write_1h_per_mtok_usd": "6",
        "tiers": [tier],
    }
    row = {
        "id": "m",
        "aliases": ["short"],
        "api": "chat",
        "max_context_tokens": 1000,
        "max_output_tokens": None,
        "capabilities": {"supports_images": True},
        "facts": {"sampling": False},
        "prices": [price],
    }
    (model,) = load_catalogue(_file(row, standard_service_tiers=["on_demand"]))
    expected = ModelInfo(
        id="m",
        aliases=("short",),
        api="chat",
        max_context_tokens=1000,
        capabilities={"supports_images": True},
        facts={"sampling": False},
        pricing_version="v1",
        standard_service_tiers=("on_demand",),
        prices=(
            Price(
                since=date(2026, 8, 21),
                utc_hours=(time(1), time(4)),
                service_tier="flex",
                input_per_mtok_usd=Decimal(3),
                output_per_mtok_usd=Decimal(15),
                cached_read_per_mtok_usd=Decimal("0.3"),
                cache_write_per_mtok_usd=Decimal("3.75"),
                cache_write_1h_per_mtok_usd=Decimal(6),
                tiers=(PriceTier(above_input_tokens=200000, input_per_mtok_usd=Decimal(6)),),
            ),
        ),
    )
    assert model == expected
    assert hash(model) == hash(expected)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("{", ""),
        ("[]", "/models"),
        (_file("m"), "/models/0"),
        (_file({"name": "m"}), "/models/0"),
        (_file({"id": "m", "price": []}), "/models/0"),
        (_file({"id": 1}), "/models/0/id"),
        (_file({"id": "m", "aliases": "short"}), "/models/0/aliases"),
        (_file({"id": "m", "api": 1}), "/models/0/api"),
        (_file({"id": "m", "max_context_tokens": "1"}), "/models/0/max_context_tokens"),
        (_file({"id": "m", "max_output_tokens": True}), "/models/0/max_output_tokens"),
        (_file({"id": "m", "aliases": ["short", 1]}), "/models/0/aliases/1"),
        (_file({"id": "m", "facts": None}, {"id": "n", "facts": [1]}), "/models/1/facts"),
        (_file({"id": "m", "prices": {"from": None}}), "/models/0/prices"),
        (_file({"id": "m"}, standard_service_tiers="default"), "/standard_service_tiers"),
    ],
)
def test_a_faulty_file_is_refused_with_the_place(text: str, path: str) -> None:
    with pytest.raises(DecodeError) as caught:
        load_catalogue(text)
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("price", "path"),
    [
        ("free", ""),
        ({"input_per_mtok": "3"}, ""),
        ({"units": {"web_search": 1}}, "/units"),
        ({"input_per_mtok_usd": 3.0}, "/input_per_mtok_usd"),
        ({"input_per_mtok_usd": "three"}, "/input_per_mtok_usd"),
        ({"input_per_mtok_usd": "NaN"}, "/input_per_mtok_usd"),
        ({"input_per_mtok_usd": "-1"}, "/input_per_mtok_usd"),
        ({"from": "soon"}, ""),
        ({"utc_hours": ["01:00"]}, ""),
        ({"tiers": [{"input_per_mtok_usd": "1"}]}, "/tiers/0"),
        ({"tiers": [{"above_input_tokens": "1"}]}, "/tiers/0/above_input_tokens"),
    ],
)
def test_a_faulty_price_is_refused_when_looked_at(price: Any, path: str) -> None:
    (model,) = load_catalogue(_file({"id": "m", "prices": [price]}))
    with pytest.raises(DecodeError) as caught:
        tuple(model.prices)
    assert caught.value.path == f"/models/0/prices/0{path}"


def test_an_unknown_key_is_named() -> None:
    (model,) = load_catalogue(_file({"id": "m", "prices": [{"input_per_mtok": "3"}]}))
    with pytest.raises(DecodeError, match="'input_per_mtok'"):
        tuple(model.prices)
    with pytest.raises(DecodeError, match="'price'"):
        load_catalogue(_file({"id": "m", "price": []}))


def test_an_exact_small_price_may_be_written_with_an_exponent() -> None:
    (model,) = load_catalogue(_file({"id": "m", "prices": [{"input_per_mtok_usd": str(Decimal("0.0000001"))}]}))
    assert model.prices[0].input_per_mtok_usd == Decimal("1E-7")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("m-2", "m-2"),
        ("m", "m-1"),
        ("m-2-20260101", "m-2"),
        ("m-2026-01-01", "m-1"),
        ("m-1-2025-05-13", "m-1-2025-05-13"),
        ("m-3", None),
        ("m-2-2026", None),
        ("M-2", None),
    ],
)
def test_finding_by_id_then_alias_then_dated_snapshot(name: str, found: str | None) -> None:
    models = load_catalogue(_file({"id": "m-1", "aliases": ["m"]}, {"id": "m-2"}, {"id": "m-1-2025-05-13"}))
    model = find_model(models, name)
    assert (model.id if model else None) == found


def test_importing_stays_cheap() -> None:
    """Values load when first used, without the codec, the HTTP client or a big library."""
    code = "import sys, interlingua._catalogue; print([m for m in ('httpx', 'cattrs', 'pluggy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
