"""The comparison of prices finds a planted difference, and accepts one with a reason."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from interlingua import Registry
from tests.tools import compare_prices as tool


def _row(usd: float, provider: str = "mistral") -> dict[str, object]:
    return {"litellm_provider": provider, "mode": "chat", "input_cost_per_token": usd, "source": "https://a.page"}


@pytest.mark.parametrize(
    ("name", "usd", "code", "shown"),
    [
        ("mistral/mistral-large-latest", 5e-07, 0, "0 without a reason"),
        ("mistral/mistral-large-latest", 2e-06, 1, "mistral:mistral-large-latest  input_per_mtok_usd  0.5  2"),
        ("mistral/mistral-large-4", 1.36e-06, 0, "https://docs.mistral.ai/inference/pricing"),
        ("mistral/nobody-lists-this", 1.0, 0, "0 without a reason"),
    ],
)
def test_a_difference_needs_a_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, usd: float, code: int, shown: str
) -> None:
    path = tmp_path / "map.json"
    path.write_text(json.dumps({name: _row(usd)}))
    assert tool.main([str(path)]) == code
    assert shown in capsys.readouterr().out


def test_the_catalogues_differ_from_the_digest_only_with_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    """Without network: a price that changes here, or a newer digest, needs a reason."""
    assert tool.main([]) == 0, "run `python -m tests.tools.compare_prices`: " + capsys.readouterr().out


def test_a_rule_with_a_factor_accepts_no_other_difference(tmp_path: Path) -> None:
    path = tmp_path / "map.json"
    name, usd = "us-gov.anthropic.claude-opus-5", 6e-06
    for factor, code in ((1, 0), (1.1, 1)):
        path.write_text(json.dumps({name: _row(usd * factor, "bedrock_converse")}))
        assert tool.main([str(path)]) == code


def test_each_reason_cites_a_page_and_is_used() -> None:
    rules = tomllib.loads(tool.REASONS.read_text(encoding="utf-8"))["difference"]
    price_map = json.loads(tool.DIGEST.read_text(encoding="utf-8"))
    used = {tool.reason_of(one, rules) for one in tool.differences(price_map, Registry(), tool.AT)}

    assert all("https://" in rule["reason"] for rule in rules)
    assert used == {rule["reason"] for rule in rules}
