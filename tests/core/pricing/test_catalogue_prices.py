"""The shipped catalogues hold the list prices they claim to hold."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from importlib.resources import files
from pathlib import Path

import pytest

from interlingua._catalogue import Price, find_model, load_catalogue

ROOT = Path(__file__).parents[3]
AT = datetime(2026, 11, 21, 12, tzinfo=UTC)  # the moment for which the rows below were looked up
FILES = {
    "anthropic": files("interlingua_anthropic") / "models.json",
    "openai": files("interlingua_openai") / "models.json",
    "deepseek": files("interlingua_chat_completions") / "models" / "deepseek.json",
    "xai": files("interlingua_chat_completions") / "models" / "xai.json",
    "moonshot": files("interlingua_chat_completions") / "models" / "moonshot.json",
}
NAMES = (
    "input_per_mtok_usd",
    "output_per_mtok_usd",
    "cached_read_per_mtok_usd",
    "cache_write_per_mtok_usd",
    "cache_write_1h_per_mtok_usd",
)

# Rows copied from the services' price lists: file, id, context, prices below, tier limit, prices above.
SHEET = [
    ("anthropic", "claude-fable-5-2", 1_000_000, "8 40 0.2 10 16", None, None),
    ("anthropic", "claude-opus-5-5", 1_000_000, "4 20 0.2 5 8", None, None),
    ("anthropic", "claude-opus-4-7", 1_000_000, "5 25 0.5 6.25 10", None, None),
    ("anthropic", "claude-sonnet-4-6", 1_000_000, "3 15 0.3 3.75 6", None, None),
    ("anthropic", "claude-sonnet-4-5", 200_000, "3 15 0.3 3.75 6", 200_000, "6 22.5 0.6 7.5 12"),
    ("anthropic", "claude-haiku-5-5", 1_000_000, "0.1 0.5 0.01 0.125 0.2", 100_000, "0.5 2.5 0.05 0.625 1"),
    ("anthropic", "claude-haiku-4-5", 200_000, "1 5 0.1 1.25 2", None, None),
    ("openai", "gpt-6.1-sol", 1_050_000, "2 10 0.1 2.5 -", 272_000, "4 15 0.2 5 -"),
    ("openai", "gpt-5.6-luna", 1_050_000, "0.2 1.2 0.02 0.25 -", 272_000, "0.4 1.8 0.04 0.5 -"),
    ("openai", "gpt-5.5", 1_000_000, "5 30 0.5 - -", 272_000, "10 45 1 - -"),
    ("openai", "gpt-5-mini", 400_000, "0.25 2 0.025 - -", None, None),
    ("openai", "gpt-4.1", 1_000_000, "2 8 0.5 - -", None, None),
    ("openai", "o3", 200_000, "2 8 0.5 - -", None, None),
    ("deepseek", "deepseek-v4-pro", 1_000_000, "0.66 1.98 0.022 - -", None, None),
    ("deepseek", "deepseek-chat", 64_000, "0.27 1.1 0.07 - -", None, None),
    ("xai", "grok-4.5", 500_000, "2 6 0.3 - -", 199_999, "4 12 0.6 - -"),
    ("moonshot", "kimi-k3", 1_048_576, "3 15 0.3 3 6", None, None),
]


def _listed(cells: str) -> dict[str, Decimal | None]:
    return {name: None if cell == "-" else Decimal(cell) for name, cell in zip(NAMES, cells.split(), strict=True)}


def _ours(price: Price, input_tokens: int) -> dict[str, Decimal | None]:
    rates = price.rates(input_tokens)
    return {name: getattr(rates, name) for name in NAMES}


@pytest.mark.parametrize(("file", "name", "context", "below", "limit", "above"), SHEET, ids=[row[1] for row in SHEET])
def test_row_of_the_price_list(
    file: str, name: str, context: int, below: str, limit: int | None, above: str | None
) -> None:
    model = find_model(load_catalogue(FILES[file].read_bytes()), name)
    assert model is not None
    assert model.max_context_tokens == context
    price = model.price_at(AT)
    assert price is not None
    assert [tier.above_input_tokens for tier in price.tiers] == ([limit] if limit else [])
    assert _ours(price, 1000) == _listed(below)
    if limit and above:
        assert _ours(price, limit) == _listed(below)
        assert _ours(price, limit + 1) == _listed(above)


@pytest.mark.parametrize("name", ["gpt-6.2-astra", "gpt-6.2-sol"])
def test_models_the_price_data_lacks_are_listed_without_a_price(name: str) -> None:
    """Sheet PRICES, "missing from 0.2.3": known to the SDK, priced nowhere."""
    model = find_model(load_catalogue(FILES["openai"].read_bytes()), name)
    assert model is not None
    assert tuple(model.prices) == ()


@pytest.mark.parametrize(
    ("name", "newest"),
    [
        ("sonnet", "claude-sonnet-5-5"),
        ("opus", "claude-opus-5-5"),
        ("haiku", "claude-haiku-5-5"),
        ("claude-haiku-4-5-20251001", "claude-haiku-4-5"),
        ("claude-sonnet-4-20250514", "claude-sonnet-4-0"),
    ],
)
def test_aliases_and_dated_snapshots(name: str, newest: str) -> None:
    """The short names are aliases; the SDK lists the dated ids."""
    model = find_model(load_catalogue(FILES["anthropic"].read_bytes()), name)
    assert model is not None
    assert model.id == newest


def test_every_shipped_row_can_be_read() -> None:
    shipped = [*ROOT.glob("plugins/*/src/*/models.json"), *ROOT.glob("plugins/*/src/*/models/*.json")]
    assert len(shipped) >= 9
    for path in shipped:
        source = json.loads(path.read_bytes())["source"]
        for model in load_catalogue(path.read_bytes()):
            assert len(tuple(model.prices)) == len(model.prices)
            if source.endswith("no prices"):  # prices without a version, and a version without prices, are mistakes
                assert (model.pricing_version, len(model.prices)) == (None, 0)
            else:
                assert model.pricing_version
        assert "MIT License" in path.with_name("models.LICENSE.txt").read_text()


def test_shipped_catalogues_are_fresh() -> None:
    command = [sys.executable, "-m", "tests.tools.refresh_models", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
