"""The workspace itself: typed distributions, pinned versions without addresses, entry points that are objects."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import tomllib
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.support import tree
from tests.tools.house import normal_name
from tests.tools.venv import HASHES

PIN = re.compile(r"[a-z0-9]+(?:[-._][a-z0-9]+)*==[0-9][0-9A-Za-z.!+-]*")
OF_MODULES = {"pytest11"}  # pytest registers a module as a plugin: its functions are the hooks and the fixtures
NAMES = [folder.name for folder in tree.DISTRIBUTIONS]


def _project(folder: Path) -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project


def _entry_points() -> list[tuple[str, str, str]]:
    return [
        (group, key, value)
        for folder in tree.DISTRIBUTIONS
        for group, points in _project(folder).get("entry-points", {}).items()
        for key, value in points.items()
    ]


@pytest.mark.parametrize(("folder", "package"), list(tree.packages()))
def test_a_distribution_is_typed(folder: Path, package: str) -> None:
    assert (folder / "src" / package / "py.typed").is_file(), f"{package} lacks py.typed: its types are not seen"


@pytest.mark.parametrize("folder", tree.DISTRIBUTIONS, ids=NAMES)
def test_a_distribution_says_what_it_is(folder: Path) -> None:
    project = _project(folder)

    assert project["license"] == "Apache-2.0"
    assert project["requires-python"] == ">=3.11"
    assert (folder / project["readme"]).is_file()


def test_dependencies_say_why() -> None:
    bare = [
        f"{folder.name}: {line.strip()}"
        for folder in tree.DISTRIBUTIONS
        for line in (folder / "pyproject.toml").read_text(encoding="utf-8").splitlines()
        if re.match(r'\s+"[\w.-]+(\[[\w,]+\])?>=', line) and "#" not in line
    ]

    assert not bare, f"a dependency's line says in a few words why it is needed: {bare}"


def test_constraints_are_pins_only() -> None:
    lines = (tree.ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    wrong = [pin for pin in pins if not PIN.fullmatch(pin)]

    assert not wrong, f"constraints.txt holds name==version lines only: {wrong}"
    names = [pin.partition("==")[0] for pin in pins]
    assert names == sorted(set(names)), "constraints.txt is sorted and names nothing twice"


def test_constraints_cover_what_is_installed() -> None:
    lines = (tree.ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {line.partition("==")[0] for line in lines}
    asked = {
        normal_name(requirement)
        for folder in tree.DISTRIBUTIONS
        for group in [_project(folder)["dependencies"], *_project(folder).get("optional-dependencies", {}).values()]
        for requirement in group
    }
    groups: Any = tree.pyproject()["dependency-groups"]
    asked |= {normal_name(requirement) for group in groups.values() for requirement in group}
    missing = sorted(name for name in asked if name not in pinned and not name.startswith("interlingua"))

    assert not missing, f"run `make constraints`: nothing pins {missing}"


def test_every_pinned_version_has_its_hashes_and_nothing_else_is_there() -> None:
    text = HASHES.read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    pins = re.findall(r"^([\w.-]+==\S+) \\$", text, re.MULTILINE)
    constraints = (tree.ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()

    assert pins == [line for line in constraints if not line.startswith("#")], (
        "run `python3 tests/tools/venv.py hashes`"
    )
    digests = [line for line in lines if re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}( \\)?", line)]
    assert len(pins) + len(digests) == len(lines)
    assert all(not ended.endswith("\\") for ended, name in pairwise([*lines, "="]) if "==" in name)


@pytest.mark.parametrize(("group", "key", "value"), _entry_points())
def test_an_entry_point_is_an_object(group: str, key: str, value: str) -> None:
    module, _, attribute = value.partition(":")
    if group in OF_MODULES:
        assert not attribute
        assert isinstance(importlib.import_module(module), ModuleType)
        return
    assert attribute, f"{group} {key} names a module: one module cannot serve two keys"
    found = getattr(importlib.import_module(module), attribute)

    assert not isinstance(found, ModuleType), f"{group} {key} is a module: one module cannot serve two keys"


def test_importing_the_core_loads_neither_an_http_client_nor_a_plugin() -> None:
    script = "import interlingua, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    plugins = {package for folder, package in tree.packages() if folder.name != "core"}

    assert not loaded & ({"httpx", "httpx2", "cattrs", "rich", "click"} | plugins)


def test_ci_run_is_executable() -> None:
    assert (tree.ROOT / ".ci" / "run").stat().st_mode & 0o111


def test_the_top_level_holds_what_it_should() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=tree.ROOT, capture_output=True, text=True, check=False).stdout
    names = {name.partition("/")[0] for name in tracked.splitlines()}
    more = {name for name in names if not name.startswith(".")} - {
        *("core", "plugins", "cassettes", "tests", "docs"),
        *("pyproject.toml", "README.md", "Makefile", "LICENSE", "CHANGELOG.md", "constraints.txt"),
    }
    assert not more
