"""Compares the catalogues' prices with litellm's price map and prints each difference with its reason.

Run as `python -m tests.tools.compare_prices [--digest] [MAP]`; MAP is a `model_prices_and_context_window.json`, by
default price_digest.json beside this file, which has the rows of litellm's map that are compared (MIT licence). With
`--digest` MAP replaces that digest. Exits with 1 if a difference has no reason in price_differences.toml. That the
catalogues equal genai-prices is checked by `python -m tests.tools.refresh_models --check`.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from interlingua._plugins.registry import Registry

REASONS = Path(__file__).with_name("price_differences.toml")
DIGEST = Path(__file__).with_name("price_digest.json")
AT = datetime(2026, 11, 23, 12, tzinfo=UTC)  # when the digest was made; some prices depend on the hour
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
                yield Difference(f"{key}:{name.removeprefix(prefix)}", ours, known, rate)


def digest(price_map: dict[str, Any], registry: Registry) -> dict[str, Any]:
    """Return the rows of models that the catalogues have too, without the fields that are not compared."""
    kept = ("litellm_provider", "mode", *RATES)
    found = {}
    for name, row in price_map.items():
        key, prefix = PROVIDERS.get(row.get("litellm_provider", ""), ("", ""))
        listed = key and row.get("mode") in ("chat", "responses")
        if listed and registry.provider(key).model(name.removeprefix(prefix)) is not None:
            found[name] = {field: row[field] for field in kept if row.get(field) is not None}
    return found


def reason_of(one: Difference, rules: list[dict[str, Any]]) -> str | None:
    """Return the reason of the first rule that holds: its patterns of models, and its factor if it has one."""
    for rule in rules:
        factor = rule.get("factor")
        fits = factor is None or abs(one.theirs / one.ours - Decimal(str(factor))) <= Decimal("0.02")
        if fits and any(fnmatchcase(one.model, pattern) for pattern in rule["models"]):
            return str(rule["reason"])
    return None


def main(arguments: list[str]) -> int:
    """Print the differences; return 1 if one has no reason."""
    paths = [Path(argument) for argument in arguments if argument != "--digest"] or [DIGEST]
    price_map = json.loads(paths[0].read_text(encoding="utf-8"))
    if "--digest" in arguments:
        lines = ",\n".join(
            f"{json.dumps(name)}: {json.dumps(row)}" for name, row in sorted(digest(price_map, Registry()).items())
        )
        DIGEST.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
    rules = tomllib.loads(REASONS.read_text(encoding="utf-8"))["difference"]
    missing = 0
    for one in differences(price_map, Registry(), datetime.now(UTC) if arguments else AT):
        reason = reason_of(one, rules)
        missing += reason is None
        print(f"{one.model}  {one.rate}  {one.ours:f}  {one.theirs:f}  {reason or 'NO REASON'}")
    print(f"{missing} without a reason")
    return int(missing > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
