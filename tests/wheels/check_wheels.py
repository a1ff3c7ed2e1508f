"""What users get: the wheels, each in a clean environment away from the checkout. `make wheels` runs this file.

It is not named `test_…` because it builds and installs, which `make test` does not. It checks only what a wheel can get
wrong; what the code does is tested from the tree.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.support import tree
from tests.wheels.clean import EXAMPLE, Clean, project

PLUGINS = [folder for folder in tree.DISTRIBUTIONS if folder.name != "core"]
DEPENDED_ON = {  # distributions of ours that others may need besides core, and who needs them
    "interlingua-chat-completions": ("providers",),
    "interlingua-anthropic": ("providers",),  # the rules of Claude's models
    "interlingua-agents": ("interlingua-sessions",),
    "interlingua-cli": ("interlingua-contract", "interlingua-gateway"),
    "interlingua-output": ("interlingua-agents", "interlingua-cli", "interlingua-decisions", "interlingua-sessions"),
    "interlingua-serving": ("interlingua-bulk", "interlingua-contract", "interlingua-gateway"),
}
MOST_DISTRIBUTIONS, MOST_MEGABYTES = 16, 8  # of core with one provider
SKIPPED = 18  # by the example: ten rules on serving, C85, C102, C109, C110, and four on later answers, keys and files
GROUPS = ("interlingua.providers", "interlingua.presets")
USED_IN_PAGES = ("pydantic", "mcp", "opentelemetry-sdk", "trio", "openai", "anthropic")  # by the pages' programs
RULES = (
    "c00 or c07 or c18 or c40 or c42 or c45 or c46 or c48 or c49 or c50"  # of each kind some; all of them: tests/cli
)

EARLIER = tree.ROOT / "tests" / "compat" / "interlingua_parrot-0.1.0-py3-none-any.whl"
ANSWERED = Path(__file__).with_name("answered.py")
LOADED = """
import importlib.metadata, json
from interlingua._plugins.registry import Registry
from interlingua.errors import PluginError
registry = Registry()
entries = importlib.metadata.entry_points()
declare, missing = [], {}
for provider in registry.providers():
    try:
        declare += [provider.key] if provider.capabilities("any").api else []
    except PluginError as error:  # a host of formats that other distributions ship
        missing[provider.key] = str(error)
