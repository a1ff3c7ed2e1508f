"""The comparison of prices finds a planted difference, and accepts one with a reason."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

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


def test_each_reason_cites_a_page() -> None:
    reasons = tomllib.loads(tool.REASONS.read_text(encoding="utf-8"))
    assert all("https://" in row["reason"] for row in reasons.values())
