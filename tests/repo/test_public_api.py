"""docs/reference/api.txt is the API of the code; the changelog lists changes since the last release."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support import tree
from tests.tools import public_api

WRITE = "python -m tests.tools.public_api"
BEFORE = "# interlingua\ninterlingua.kept(a: int)\ninterlingua.turned(a: int)\n"
BEFORE += "class interlingua.Gone\ninterlingua.Gone.x: int\n"
NOW = "# interlingua\ninterlingua.kept(a: int)\ninterlingua.turned(a: int, b: int = 0)\nclass interlingua_new.Fresh\n"


@pytest.fixture(scope="module")
def now() -> str:
    """The API of the code, from a fresh interpreter: other tests import what makes a name differ."""
    script = "import sys; from tests.tools import public_api; sys.stdout.write(public_api.text())"
    done = subprocess.run([sys.executable, "-c", script], cwd=tree.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_file_is_the_api_of_the_code(now: str) -> None:
    found = public_api.changes(public_api.PAGE.read_text(encoding="utf-8"), now)

    assert not found, f"run `{WRITE}`: " + ", ".join(f"{name} ({kind})" for name, kind in found.items())


def test_the_changelog_names_each_change_since_the_last_release(now: str) -> None:
    last = public_api.released()
    if last is None:
        return  # nothing is published yet, so nothing differs from what is
    version, before = last
    above = public_api.since(version, public_api.CHANGELOG.read_text(encoding="utf-8"))
    missing = public_api.unnamed(public_api.changes(before, now), above)

    assert not missing, f"CHANGELOG.md names these nowhere above [{version}], between backticks: {', '.join(missing)}"


def test_changes_are_found_by_name() -> None:
    assert public_api.changes(BEFORE, NOW) == {
        "interlingua.Gone": "removed",
        "interlingua.Gone.x": "removed",
        "interlingua.turned": "changed",
        "interlingua_new.Fresh": "added",
    }
    assert public_api.changes(BEFORE, BEFORE) == {}


@pytest.mark.parametrize(
    ("changelog", "missing"),
    [
        ("- Something else.", ["Gone (removed)", "Gone.x (removed)", "turned (changed)", "Fresh (added)"]),
        ("- `Gone` is gone, `turned(b=…)` is new.", ["Fresh (added)"]),
        ("- `Gone`, `interlingua.turned` and `interlingua_new.Fresh`.", []),
        ("- Gone, turned and Fresh.", ["Gone (removed)", "Gone.x (removed)", "turned (changed)", "Fresh (added)"]),
    ],
)
def test_a_change_that_the_changelog_does_not_name_is_listed(changelog: str, missing: list[str]) -> None:
    found = public_api.unnamed(public_api.changes(BEFORE, NOW), changelog)

    assert [one.partition(".")[2] for one in found] == missing


def test_only_the_sections_above_the_last_release_count() -> None:
    changelog = "# Changelog\n\n## [0.2.0]\n\n- `new`\n\n## [0.1.0]\n\n- `old`\n"

    assert "`new`" in public_api.since("0.1.0", changelog)
    assert "`old`" not in public_api.since("0.1.0", changelog)


def test_no_line_differs_between_two_runs(now: str) -> None:
    assert " at 0x" not in now
    assert str(tree.ROOT) not in now
