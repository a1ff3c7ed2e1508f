"""The price data's own package is the oracle: same usage, same model, same day, same money."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from importlib.resources import files
from typing import Any

import genai_prices
import pytest

from interlingua._catalogue import ModelInfo, load_catalogue
from interlingua._pricing import cost_of
from interlingua.types.messages import Usage

PLUGINS = {
    "anthropic": files("interlingua_anthropic") / "models.json",
    "openai": files("interlingua_openai") / "models.json",
    "google": files("interlingua_google") / "models.json",
}
ROWS = {"deepseek": "deepseek", "groq": "groq", "xai": "x-ai", "together": "together", "fireworks": "fireworks"}
ROWS |= {"cerebras": "cerebras", "moonshot": "moonshotai", "meta": "meta", "baseten": "baseten", "novita": "novita"}
SOURCES = list(PLUGINS.items()) + [
    (key, files("interlingua_chat_completions") / "models" / f"{row}.json") for row, key in ROWS.items()
]
MODELS = [(key, model) for key, path in SOURCES for model in load_catalogue(path.read_bytes()) if model.prices]

MOMENTS = [
    datetime(2026, 3, 1, 12, tzinfo=UTC),
    datetime(2026, 7, 29, 23, 59, tzinfo=UTC),
    datetime(2026, 9, 5, 17, tzinfo=UTC),
    datetime(2026, 11, 21, 2, 30, tzinfo=UTC),  # inside the daily peak of a provider with time-of-day prices
    datetime(2026, 11, 21, 4, 0, tzinfo=UTC),  # its end, excluded
    datetime(2026, 11, 21, 12, tzinfo=UTC),
]
CLIFFS = (100_000, 128_000, 199_999, 200_000, 272_000)
INPUTS = [0, 1, 7_777, *CLIFFS, *(cliff + 1 for cliff in CLIFFS), 900_001]


def _usages() -> list[Usage]:
    """Return plain, cached and written input of every size, with odd counts so that nothing comes out round."""
    usages = []
    for total in INPUTS:
        read, written = total // 3, total // 5
        usages.append(Usage(input_tokens=total, output_tokens=1_003))
        usages.append(
            Usage(
                input_tokens=total,
                output_tokens=17,
                cached_input_tokens=read,
                cache_creation_input_tokens=written,
                cache_creation_1h_input_tokens=written // 2,
                reasoning_tokens=11,
            )
        )
        usages.append(
            Usage(
                input_tokens=total,
                output_tokens=3,
                cached_input_tokens=read,
                audio_input_tokens=total // 7,
                cached_audio_input_tokens=total // 11,
            )
        )
    return usages


USAGES = _usages()


def _oracle(usage: Usage, key: str, model: ModelInfo, at: datetime, context: dict[str, str] | None = None) -> Any:
    counts = {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cached_input_tokens or 0,
        "cache_write_tokens": usage.cache_creation_input_tokens or 0,
        "cache_write_1h_tokens": usage.cache_creation_1h_input_tokens or 0,
        "input_audio_tokens": usage.audio_input_tokens or 0,
        "cache_audio_read_tokens": usage.cached_audio_input_tokens or 0,
    }
    return genai_prices.calc_price(
        genai_prices.Usage(**counts),
        model.id,
        provider_id=key,
        genai_request_timestamp=at,
        price_context=context,
    )


@pytest.mark.parametrize(("key", "model"), MODELS, ids=[f"{key}:{model.id}" for key, model in MODELS])
def test_same_cost_as_the_package(key: str, model: ModelInfo) -> None:
    for place, usage in enumerate(USAGES):
        at = MOMENTS[place % len(MOMENTS)]
        ours = cost_of(usage, model, at)
        if usage.audio_input_tokens and not _prices_audio(model, at):  # the package bills it as text
            assert (
                ours.cost_note == f"without {usage.audio_input_tokens} audio_input_tokens of {model.id}: no price known"
            )
            continue
        theirs = _oracle(usage, key, model, at)
        assert ours.cost_usd == theirs.total_price, (usage, at)
        assert ours.cost is not None
        assert ours.cost.output == theirs.output_price
        assert ours.pricing_version == model.pricing_version


def _prices_audio(model: ModelInfo, at: datetime, tier: str | None = None) -> bool:
    price = model.price_at(at, tier)
    return price is not None and price.audio_input_per_mtok_usd is not None


def _tier_names(model: ModelInfo) -> list[str]:
    return list(dict.fromkeys(price.service_tier for price in model.prices if price.service_tier))


TIERED = [(key, model, tier) for key, model in MODELS for tier in _tier_names(model)]
CONTEXT_KEY = {"batch": "processing"}  # the package's names for what selects a variant (its `price_context`)


@pytest.mark.parametrize(("key", "model", "tier"), TIERED, ids=[f"{key}:{m.id}:{tier}" for key, m, tier in TIERED])
def test_same_cost_as_the_package_in_other_tiers(key: str, model: ModelInfo, tier: str) -> None:
    context_key = "speed" if (tier, key) == ("fast", "anthropic") else CONTEXT_KEY.get(tier, "service_tier")
    for usage in USAGES[::3]:
        ours = cost_of(_with_tier(usage, tier), model, MOMENTS[-1])
        theirs = _oracle(usage, key, model, MOMENTS[-1], {context_key: tier})
        assert ours.cost_usd == theirs.total_price
        assert isinstance(ours.cost_usd, Decimal)


def _with_tier(usage: Usage, tier: str) -> Usage:
    return usage.updated(Usage(service_tier=tier))
