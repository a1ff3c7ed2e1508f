"""`providers`, `models`, `price`: what is installed and configured, with nothing but JSON under --json."""

from __future__ import annotations

import json
from pathlib import Path

from tests.core.cli.conftest import Run
from tests.core.cli.local import LocalServer


def test_providers_shows_rows_distributions_and_keys(run: Run, server: LocalServer) -> None:
    rows = {row["key"]: row for row in json.loads(run("providers", "--json").stdout)}

    assert rows["here"]["kind"] == "user row"
    assert rows["here"]["base_url"] == server.url
    assert rows["here"]["env"] == ["HERE_KEY"]
    assert rows["here"]["apis"]
    assert rows["anthropic"]["distribution"] == "interlingua-anthropic"
    table = run("providers").stdout
    assert "your configuration" in table
    assert "key-for-tests" not in table


def test_a_broken_row_is_listed_with_its_reason_and_the_rest_works(run: Run, home: Path) -> None:
    (home / "interlingua").mkdir()
    (home / "interlingua" / "config.toml").write_text('[rows.odd]\nbase_url = "nonsense"\n', encoding="utf-8")
    result = run("providers", "--json")

    assert result.exit_code == 0
    rows = {row["key"]: row for row in json.loads(result.stdout)}
    assert "base_url" in rows["odd"]["broken"]
    assert "broken" not in rows["anthropic"]
    assert "odd is broken" in run("providers").stdout


def test_models(run: Run, server: LocalServer) -> None:
    (row,) = json.loads(run("models", "here", "--json").stdout)

    assert row["model"] == "here:echo"
    assert (row["max_context_tokens"], row["input_per_mtok_usd"], row["output_per_mtok_usd"]) == (1000, "2", "10")
    everything = json.loads(run("models", "--json").stdout)
    assert row in everything
    assert len(everything) > 20
    assert "here:echo" in run("models", "here").stdout
    assert run("models", "nowhere").exit_code == 1


def test_a_provider_without_a_catalogue_says_who_knows_its_models(run: Run, home: Path) -> None:
    listed = run("models", "llamacpp")

    assert (listed.exit_code, listed.stdout) == (0, "")
    assert "--live" in listed.stderr
    assert json.loads(run("models", "llamacpp", "--json").stdout) == []


def test_price_of_a_model_and_of_tokens(run: Run, server: LocalServer) -> None:
    assert json.loads(run("price", "e", "--json").stdout)["cached_read_per_mtok_usd"] == "0.2"
    cost = json.loads(run("price", "e", "--input", "1000000", "--cached", "500000", "--output", "10", "--json").stdout)

    # 500,000 at 2 and 500,000 at 0.2, 10 at 10, per million
    assert cost["cost_usd"] == "1.1001000"
    assert "cost_usd" in run("price", "here:echo", "--input", "10").stdout


def test_an_unknown_price_is_not_zero(run: Run, server: LocalServer) -> None:
    facts = json.loads(run("price", "here:unheard-of", "--input", "5", "--json").stdout)

    assert facts["cost_usd"] is None
    assert facts["cost_note"] == "model not in the catalogue"
    assert "no price known" in run("price", "here:unheard-of").stdout
