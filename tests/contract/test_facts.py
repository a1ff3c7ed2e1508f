"""Facts of a wire: a wrong, missing or outdated row fails.

`python -m tests.contract.test_facts` writes the shipped files as the plugins behave.
"""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from interlingua.errors import CallerError
from interlingua.plugins import Registry
from interlingua_cli.root import cli
from interlingua_contract.facts import FACTS_FILE, observe_facts, read_facts, write_facts
from interlingua_contract.guard import silence_log
from interlingua_contract.report import check
from interlingua_contract.rules import ALL
from interlingua_contract.subject import Subject
from tests.support import tree

RULES = {rule.number: rule for rule in ALL}


def _with(tmp_path: Path, old: str, new: str) -> Subject:
    folder = tmp_path / "cassettes"
    shutil.copytree(tree.ROOT / "cassettes" / "mistral", folder)
    text = (folder / FACTS_FILE).read_text(encoding="utf-8")
    assert old in text
    (folder / FACTS_FILE).write_text(text.replace(old, new), encoding="utf-8")
    return Subject("mistral", folder)


@pytest.mark.parametrize(
    ("number", "old", "new"),
    [
        ("C79", '"seed" = "/random_seed"', '"seed" = "/seed"'),
        ("C79", '"seed" = "/random_seed"\n', ""),
        ("C79", '"seed" = "/random_seed"', '"seed" = "/random_seed | dropped"'),
        ("C79", '"seed" = "/random_seed"', '"seed" = "/random_seed"\n"of old" = "/old"'),
        ("C80", '"usage.prompt_tokens" = "input_tokens"', '"usage.prompt_tokens" = "output_tokens"'),
        ("C80", '"usage.prompt_tokens" = "input_tokens"\n', ""),
        ("C81", '"length" = "max_tokens"', '"length" = "end_turn"'),
    ],
)
def test_a_row_that_is_not_so_fails(tmp_path: Path, number: str, old: str, new: str) -> None:
    assert check(_with(tmp_path, old, new), RULES[number]).outcome == "fail"


def test_rows_in_another_order_are_the_same(tmp_path: Path) -> None:
    subject = _with(tmp_path, "# How the plugin behaves", "# Known facts")

    assert [check(subject, RULES[number]).outcome for number in ("C79", "C80", "C81")] == ["pass"] * 3


def test_without_a_file_nothing_is_compared(tmp_path: Path) -> None:
    result = check(Subject("mistral", tmp_path), RULES["C79"])

    assert (result.outcome, "--facts" in result.reason) == ("skip", True)


def test_what_is_no_toml_is_refused(tmp_path: Path) -> None:
    (tmp_path / FACTS_FILE).write_text("[", encoding="utf-8")

    with pytest.raises(CallerError, match="no facts"):
        read_facts(Subject("mistral", tmp_path))


def test_the_command_prints_what_is_in_the_file() -> None:
    folder = tree.ROOT / "cassettes" / "mistral"
    done = CliRunner().invoke(cli, ["check", "mistral", "--cassettes", str(folder), "--facts"], catch_exceptions=False)

    assert done.exit_code == 0
    assert tomllib.loads(done.stdout) == tomllib.loads((folder / FACTS_FILE).read_text(encoding="utf-8"))
    assert tomllib.loads(write_facts(observe_facts(Subject("mistral", folder)))) == tomllib.loads(done.stdout)


def _write_all() -> None:
    """Write the files of all shipped providers; read the difference before you commit it."""
    registry = Registry()
    for key in registry.found():
        folder = tree.ROOT / "cassettes" / key
        with silence_log():
            text = write_facts(observe_facts(Subject(key, folder, registry=registry)))
        (folder / FACTS_FILE).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    _write_all()
