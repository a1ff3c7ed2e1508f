"""Reports for programs: their schema, the row of the directory that is made from one, and the action for workflows."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml
from jsonschema import Draft202012Validator

from interlingua_contract.report import ContractReport, check
from interlingua_contract.rule import RuleFinding
from interlingua_contract.rules import ALL
from interlingua_contract.subject import Subject
from tests.support import tree
from tests.tools import directory

SCHEMA = json.loads(files("interlingua_contract").joinpath("report.schema.json").read_text(encoding="utf-8"))
ACTION = tree.ROOT / ".github" / "actions" / "check" / "action.yml"
KILN = tree.ROOT / "docs" / "plugins" / "kiln"


def errors_of(report: Any) -> list[str]:
    return [error.json_path for error in Draft202012Validator(SCHEMA).iter_errors(report)]


@pytest.fixture(scope="module")
def report() -> ContractReport:
    """Some rules of zai, one as if it had failed, one as if there was nothing to check."""
    subject = Subject("zai", tree.ROOT / "cassettes" / "zai", examples=2)
    results = [check(subject, rule) for rule in ALL if rule.number in ("C27", "C46", "C47", "C60")]
    broken = attrs.evolve(results[1], outcome="fail", findings=(RuleFinding("planted", "a"),))
    skipped = attrs.evolve(results[3], outcome="skip", reason="planted")
    return ContractReport(
        provider="zai", distribution="d", version="1", results=(results[0], broken, results[2], skipped)
    )


def test_a_report_is_as_its_schema_says(report: ContractReport) -> None:
    Draft202012Validator.check_schema(SCHEMA)
    written = json.loads(json.dumps(report.as_json()))

    assert errors_of(written) == []
    assert written["counts"] == {"pass": 2, "fail": 1, "skip": 1, "deviates": 0}
    assert SCHEMA["required"] == list(written), "the schema names every field, in order"


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"passed": "yes"}, "$.passed"),
        ({"counts": {"pass": 1}}, "$.counts"),
        ({"report_version": 2}, "$.report_version"),
        ({"rules": [{"rule": "C1"}]}, "$.rules[0]"),
        ({"support": [{}]}, "$.support[0]"),
        ({"provider": ""}, "$.provider"),
    ],
)
def test_a_wrong_report_is_noticed(report: ContractReport, change: dict[str, Any], place: str) -> None:
    assert place in errors_of(report.as_json() | change)


def test_a_failed_rule_has_findings(report: ContractReport) -> None:
    written = report.as_json()
    failed = next(rule for rule in written["rules"] if rule["outcome"] == "fail")
    failed["findings"] = []

    assert [place for place in errors_of(written) if place.endswith(".findings")]


def test_a_row_of_the_directory_is_made_from_a_report(report: ContractReport) -> None:
    good = attrs.evolve(report, results=tuple(one for one in report.results if one.outcome != "fail")).as_json()
    row = directory.row_of(good, "Acme's models", "https://acme.example")

    assert (row.distribution, row.tier, row.keys, row.contract_version) == ("d", "community", ("zai",), 1)
    assert "| [d](https://acme.example) | `zai` | 1 | 1 | 2 of 2 |" in directory.directory_page([row])
    for wrong in (report.as_json(), good | {"distribution": ""}, {}):
        with pytest.raises(ValueError, match=r"fails no rule|required"):
            directory.row_of(wrong, "", "")


# -- the action ------------------------------------------------------------------------------------------------------


def run_action(folder: Path, inputs: dict[str, str]) -> tuple[int, dict[str, str], str, list[str]]:
    """Run the steps as a runner does; pip only notes its arguments. Return code, outputs, summary, and pip's calls."""
    action = yaml.safe_load(ACTION.read_text(encoding="utf-8"))
    given = {name: inputs.get(name, about.get("default")) for name, about in action["inputs"].items()}
    bin_ = folder / "bin"
    bin_.mkdir()
    python = bin_ / "python"
    noted = folder / "pip.txt"
    python.write_text(
        f'#!/bin/sh\n[ "$2" != pip ] || {{ echo "$@" >> {noted}; exit 0; }}\nexec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    files_ = {name: folder / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for file in files_.values():
        file.touch()
    path = os.pathsep.join([str(bin_), str(Path(sys.executable).parent), os.environ["PATH"]])
    plugin = {"INTERLINGUA_PLUGINS": "kiln=interlingua_kiln.plugin:plugin", "PYTHONPATH": str(KILN / "src")}
    environ = {**os.environ, **plugin, "PATH": path, **{name: str(file) for name, file in files_.items()}}
    code = 0
    for step in action["runs"]["steps"]:
        condition = re.fullmatch(r"\$\{\{ inputs\.(\w+) != '' \}\}", step["if"]) if "if" in step else None
        if condition is not None and not given[condition[1]]:
            continue
        values = {name: given[re.findall(r"inputs\.(\w+)", text)[0]] for name, text in step["env"].items()}
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        done = subprocess.run(command, cwd=folder, env=environ | values, capture_output=True, text=True, check=False)
        code = done.returncode
        if code:
            break
    outputs = dict(line.split("=", 1) for line in files_["GITHUB_OUTPUT"].read_text().splitlines())
    calls = noted.read_text().splitlines() if noted.exists() else []
    return code, outputs, files_["GITHUB_STEP_SUMMARY"].read_text(), calls


def test_the_action_checks_and_reports(tmp_path: Path) -> None:
    cassettes = str(KILN / "tests" / "cassettes")
    inputs = {"provider": "kiln", "cassettes": cassettes, "badge": "badge.svg"}
    code, outputs, summary, calls = run_action(tmp_path, inputs)
    written = json.loads((tmp_path / "contract-report.json").read_text(encoding="utf-8"))

    assert calls == ["-m pip install .[test]"]
    assert errors_of(written) == []
    assert code == 0, [rule for rule in written["rules"] if rule["outcome"] == "fail"]
    assert outputs == {"report": "contract-report.json", "passed": "true"}
    assert summary.startswith("### kiln")
    assert f"{written['counts']['pass']} pass" in summary
    assert "<svg" in (tmp_path / "badge.svg").read_text(encoding="utf-8")


def test_the_action_fails_with_the_rules(tmp_path: Path) -> None:
    """Without cassettes nothing is evidence for what is declared."""
    (tmp_path / "none").mkdir()
    code, outputs, summary, calls = run_action(tmp_path, {"provider": "kiln", "cassettes": "none", "install": ""})

    assert code == 1
    assert outputs["passed"] == "false"
    assert "- C46" in summary
    assert calls == []


def test_the_action_needs_no_input_in_a_script() -> None:
    """An input in a script would be run as part of it; here each is an environment variable."""
    steps = yaml.safe_load(ACTION.read_text(encoding="utf-8"))["runs"]["steps"]

    assert not [step["name"] for step in steps if "${{" in step["run"]]
