"""Prices of the user replace those of the catalogues, in clients, sessions, bulk runs and commands alike."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import interlingua as il
from interlingua.errors import CallerError, DecodeError
from interlingua.plugins import Registry
from tests.cli.conftest import Run
from tests.cli.local import LocalServer

AT = datetime(2026, 11, 21, tzinfo=UTC)
USAGE = il.Usage(input_tokens=1_000_000, output_tokens=0)


def _row(name: str, usd: str) -> dict[str, Any]:
    return {"id": name, "prices": [{"input_per_mtok_usd": usd, "output_per_mtok_usd": usd}]}


def _file(path: Path, version: str = "our contract, 2026-11", **providers: Any) -> Path:
    path.write_text(json.dumps({"pricing_version": version, "providers": providers}))
    return path


@pytest.mark.parametrize("by", ["argument", "variable"])
@pytest.mark.parametrize(
    "name", ["openai:gpt-4.1", "openai:gpt-4.1-2025-04-14", "llamacpp:mine", "azure:our-deployment", "bedrock:nova-x"]
)
def test_prices_of_the_user_replace_the_catalogues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str, name: str
) -> None:
    mine = {"llamacpp": [_row("mine", "7")], "azure": [_row("our-deployment", "7")], "bedrock": [_row("nova-x", "7")]}
    path = _file(tmp_path / "p.json", openai=[_row("gpt-4.1", "7")], **mine)
    if by == "variable":
        monkeypatch.setenv("INTERLINGUA_PRICES", str(path))
    registry = Registry(prices=path if by == "argument" else None)
    key, _, model = name.partition(":")
    found = registry.provider(key).model(model)
    assert found is not None
    priced = il.cost_of(USAGE, found, AT)
    assert (priced.cost_usd, priced.pricing_version) == (Decimal(7), "our contract, 2026-11")
    other = registry.provider("openai").model("gpt-4.1-mini")
    assert other is not None
    assert il.cost_of(USAGE, other, AT).cost_usd == Decimal("0.4")


def test_limits_and_facts_stay_those_of_the_catalogue(tmp_path: Path) -> None:
    provider = Registry(prices=_file(tmp_path / "p.json", openai=[_row("gpt-4.1", "7")])).provider("openai")
    shipped = Registry().provider("openai").model("gpt-4.1")
    found = provider.model("gpt-4.1")
    assert found is not None
    assert shipped is not None
    assert (found.max_context_tokens, found.facts) == (shipped.max_context_tokens, shipped.facts)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("{", None),
        ('{"providers": {}}', "/providers"),
        ('{"pricing_version": "v", "providers": {"openai": {}}}', "/providers/openai"),
        ('{"pricing_version": "v", "providers": {"openai": [{"id": "m", "prise": []}]}}', "/providers/openai/0"),
        (
            '{"pricing_version": "v", "providers": {"openai": [{"id": "m", "prices": [{"input_per_mtok_usd": 1.5}]}]}}',
            "/providers/openai/0/prices/0/input_per_mtok_usd",
        ),
    ],
)
def test_a_wrong_file_is_refused_by_place(run: Run, home: Path, tmp_path: Path, text: str, path: str | None) -> None:
    (tmp_path / "p.json").write_text(text)
    with pytest.raises(DecodeError) as wrong:
        Registry(prices=tmp_path / "p.json").provider("openai")
    assert path is None or str(wrong.value.path).startswith(path)
    result = run("models", "update", "p.json")
    assert result.exit_code == 1
    assert not (home / "interlingua" / "prices.json").exists()


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CallerError, match="cannot read the prices in"):
        Registry(prices=tmp_path / "none.json").provider("openai")


def test_update_adds_to_the_users_prices_and_answers_show_them(
    run: Run, server: LocalServer, home: Path, tmp_path: Path
) -> None:
    _file(tmp_path / "old.json", "old", here=[_row("echo", "1"), _row("slow", "5")])
    _file(tmp_path / "new.json", "new", here=[_row("echo", "3")], openai=[_row("gpt-4.1", "9")])
    assert run("models", "update", "old.json").exit_code == 0
    result = run("models", "update", "new.json")
    assert result.exit_code == 0
    assert "2 models of here, openai have prices of new" in result.stderr
    sent = json.loads(run("send", "-n", "--json", "here:echo", "hi").stdout)
    usage = sent["metadata"]["usage"]
    assert (Decimal(usage["cost_usd"]), usage["pricing_version"]) == (Decimal("0.0033"), "new")
    rows = {row["model"]: row for row in json.loads(run("models", "--json").stdout)}
    assert (rows["here:slow"]["input_per_mtok_usd"], rows["here:slow"]["pricing_version"]) == ("5", "old")
    assert rows["openai:gpt-4.1"]["input_per_mtok_usd"] == "9"


def test_update_needs_one_source(run: Run) -> None:
    assert run("models", "update").exit_code == 2
