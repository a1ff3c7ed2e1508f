"""The tool that refreshes prices: it corrects what it owns and leaves what people wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.tools import refresh_models as tool


@pytest.fixture
def stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree with one catalogue whose price is wrong and whose context size is missing."""
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    path = tmp_path / "plugins" / "acme" / "src" / "interlingua_acme" / "models.json"
    path.parent.mkdir(parents=True)
    known: dict[str, Any] = {"id": "claude-haiku-4-5", "aliases": ["mine"], "api": "chat", "max_output_tokens": 7}
    known |= {"facts": {"kept": True}, "prices": [{"from": None, "input_per_mtok_usd": "99"}]}
    unknown: dict[str, Any] = {
        "id": "nobody-prices-me",
        "aliases": [],
        "api": None,
        "max_context_tokens": 5,
        "prices": [],
    }
    head = {"pricing_version": "2001-01-01", "source": "old", "source_provider": "anthropic"}
    path.write_text(json.dumps({**head, "models": [known, unknown]}))
    return path


def test_check_reports_and_changes_nothing(stale: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = stale.read_text()
    assert tool.main(["--check"]) == 1
    assert stale.read_text() == before
    assert "claude-haiku-4-5: prices" in capsys.readouterr().out


def test_refresh_then_check_is_clean_and_stable(stale: Path) -> None:
    assert tool.main([]) == 0
    once = stale.read_text()
    assert tool.main(["--check", "acme"]) == 0
    assert tool.main(["acme"]) == 0
    assert stale.read_text() == once
    assert "Permission is hereby granted" in stale.with_name("models.LICENSE.txt").read_text()


def test_prices_and_sizes_are_replaced_and_the_rest_is_kept(stale: Path) -> None:
    tool.main([])
    file = json.loads(stale.read_text())
    known, unknown = file["models"]
    assert known["prices"][0]["input_per_mtok_usd"] == "1"  # price sheet, claude-haiku-4-5: 1 in, 5 out
    assert known["prices"][0]["output_per_mtok_usd"] == "5"
    assert known["max_context_tokens"] == 200_000
    assert (known["aliases"], known["api"], known["facts"]) == (["mine"], "chat", {"kept": True})
    assert known["max_output_tokens"] == 7
    assert unknown["max_context_tokens"] == 5
    assert unknown["prices"] == []
    assert file["pricing_version"] > "2026"


def test_an_unknown_name_is_refused(stale: Path) -> None:
    with pytest.raises(SystemExit, match="no catalogue named nope; there are acme"):
        tool.main(["nope"])
