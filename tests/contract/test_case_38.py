"""Field case 38: a conformance suite for third-party providers, from a few lines and from the shell."""

from __future__ import annotations

import json

from click.testing import CliRunner

from interlingua_cli.root import cli
from interlingua_contract.rules import ALL
from interlingua_contract.suite import ProviderContract
from tests.support import tree

EXAMPLE = tree.ROOT / "docs" / "plugins" / "example"


def test_case_38_a_third_party_names_its_provider_and_gets_every_rule_as_a_test() -> None:
    class Mine(ProviderContract):
        provider = "llamacpp"

    assert {name for name in dir(Mine) if name.startswith("test_")} == {rule.test_name for rule in ALL}
    assert all(rule.statement and rule.source and rule.fix for rule in ALL)


def test_case_38_the_documented_plugin_needs_two_lines() -> None:
    (file,) = (EXAMPLE / "tests").glob("test_*contract*.py")
    text = file.read_text(encoding="utf-8")
    body = text[text.index("class ") :].strip().splitlines()
    assert len([line for line in body if line.strip() and not line.strip().startswith(('"', "#"))]) <= 4


def test_case_38_the_same_from_the_shell() -> None:
    done = CliRunner().invoke(cli, ["check", "llamacpp", "--rule", "C44", "--json"])
    report = json.loads(done.stdout)

    assert done.exit_code == 0
    assert [(rule["rule"], rule["outcome"]) for rule in report["rules"]] == [("C44", "pass")]
