"""`interlingua new-plugin`: what it writes imports, lints clean, says what to do, and is never written over anything.

That the output installs with pip and that its own pytest run says the same is shown from wheels (tests/wheels).
"""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from interlingua._plugins.hookspecs import PROVIDER_HOOKS, ProviderHooks
from interlingua.errors import CallerError
from interlingua.plugins import Registry
from interlingua_cli.root import cli
from interlingua_contract.commands import new_plugin as scaffold
from interlingua_contract.report import ContractReport, run
from interlingua_contract.subject import Subject
from tests.support import tree

TO_DO = re.compile(r"^ +(\d)\. (\w+\.py): write ([\w.]+)", re.MULTILINE)
EXAMPLE = tree.ROOT / "docs" / "plugins" / "example" / "src" / "interlingua_parrot"
SERVING = {"from_wire_request", "to_wire_response", "stream_to_wire", "to_wire_error", "to_wire_auxiliary"}
# nothing fails without them
LEFT_OUT = SERVING | {"auxiliary_request", "from_wire_auxiliary", "cost_of", "follow_up", "model_info"}


def new_plugin(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["new-plugin", *arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return scaffold.render("acme-cloud", tmp_path_factory.mktemp("new"))


@pytest.fixture(scope="module")
def registry(folder: Path) -> Iterator[Registry]:
    sys.path.insert(0, str(folder / "src"))
    try:
        yield Registry(providers={"acme-cloud": import_module("interlingua_acme_cloud.plugin").plugin})
    finally:
        sys.path.remove(str(folder / "src"))


@pytest.fixture(scope="module")
def report(folder: Path, registry: Registry) -> ContractReport:
    return run(Subject("acme-cloud", folder / "tests" / "cassettes", registry=registry, examples=3))


def test_it_lists_what_it_wrote(tmp_path: Path) -> None:
    done = new_plugin("acme", "--into", str(tmp_path / "made"))
    listed = done.stdout.splitlines()

    assert done.exit_code == 0
    assert str(tmp_path / "made" / "interlingua-acme" / "src" / "interlingua_acme" / "plugin.py") in listed
    assert all(Path(name).is_file() for name in listed)
    assert "pytest tests/test_contract.py" in done.stderr


def test_the_entry_point_is_the_plugin_object(folder: Path, registry: Registry) -> None:
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert project["name"] == "interlingua-acme-cloud"
    assert project["entry-points"] == {"interlingua.providers": {"acme-cloud": "interlingua_acme_cloud.plugin:plugin"}}
    assert registry.provider("acme-cloud").models() == ()


def test_the_report_begins_with_one_list_of_what_to_write(report: ContractReport) -> None:
    first, *others = report.results
    (finding,) = first.findings

    assert first.rule.number == "C00"
    assert TO_DO.findall(finding.why) == [
        ("1", "messages.py", "to_wire_message"),
        ("2", "messages.py", "to_wire_part"),
        ("3", "request.py", "to_wire_options"),
        ("4", "request.py", "to_wire_tool"),
        ("5", "request.py", "estimate_input_tokens"),
        ("6", "response.py", "from_wire_part"),
        ("7", "response.py", "from_wire_usage"),
        ("8", "stream.py", "AnswerReader.read"),
    ]
    assert not [result.rule.number for result in others if result.outcome == "fail"]


def test_what_needs_an_open_function_is_skipped_and_names_it(report: ContractReport) -> None:
    waiting = {result.rule.number: result.reason for result in report.results if "(C00 lists all)" in result.reason}

    assert {"C01", "C08", "C18", "C42", "C44"} <= waiting.keys()
    assert all(re.match(r"(messages|request)\.py: write \w+", reason) for reason in waiting.values()), waiting


def test_recorded_answers_name_what_reads_them(registry: Registry, tmp_path: Path) -> None:
    """With a cassette the reading functions are met, too: still one list, and no failure beside it."""
    answer = """
interactions:
- request: {method: POST, uri: https://api.acme-cloud.example/v1/chat, parsed_body: {model: m, stream: false}}
  response:
    status: {code: 200, message: OK}
    headers: {content-type: [application/json]}
    body: {parsed_body: {content: [{type: text, text: Hello.}]}}
version: 1
"""
    (tmp_path / "answer.yaml").write_text(answer, encoding="utf-8")
    results = run(Subject("acme-cloud", tmp_path, registry=registry, examples=3)).results
    waiting = {result.rule.number: result.reason for result in results if "(C00 lists all)" in result.reason}

    assert [result.rule.number for result in results if result.outcome == "fail"] == ["C00"]
    assert "response.py: write from_wire_part" in waiting["C27"]


def test_once_requests_are_written_only_the_reading_functions_are_listed(tmp_path: Path) -> None:
    """With the example's functions in their place, nothing else of what `new-plugin` wrote is broken."""
    written = scaffold.render("half-done", tmp_path)
    for name in ("messages.py", "request.py"):
        text = (EXAMPLE / name).read_text(encoding="utf-8").replace("interlingua_parrot", "interlingua_half_done")
        (written / "src" / "interlingua_half_done" / name).write_text(text, encoding="utf-8")
    sys.path.insert(0, str(written / "src"))
    try:
        plugin = import_module("interlingua_half_done.plugin").plugin
    finally:
        sys.path.remove(str(written / "src"))
    cassettes = written / "tests" / "cassettes"
    report = run(Subject("half-done", cassettes, registry=Registry(providers={"half-done": plugin}), examples=3))
    failed = {result.rule.number: result.findings for result in report.results if result.outcome == "fail"}

    assert failed.keys() == {"C00"}, failed
    assert [name for _, _, name in TO_DO.findall(failed["C00"][0].why)] == [
        "from_wire_part", "from_wire_usage", "AnswerReader.read",
    ]  # fmt: skip


def test_names_and_arguments_are_those_of_the_example(folder: Path) -> None:
    """The tutorial shows the example: who goes by it finds the same functions in what `new-plugin` wrote."""
    for path in sorted((folder / "src" / "interlingua_acme_cloud").glob("*.py")):
        written, shown = _signatures(path), _signatures(EXAMPLE / path.name)
        assert written.items() <= shown.items(), path.name


def _signatures(path: Path) -> dict[str, str]:
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    functions = [node for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    classes = {node.name: "" for node in nodes if isinstance(node, ast.ClassDef) and not node.name.startswith("_")}
    return classes | {
        node.name: f"({ast.unparse(node.args)}) -> {ast.unparse(node.returns) if node.returns else None}"
        for node in functions
    }


def test_what_is_not_the_authors_to_write_passes_already(report: ContractReport) -> None:
    passed = {result.rule.number for result in report.results if result.outcome == "pass"}

    assert {"C40", "C45", "C47"} <= passed  # errors by status, the catalogue, no secrets


def test_what_waits_for_a_cassette_says_so(report: ContractReport) -> None:
    waiting = {result.rule.number: result.reason for result in report.results if result.outcome == "skip"}
    by_hand = {number for number, reason in waiting.items() if "registered in code" in reason}
    optional = re.compile(
        "no serving plugin|exchanges no key|uploads nothing|no hook `follow_up`|has a decision|declares changes"
    )
    waiting = {number: reason for number, reason in waiting.items() if not optional.search(reason)}
    others = {number: reason for number, reason in waiting.items() if "(C00 lists all)" not in reason}

    assert by_hand == {"C48", "C49", "C50"}  # the installed distribution: looked at in tests/wheels
    waits = re.compile("record|when every function is written")
    assert not {number: others[number] for number in others.keys() - by_hand if not waits.search(others[number])}


@pytest.mark.parametrize("hook", sorted(PROVIDER_HOOKS - LEFT_OUT))
def test_skeletons_carry_the_specs_docstrings(folder: Path, hook: str) -> None:
    told = [inspect.cleandoc(match) for match in re.findall(r'"""(.*?)"""', _source(folder), re.DOTALL)]

    assert inspect.getdoc(getattr(ProviderHooks, hook)) in told


def _source(folder: Path) -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in (folder / "src").rglob("*.py"))


def test_it_is_formatted_linted_and_wholly_rendered(folder: Path) -> None:
    ruff = str(Path(sys.executable).with_name("ruff"))
    checks = [["check", "--no-cache"], ["format", "--check", "--no-cache"]]
    done = [
        subprocess.run([ruff, *check, str(folder)], capture_output=True, text=True, check=False) for check in checks
    ]
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]

    assert [each.returncode for each in done] == [0, 0], "".join(each.stdout for each in done)
    unrendered = [path.name for path in files if "{%" in (text := path.read_text(encoding="utf-8")) or "{{ " in text]
    assert unrendered == ["check.yml"]  # the CI service's own braces


@pytest.mark.parametrize(
    "name", ["", "Acme", "acme_cloud", "-acme", "acme-", "a--b", "9acme", "acme!", "a/b", "a" * 41]
)
def test_bad_names_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(CallerError, match="cannot be a provider's name"):
        scaffold.render(name, tmp_path)

    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["interlingua", "interlingua-acme", "interlingua_acme"])
