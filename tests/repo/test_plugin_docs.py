"""The pages for plugin authors show the example as it is, and leave no hook, module or quirk out.

What a page says in ```python is run by `test_docs.py`; ```python file=… is shown from the example, whose own tests run
from a wheel (`make wheels`) and whose contract runs here. `python no-run` has no place on these pages.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import attrs
import pytest

from interlingua._plugins.hookspecs import PLUGIN_HOOKS, PROVIDER_HOOKS
from interlingua._plugins.registry import Registry
from interlingua.plugins import build_request
from interlingua.types.factories import system, user
from interlingua.types.options import RequestOptions
from interlingua_contract.report import run
from interlingua_contract.subject import Quirks, Subject
from tests.support import tree
from tests.support.tree import FENCE

FOLDER = tree.ROOT / "docs" / "plugins"
EXAMPLE = FOLDER / "example"
PAGES = [path for path in tree.tracked() if path.suffix == ".md" and path.is_relative_to(FOLDER)]


def shown(page: Path) -> Iterator[tuple[str, str, str]]:
    """Yield language, file and text of each block."""
    for fence in FENCE.finditer(page.read_text(encoding="utf-8")):
        language, _, rest = fence["info"].strip().partition(" ")
        yield language, rest.removeprefix("file=") if rest.startswith("file=") else rest, fence["body"]


@pytest.fixture(scope="module")
def example() -> Iterator[ModuleType]:
    """The plugin from its source, without being installed; the little server is importable beside it."""
    folders = [str(EXAMPLE / "src"), str(EXAMPLE / "tests")]
    sys.path[:0] = folders
    try:
        yield importlib.import_module("interlingua_parrot.plugin")
    finally:
        for folder in folders:
            sys.path.remove(folder)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(FOLDER)))
def test_what_is_shown_of_the_example_is_in_it(page: Path) -> None:
    for language, file, text in shown(page):
        assert file != "no-run", "run it, or show it from the example with file=…"
        if file:
            source = (EXAMPLE / file).read_text(encoding="utf-8")
            assert f"\n{text}" in f"\n{source}\n", f"{language} file={file}: not (or no longer) in it:\n{text}"


def test_the_tutorial_walks_through_every_module() -> None:
    walked = {Path(file).name for _, file, _ in shown(FOLDER / "tutorial.md") if file}
    modules = {path.name for path in (EXAMPLE / "src").rglob("*.py")} - {"__init__.py"}

    assert modules <= walked, f"the tutorial shows nothing of {sorted(modules - walked)}"


def test_the_tutorial_shows_the_wire_as_it_is(example: ModuleType) -> None:
    request, answer = [json.loads(text) for language, _, text in shown(FOLDER / "tutorial.md") if language == "json"]
    provider = Registry(providers={"parrot": example.plugin}).provider("parrot")
    options = RequestOptions(model="grey-1")

    assert json.loads(build_request(provider, [system("Be brief."), user("Hello.")], [], options).body) == request
    assert importlib.import_module("parrot_server").answer(request) == answer


def test_the_life_cycle_names_every_hook() -> None:
    text = (FOLDER / "explanation.md").read_text(encoding="utf-8")
    (diagram,) = [body for language, _, body in shown(FOLDER / "explanation.md") if language == "mermaid"]
    missing = {hook for hook in PROVIDER_HOOKS | PLUGIN_HOOKS if not re.search(rf"\b{hook}\b", text)}
    drawn = [diagram.find(hook) for hook in ("connection(", "capabilities(", "to_wire(", "from_wire_response(")]

    assert not missing, f"docs/plugins/explanation.md says nothing of {sorted(missing)}"
    assert -1 not in drawn
    assert drawn == sorted(drawn)


def test_the_reference_names_every_quirk() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", (FOLDER / "reference.md").read_text(encoding="utf-8"), re.MULTILINE)
    missing = {field.name for field in attrs.fields(Quirks)} - set(rows)

    assert not missing, f"docs/plugins/reference.md, Quirks: {sorted(missing)}"


def test_the_example_keeps_the_contract(example: ModuleType) -> None:
    """From its source, so that a change in core shows at once; from its wheel, in full, `make wheels`."""
    registry = Registry(providers={"parrot": example.plugin})
    report = run(Subject("parrot", EXAMPLE / "tests" / "cassettes", registry=registry, examples=4))
    broken = [str(finding) for result in report.results if result.outcome != "pass" for finding in result.findings]
    looked = {result.rule.number for result in report.results if result.outcome == "pass"}

    assert not broken
    not_looked = {result.rule.number for result in report.results} - looked
    not_installed, serves_nothing = {"C48", "C49", "C50"}, {*(f"C{number}" for number in range(60, 68)), "C86", "C87"}
    own_words = {"C85", "C102"}  # its streams number no calls, and each of their events is of another kind
    one_request = {"C105", "C106", "C107", "C108", "C109"}  # no follow-ups, key exchange, files or decisions
    no_changes = {"C110"}  # of tools within a conversation
    assert not_looked <= not_installed | serves_nothing | own_words | one_request | no_changes


@pytest.fixture(params=["kiln", "mint"])
def small_example(request: pytest.FixtureRequest) -> Iterator[tuple[str, Path]]:
    """An example of one module; the modules of its tests are importable too."""
    folder = FOLDER / str(request.param)
    sys.path.insert(0, str(folder / "src"))
    try:
        yield str(request.param), folder
    finally:
        sys.path.remove(str(folder / "src"))


def test_a_small_example_keeps_the_contract(small_example: tuple[str, Path]) -> None:
    key, folder = small_example
    registry = Registry(providers={key: importlib.import_module(f"interlingua_{key}.plugin").plugin})
    report = run(Subject(key, folder / "tests" / "cassettes", registry=registry, examples=4))

    assert not [str(finding) for result in report.results if result.outcome != "pass" for finding in result.findings]
    assert sum(result.outcome == "pass" for result in report.results) > 80


def test_a_small_example_talks_to_its_service(small_example: tuple[str, Path]) -> None:
    key, folder = small_example
    plugin = f"{key}=interlingua_{key}.plugin:plugin"
    places = os.pathsep.join([str(folder / "src"), str(folder / "tests")])
    environ = {**os.environ, "INTERLINGUA_PLUGINS": plugin, "PYTHONPATH": places}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_talk.py"]
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout[-3000:]
