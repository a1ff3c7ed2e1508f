"""Approved results: what changed is noticed, with its scene, place and both values; the files are the same everywhere.

`python -m tests.contract.test_approved` writes the shipped files as the plugins behave.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import interlingua_serving
from interlingua.errors import CallerError
from interlingua.plugins import Registry
from interlingua_cli.root import cli
from interlingua_contract.approved.shown import show
from interlingua_contract.approved.table import APPROVED_FILE, read_approved, write_approved
from interlingua_contract.guard import no_network, silence_log
from interlingua_contract.report import check
from interlingua_contract.rules import ALL
from interlingua_contract.subject import Subject
from tests.support import tree

RULES = {rule.number: rule for rule in ALL}
FOLDER = tree.ROOT / "cassettes"
FILES = sorted(FOLDER.glob(f"*/{APPROVED_FILE}"))
LARGEST = 500_000
EXAMPLE = tree.ROOT / "docs" / "plugins" / "example"


def _with(tmp_path: Path, old: str, new: str) -> Subject:
    folder = tmp_path / "cassettes"
    shutil.copytree(FOLDER / "mistral", folder)
    text = (folder / APPROVED_FILE).read_text(encoding="utf-8")
    assert old in text
    (folder / APPROVED_FILE).write_text(text.replace(old, new), encoding="utf-8")
    return Subject("mistral", folder)


@pytest.mark.parametrize(
    ("number", "old", "new", "words"),
    [
        ("C94", '"random_seed":11', '"random_seed":12', "random_seed is 11, approved is 12"),
        ("C94", '"temperature":1.0', '"temperature":1', "temperature is 1.0, approved is 1"),
        ("C94", '["requests","said",', '["requests","unsaid",', "has no row for it"),
        ("C94", '"temperature":0.25,"top_p":0.5', '"top_p":0.5,"temperature":0.25', "another order"),
        ("C95", '"error":"RateLimitError"', '"error":"ServerError"', 'error is "RateLimitError", approved is'),
        ("C96", "https://Contract.example/v7", "https://Contract.example/v6", "Contract.example/v6"),
        ("C97", '["auxiliary","models",', '["auxiliary","model",', "nothing shows it"),
        ("C98", '["served requests","said"', '["served requests","unsaid"', "has no row for it"),
        ("C99", '"status":429', '"status":430', "status is 429, approved is 430"),
    ],
)
def test_a_result_that_is_not_approved_fails(tmp_path: Path, number: str, old: str, new: str, words: str) -> None:
    result = check(_with(tmp_path, old, new), RULES[number])

    assert result.outcome == "fail"
    assert any(words in str(finding) for finding in result.findings), result.findings


def test_what_is_only_a_digest_is_shown_whole(tmp_path: Path) -> None:
    text = (FOLDER / "mistral" / APPROVED_FILE).read_text(encoding="utf-8")
    row = next(line for line in text.splitlines() if line.startswith('["served requests","said"'))
    old = re.findall(r"# \w{8}", row)[0]

    result = check(_with(tmp_path, row, row.replace(old, "# 00000000")), RULES["C98"])

    assert 'is {"session_id"' in result.findings[0].why or '"role"' in result.findings[0].why


def test_an_api_that_is_served_no_longer_fails(tmp_path: Path) -> None:
    registry = Registry()
    registry.add_plugin(_ServesNothing(), "contract")
    subject = Subject("mistral", FOLDER / "mistral", registry=registry)

    assert [check(subject, RULES[number], 1).outcome for number in ("C94", "C98", "C99")] == ["pass", "fail", "fail"]


def test_a_request_of_its_own_that_the_plugin_refuses_fails_though_approved(tmp_path: Path) -> None:
    registry = Registry()
    registry.add_plugin(_ReadsNoTools(), "contract")
    subject = Subject("mistral", tmp_path, registry=registry)
    (tmp_path / APPROVED_FILE).write_text(write_approved(subject), encoding="utf-8")

    result = check(subject, RULES["C98"], 1)

    assert result.outcome == "fail"
    assert "the request is refused: no tools here" in str(result.findings[0])


class _ReadsNoTools:
    @interlingua_serving.hookimpl(wrapper=True)
    def from_wire_request(self) -> Generator[None, Any, Any]:
        inbound = yield
        if inbound.tools:
            raise CallerError("no tools here")
        return inbound


class _ServesNothing:
    @interlingua_serving.hookimpl(wrapper=True)
    def served_apis(self) -> Generator[None, Any, tuple[str, ...]]:
        yield
        return ()


def test_a_large_result_is_digests_below_its_first_steps() -> None:
    large = {"body": {"rows": [{"name": f"row {at}", "is": ["long"] * 9} for at in range(200)]}}
    shown = show("large", "", dict, large)

    assert len(json.dumps(shown.value)) < len(json.dumps(large)) / 3
    assert shown.value["body"]["rows"][0].startswith("# ")
    assert shown.whole == large


def test_without_a_file_nothing_is_compared(tmp_path: Path) -> None:
    result = check(Subject("mistral", tmp_path), RULES["C94"])

    assert (result.outcome, "--approve" in result.reason) == ("skip", True)


def test_what_is_no_row_is_refused(tmp_path: Path) -> None:
    (tmp_path / APPROVED_FILE).write_text('{"places": []}\n[1]\n', encoding="utf-8")

    with pytest.raises(CallerError, match="no approved results"):
        read_approved(Subject("mistral", tmp_path))


def test_the_command_writes_what_is_in_the_file(tmp_path: Path) -> None:
    folder = tmp_path / "cassettes"
    shutil.copytree(FOLDER / "groq", folder)
    before = (folder / APPROVED_FILE).read_bytes()
    done = CliRunner().invoke(cli, ["check", "groq", "--cassettes", str(folder), "--approve"], catch_exceptions=False)

    assert done.exit_code == 0
    assert ": 0 of " in done.stdout
    assert (folder / APPROVED_FILE).read_bytes() == before


@pytest.mark.parametrize("key", ["anthropic", "bedrock"])
def test_another_process_place_and_environment_shows_the_same(tmp_path: Path, key: str) -> None:
    code = (
        "import sys, pathlib\n"
        "from interlingua_contract.approved.table import write_approved\n"
        "from interlingua_contract.guard import no_network, silence_log\n"
        "from interlingua_contract.subject import Subject\n"
        "with no_network(), silence_log():\n"
        "    sys.stdout.buffer.write(write_approved(Subject(sys.argv[1], pathlib.Path(sys.argv[2]))).encode())\n"
    )
    own = {"HOME": str(tmp_path), "PATH": os.environ.get("PATH", ""), "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "7"}
    keys = {"AWS_REGION": "eu-west-9", "ANTHROPIC_API_KEY": "k", "AWS_PROFILE": "nobody"}
    asked = [sys.executable, "-c", code, key, str(FOLDER / key)]
    done = subprocess.run(asked, cwd=tmp_path, env={**own, **keys}, capture_output=True, check=True)

    assert done.stdout == (FOLDER / key / APPROVED_FILE).read_bytes()


@pytest.mark.parametrize("path", FILES, ids=[path.parent.name for path in FILES])
def test_a_file_is_small_and_of_no_machine(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    assert len(text) < LARGEST
    assert not re.search(r"/(home|root|tmp|work|Users)/|site-packages", text)
    assert all(json.loads(line) for line in text.splitlines())


def test_each_provider_has_its_file() -> None:
    assert [path.parent.name for path in FILES] == sorted(Registry().found())


def _write_all() -> None:
    """Write the files of all shipped providers and of the example; read the difference before you commit it."""
    sys.path.insert(0, str(EXAMPLE / "src"))
    parrot = importlib.import_module("interlingua_parrot.plugin").plugin
    registry = Registry(providers={"parrot": parrot})
    for key in sys.argv[1:] or (*Registry().found(), "parrot"):
        folder = EXAMPLE / "tests" / "cassettes" if key == "parrot" else FOLDER / key
        with no_network(), silence_log():
            text = write_approved(Subject(key, folder, registry=registry))
        (folder / APPROVED_FILE).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    _write_all()