def test_the_prefix_is_not_part_of_the_name(tmp_path: Path, name: str) -> None:
    done = new_plugin(name, "--into", str(tmp_path))

    assert done.exit_code == 1
    assert "error: pass the provider's name alone" in done.stderr


def test_nothing_is_written_over(tmp_path: Path) -> None:
    kept = tmp_path / "interlingua-acme" / "README.md"
    kept.parent.mkdir()
    kept.write_text("mine")

    done = new_plugin("acme", "--into", str(tmp_path))

    assert done.exit_code == 1
    assert "exists already; nothing was changed" in done.stderr
    assert [path.name for path in tmp_path.rglob("*")] == ["interlingua-acme", "README.md"]
    assert kept.read_text() == "mine"


def test_a_failure_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaffold, "_templates", lambda: [("a.jinja", "whole"), ("b.jinja", "{{ nobody_knows_this }}")])

    with pytest.raises(Exception, match="nobody_knows_this"):
        scaffold.render("acme", tmp_path)

    assert not list(tmp_path.iterdir())


def test_an_installed_provider_of_that_name_is_pointed_out(tmp_path: Path) -> None:
    done = new_plugin("anthropic", "--into", str(tmp_path))

    assert done.exit_code == 0
    assert "warning: anthropic is a provider already, from interlingua-anthropic" in done.stderr


