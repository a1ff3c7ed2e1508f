"""Compares the catalogues' prices of today with litellm's price map and prints each difference with its reason.

Run as `python -m tests.tools.compare_prices [MAP]`; MAP is a `model_prices_and_context_window.json`, by default that of
an installed litellm. Exits with 1 if a difference has no reason in price_differences.toml. That the catalogues equal
genai-prices is checked by `python -m tests.tools.refresh_models --check`.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from interlingua._plugins.registry import Registry

REASONS = Path(__file__).with_name("price_differences.toml")
PROVIDERS = {  # litellm's provider -> ours, and the prefix of its names
    "anthropic": ("anthropic", ""), "openai": ("openai", ""), "gemini": ("google", "gemini/"),
    "mistral": ("mistral", "mistral/"), "zai": ("zai", "zai/"), "deepseek": ("deepseek", "deepseek/"),
    "groq": ("groq", "groq/"), "xai": ("xai", "xai/"), "moonshot": ("moonshot", "moonshot/"),
    "cerebras": ("cerebras", "cerebras/"), "bedrock_converse": ("bedrock", ""), "cohere_chat": ("cohere", ""),
}  # fmt: skip
RATES = {
    "input_cost_per_token": "input_per_mtok_usd",
    "output_cost_per_token": "output_per_mtok_usd",
    "cache_read_input_token_cost": "cached_read_per_mtok_usd",
}


class Difference(NamedTuple):
    """One rate that two sources state differently, in USD per million tokens."""

    model: str
    rate: str
    ours: Decimal
    theirs: Decimal
    page: str


def differences(price_map: dict[str, Any], registry: Registry, at: datetime) -> Iterator[Difference]:
    """Yield the differences of the models that both sources price."""
    for name, row in price_map.items():
        key, prefix = PROVIDERS.get(row.get("litellm_provider", ""), ("", ""))
        if not key or not name.startswith(prefix) or row.get("mode") not in ("chat", "responses"):
            continue
        info = registry.provider(key).model(name.removeprefix(prefix))
        price = info.price_at(at) if info is not None else None
        for theirs, ours in RATES.items() if price is not None else ():
            known, stated = getattr(price, ours), row.get(theirs)
            if known is None or stated is None:
                continue
            rate = round(Decimal(repr(stated)) * 1_000_000, 6)
            if known != rate:
                yield Difference(f"{key}:{name.removeprefix(prefix)}", ours, known, rate, row.get("source") or "")


def main(arguments: list[str]) -> int:
    """Print the differences; return 1 if one has no reason."""
    found = find_spec("litellm")
    if not arguments and (found is None or found.origin is None):
        print("skipped: litellm is not installed; pass its price map as a file")
        return 0
    backup = "model_prices_and_context_window_backup.json"
    path = Path(arguments[0]) if arguments else Path(found.origin or "").with_name(backup) if found else Path()
    reasons = tomllib.loads(REASONS.read_text(encoding="utf-8"))
    missing = 0
    for one in differences(json.loads(path.read_text(encoding="utf-8")), Registry(), datetime.now(UTC)):
        reason = reasons.get(one.model, {}).get("reason")
        missing += reason is None
        print(f"{one.model}  {one.rate}  {one.ours:f}  {one.theirs:f}  {reason or 'NO REASON'}  {one.page}")
    print(f"{missing} without a reason")
    return int(missing > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