print(json.dumps({
    "installed": sorted(d.name for d in importlib.metadata.distributions() if d.name.startswith("interlingua")),
    "providers": {p.key: p.distribution.name for p in registry.providers()},
    "declare": declare,
    "missing": missing,
    "plugins": {e.name: type(e.load()).__name__ for e in entries.select(group="interlingua.plugins")},
}))
"""


@pytest.fixture(scope="session")
def author(tmp_path_factory: pytest.TempPathFactory, wheels: dict[str, Path]) -> Clean:
    """The environment of somebody who writes a plugin: core with its extras, and the example."""
    made = Clean.make(tmp_path_factory.mktemp("author"), wheels)
    made.install("interlingua[cli,contract]", "interlingua-parrot")
    return made


@pytest.fixture(scope="session")
def started(author: Clean) -> Path:
    """A plugin as `new-plugin` writes it, installed beside the example."""
    done = author.run("interlingua", "new-plugin", "acme", "--into", "new")
    assert done.returncode == 0, done.stderr
    folder = author.folder / "new" / "interlingua-acme"
    author.install(folder)
    return folder


@pytest.mark.parametrize("folder", [*tree.DISTRIBUTIONS, EXAMPLE], ids=lambda folder: folder.name)
def test_a_wheel_holds_its_typed_package_and_nothing_else(folder: Path, wheels: dict[str, Path]) -> None:
    (package,) = [path.name for path in (folder / "src").iterdir() if (path / "__init__.py").exists()]
    names = zipfile.ZipFile(wheels[project(folder)["name"]]).namelist()
    shipped = {str(path.relative_to(folder / "src")) for path in (folder / "src" / package).rglob("*.py")}

    assert f"{package}/py.typed" in names
    assert shipped <= set(names)
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {package}


def _needed(about: dict[str, Any]) -> set[str]:
    """Return the distributions of ours that one names as its dependencies."""
    declared = {re.split(r"[\[<>=~!; ]", need)[0] for need in about["dependencies"]}
    return {name for name in declared if name.startswith("interlingua")}


@pytest.mark.parametrize("folder", PLUGINS, ids=lambda folder: folder.name)
def test_a_plugin_installs_alone_with_core(folder: Path, wheels: dict[str, Path], tmp_path: Path) -> None:
    about = project(folder)
    declared = _needed(about)
    ours = {"interlingua", about["name"], *declared}
    ours |= {more for one in PLUGINS if project(one)["name"] in declared for more in _needed(project(one))}
    clean = Clean.make(tmp_path, wheels)

    clean.install("interlingua", about["name"])

    found = clean.asked(LOADED)
    kind = "providers" if any(group in about.get("entry-points", {}) for group in GROUPS) else about["name"]
    for needed in declared - {"interlingua"}:
        assert kind in DEPENDED_ON.get(needed, ()), f"{about['name']} may not depend on {needed}"
    assert set(found["installed"]) == ours, "it pulls another plugin in"
    assert set(found["providers"].values()) <= ours - {"interlingua"}
    assert [*found["declare"], *found["missing"]] == list(found["providers"])
    assert all("pip install interlingua-" in text for text in found["missing"].values()), found["missing"]
    if not found[
        "missing"
    ]:  # with an observer, an answer that calls a tool is returned: nothing undeclared is imported
        answered = clean.asked(ANSWERED.read_text(encoding="utf-8"))
        assert answered == {key: [["add"], ["request.sent", "answer.received"]] for key in found["providers"]}
    for group in GROUPS:
        assert about.get("entry-points", {}).get(group, {}).keys() <= found["providers"].keys()
    assert about.get("entry-points", {}).get("interlingua.plugins", {}).keys() <= found["plugins"].keys()


def test_core_alone_has_no_provider(wheels: dict[str, Path], tmp_path: Path) -> None:
    clean = Clean.make(tmp_path, wheels)

    clean.install("interlingua")

    assert clean.asked(LOADED) == {
        "installed": ["interlingua"],
        "providers": {},
        "declare": [],
        "missing": {},
        "plugins": {},
    }
    done = clean.run("python", "-m", "interlingua", "send", "Hello.")
    assert done.returncode != 0
    assert "interlingua[cli]" in done.stdout + done.stderr, "without the command line it says what to install"


def test_core_with_one_provider_is_small(wheels: dict[str, Path], tmp_path: Path) -> None:
    clean = Clean.make(tmp_path, wheels)

    clean.install("interlingua", "interlingua-anthropic")

    names = clean.asked(
        "import importlib.metadata as m, json; print(json.dumps(sorted(d.name for d in m.distributions())))"
    )
    files = [path for path in (tmp_path / "venv" / "lib").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    megabytes = sum(path.stat().st_size for path in files) / 1e6
    print(f"core and one provider: {len(names)} distributions, {megabytes:.1f} MB")
    assert len(names) <= MOST_DISTRIBUTIONS, names
    assert megabytes <= MOST_MEGABYTES


def test_the_extras_bring_their_commands(author: Clean) -> None:
    shown = author.run("interlingua", "--help").stdout

    for command in ("send", "chat", "doctor", "corpus", "demo", "check", "matrix", "new-plugin"):
        assert re.search(rf"\b{command}\b", shown), f"{command} is missing:\n{shown}"


def test_the_example_passes_its_own_tests_and_the_contract(author: Clean) -> None:
    """The contract among them; the tests are copied, for a wheel does not hold them."""
    away = author.folder / "example"
    shutil.copytree(EXAMPLE / "tests", away / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(EXAMPLE / "pyproject.toml", away)

    done = author.run("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=away)

    assert done.returncode == 0, done.stdout[-5000:]
    assert re.search(rf"^\d\d+ passed, {SKIPPED} skipped in", done.stdout, re.MULTILINE), done.stdout[-500:]
    where = author.asked("import interlingua_parrot, json; print(json.dumps(interlingua_parrot.__file__))")
    assert Path(where).is_relative_to(author.folder)


def test_the_command_checks_the_example(author: Clean) -> None:
    cassettes = author.folder / "cassettes"
    shutil.copytree(EXAMPLE / "tests" / "cassettes", cassettes)

    done = author.run("interlingua", "check", "parrot", "--cassettes", cassettes, "--examples", "2")

    assert done.returncode == 0, done.stdout
    assert "supports_parallel_tool_calls" in done.stdout
    assert re.search(rf"parrot \(interlingua-parrot [\d.]+\): \d+ ok, {SKIPPED} skipped$", done.stdout.strip())


def test_a_wheel_that_was_built_earlier_passes_under_this_core(wheels: dict[str, Path], tmp_path: Path) -> None:
    """It was built before the hook `follow_up` came (tests/compat/test_old_plugin.py), and is installed unchanged."""
    user = Clean.make(tmp_path, {name: path for name, path in wheels.items() if name != "interlingua-parrot"})
    user.install("interlingua[cli,contract]", EARLIER)
    shutil.copytree(EARLIER.with_name("parrot_1") / "cassettes", tmp_path / "cassettes")

    done = user.run("interlingua", "check", "parrot", "--cassettes", "cassettes", "--examples", "2", "--json")

    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    report = json.loads(done.stdout)
    assert report["distribution"] == "interlingua-parrot"
    outcomes = [rule["outcome"] for rule in report["rules"]]
    assert outcomes.count("pass") > 60
    assert set(outcomes) <= {"pass", "skip"}


def test_a_new_plugins_first_run_is_one_list_of_what_to_write(author: Clean, started: Path) -> None:
    done = author.run(
        "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml=report.xml", "-k", RULES, cwd=started
    )

    cases = list(ET.parse(started / "report.xml").iter("testcase"))  # noqa: S314 - our own
    failed = {case.attrib["name"]: "".join(fail.itertext()) for case in cases for fail in case.findall("failure")}
    skipped = {case.attrib["name"][5:8]: skip.attrib["message"] for case in cases for skip in case.findall("skipped")}
    assert list(failed) == ["test_c00_everything_is_written"], done.stdout[-3000:]
    assert "to write, in this order:\n    1. messages.py: write to_wire_message" in failed.popitem()[1]
    assert all("(C00 lists all)" in skipped[number] for number in ("c07", "c18", "c42")), skipped
    assert "record an exchange once the plugin writes requests" in skipped["c46"]


def test_the_command_begins_with_the_same_list(author: Clean, started: Path) -> None:
    done = author.run("interlingua", "check", "acme", "--cassettes", "tests/cassettes", "--examples", "2", cwd=started)

    assert done.returncode == 1
    assert done.stdout.startswith("\nC00 Every function of the plugin is written.\n  - to write, in this order:")
    assert done.stdout.count("How to fix:") == 1, done.stdout


def test_what_a_new_plugin_still_waits_for_is_skipped_with_its_reason(author: Clean, started: Path) -> None:
    done = author.run("python", "-m", "pytest", "-rs", "-p", "no:cacheprovider", "tests/test_recorded.py", cwd=started)

    assert done.returncode == 0, done.stdout
    assert done.stdout.count("not recorded yet: set the key and run pytest --record-mode=once") == 2


def test_types_are_seen_through_the_wheels(author: Clean, started: Path, tmp_path: Path) -> None:
    """The example's source and a new plugin's, strict, against what is installed: `py.typed` is not only there."""
    mypy = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(author.program("python"))]
    done = subprocess.run(
        [*mypy, "--config-file=", "--cache-dir", str(tmp_path), str(EXAMPLE / "src"), str(started / "src")],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout


def test_the_programs_of_the_pages_are_typed(wheels: dict[str, Path], tmp_path: Path) -> None:
    """Every program that the pages run, and docs/examples, under mypy --strict against the installed wheels."""
    reader = Clean.make(tmp_path / "reader", wheels)
    reader.install(*(name for name in wheels if name != "interlingua-parrot"), *USED_IN_PAGES)
    programs = tmp_path / "programs"
    programs.mkdir()
    for page in tree.pages():
        lines = [""] * (page.read_text(encoding="utf-8").count("\n") + 1)
        blocks = [(body, line) for info, body, line in tree.fenced_blocks(page) if info == ["python"]]
        for body, line in blocks:
            lines[line - 1 : line - 1 + body.count("\n")] = body.splitlines()  # an error names the page's own line
        if blocks:
            name = re.sub(r"\W", "_", page.relative_to(tree.ROOT).with_suffix("").as_posix())
            (programs / f"{name}.py").write_text("\n".join(lines), encoding="utf-8")
    for example in (tree.ROOT / "docs" / "examples").glob("*.py"):
        shutil.copy(example, programs / f"example_{example.name}")

    mypy = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(reader.program("python"))]
    done = subprocess.run(
        [*mypy, "--config-file=", "--cache-dir", str(tmp_path / "cache"), "."],
        cwd=programs, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout
    assert len(list(programs.iterdir())) > 40