def test_the_example_is_written_as_it_is(tmp_path: Path) -> None:
    """Whoever has only the installed package gets the tutorial's plugin with its service."""
    done = new_plugin("--example", "--into", str(tmp_path))
    example = tree.ROOT / "docs" / "plugins" / "example"
    written = tmp_path / "interlingua-parrot"
    names = {path.relative_to(example) for path in tree.tracked() if path.is_relative_to(example)}

    assert done.exit_code == 0
    assert {path.relative_to(written) for path in written.rglob("*") if path.is_file()} == names
    assert all((written / name).read_bytes() == (example / name).read_bytes() for name in names)
    assert "python tests/parrot_server.py" in done.stderr


@pytest.mark.parametrize("arguments", [(), ("acme", "--example")])
def test_a_name_or_the_example(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = new_plugin(*arguments, "--into", str(tmp_path))

    assert done.exit_code == 2
    assert "pass the NAME of a new provider, or --example alone" in done.stderr
    assert not list(tmp_path.iterdir())


def test_without_the_template_engine_it_says_what_to_install(tmp_path: Path) -> None:
    script = "import sys; sys.modules['jinja2'] = None; from interlingua_cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", script, "new-plugin", "acme"], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    assert "new plugins need jinja2: pip install 'interlingua[contract]'" in done.stderr
    assert not list(tmp_path.iterdir())
