"""`interlingua matrix`: which pairs, what it prints and writes, and its exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from interlingua._plugins.registry import Registry
from interlingua_cli.context import CommandContext
from interlingua_cli.root import cli
from tests.contract.matrix.acme import pair
from tests.contract.matrix.test_findings import _lose_last_text


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> CommandContext:
    monkeypatch.chdir(tmp_path)
    return CommandContext()


def _with(state: CommandContext, registry: Registry) -> CommandContext:
    state.__dict__["registry"] = registry
    return state


def test_json_has_every_pair_and_the_ledger_of_each_history(state: CommandContext) -> None:
    result = CliRunner().invoke(cli, ["matrix", "--json"], obj=_with(state, pair()))
    printed = json.loads(result.stdout)

    assert result.exit_code == 0
    assert printed["green"] is True
    assert [(cell["begun"], cell["swapped"]) for cell in printed["cells"]] == [("acme", "bolt"), ("bolt", "acme")]
    signed = next(run for run in printed["cells"][0]["histories"] if run["name"] == "thinking, signed")
    assert [loss["verdict"] for loss in signed["losses"]] == ["dropped", "dropped"]


def test_a_red_pair_is_named_and_the_exit_code_is_1(state: CommandContext) -> None:
    result = CliRunner().invoke(cli, ["matrix"], obj=_with(state, pair(_lose_last_text)))

    assert result.exit_code == 1
    assert "red: acme to bolt" in result.stderr
    assert "text neither in the wire nor in the ledger" in result.stdout
    assert "0 of 2 pairs are green" in result.stdout


def test_pages_are_written_and_the_same_each_time(state: CommandContext, tmp_path: Path) -> None:
    written = []
    for folder in ("one", "two"):
        result = CliRunner().invoke(cli, ["matrix", "--out", folder], obj=_with(state, pair()))
        assert result.exit_code == 0
        written.append({path.name: path.read_bytes() for path in (tmp_path / folder).iterdir()})

    assert set(written[0]) == {"swap-matrix.md", "swap-matrix.html"}
    assert written[0] == written[1]


def test_only_takes_keys_and_wires(state: CommandContext) -> None:
    result = CliRunner().invoke(cli, ["matrix", "--only", "openai", "--json"], obj=state)

    assert [cell["begun"] for cell in json.loads(result.stdout)["cells"]] == ["openai/chat", "openai/responses"]


@pytest.mark.parametrize(
    ("only", "why"),
    [("acme", "a swap takes two wires"), ("acme,nobody", "nobody"), ("acme,bolt/none", "no such wire: bolt/none")],
)
def test_what_is_not_there_is_said(state: CommandContext, only: str, why: str) -> None:
    result = CliRunner().invoke(cli, ["matrix", "--only", only], obj=_with(state, pair()))

    assert result.exit_code != 0
    assert why in result.stderr


def test_it_runs_without_what_only_the_contract_needs() -> None:
    unwanted = "{'hypothesis', 'pytest'}"
    code = f"import sys, interlingua_contract.matrix; print(sorted({unwanted} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
