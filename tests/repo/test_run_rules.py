"""The rules of `tests/conftest.py` themselves: a required corpus is required, and the run is recorded truly."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pluggy

from tests.support import corpus, tree
from tests.support.run_record import CASSETTES, RECORD

SAMPLE = """
import pytest

def test_by_fixture(corpus):
    assert list(corpus.entries("acme")) == [{"id": "acme/1"}]

def test_by_its_own_skip(pytestconfig):
    pytest.skip("needs the CORPUS folder")

def test_skipped_for_another_reason():
    pytest.skip("not on this system")

@pytest.mark.xfail(reason="the corpus shows this is wrong")
def test_known_wrong():
    raise AssertionError
"""


def _run(tmp_path: Path, **environment: str) -> str:
    (tmp_path / "test_sample.py").write_text(SAMPLE)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("INTERLINGUA_")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "-c", "pyproject.toml", "--rootdir", "."]
    done = subprocess.run(
        [*command, str(tmp_path / "test_sample.py")],
        cwd=tree.ROOT,
        env=kept | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.splitlines()[-1].split(" in ")[0]


def test_without_a_corpus_its_tests_skip(tmp_path: Path) -> None:
    assert _run(tmp_path) == "3 skipped, 1 xfailed"


def test_where_it_is_required_a_skip_for_its_lack_fails(tmp_path: Path) -> None:
    assert _run(tmp_path, INTERLINGUA_REQUIRE_CORPUS="1") == "1 failed, 1 skipped, 1 xfailed, 1 error"


def test_the_fixture_reads_the_folder_it_is_given(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    with gzip.open(tmp_path / "dev" / "acme.jsonl.gz", "wt") as lines:
        lines.write('{"id": "acme/1"}\n')

    assert _run(tmp_path, INTERLINGUA_CORPUS=str(tmp_path)) == "1 passed, 2 skipped, 1 xfailed"
    assert corpus.Corpus(tmp_path).apis == ["acme"]


def test_a_hook_call_is_recorded() -> None:
    class Specs:
        @pluggy.HookspecMarker("interlingua")
        def made_up_for_this_test(self) -> None:
            """Do nothing."""

    manager = pluggy.PluginManager("interlingua")
    manager.add_hookspecs(Specs)
    assert "made_up_for_this_test" not in RECORD.hooks

    manager.hook.made_up_for_this_test()

    assert "made_up_for_this_test" in RECORD.hooks


def test_opening_a_cassette_is_recorded_with_the_test_file() -> None:
    made_up = Path(CASSETTES) / "made" / "up.yaml"
    assert not made_up.exists()

    RECORD.audit("open", (str(made_up), "r", 0))

    assert RECORD.cassettes["made/up.yaml"] == {"tests/repo/test_run_rules.py"}
