"""Each shipped module is a small room: it says what it is, exports what it means to, fits a screen, imports alone."""

from __future__ import annotations

import ast
import importlib
import re
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.repo import importing
from tests.support import tree

MEDIAN_FILE = 80
LONGEST_FILE = 400
P95_FUNCTION = 40
SENTENCES = 3


def _functions() -> Iterator[tuple[int, str]]:
    for module in tree.shipped():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
                yield node.end_lineno - node.lineno + 1, f"{module.where}:{node.lineno} {node.name}"


def _public_names(module: ast.Module) -> Iterator[str]:
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def _isort_key(name: str) -> tuple[int, list[object]]:
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
    return kind, [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def test_module_docstrings_have_three_sentences() -> None:
    short = []
    for module in tree.shipped():
        text = re.sub(r"\b(?:e\.g|i\.e|etc|vs)\.", "", ast.get_docstring(module.tree) or "")
        if len(re.findall(r"[.!?][\"')`*]*(?:\s|$)", text)) < SENTENCES:
            short.append(module.where)

    assert not short, f"a module docstring says what lives here, what never does, and who may come in: {short}"


def test_exports_are_sorted_defined_and_complete() -> None:
    wrong = []
    for module in tree.shipped():
        if "__all__" not in _public_names(module.tree):
            continue
        loaded = importlib.import_module(module.name)
        exported = list(loaded.__all__)
        own = {name for name in _public_names(module.tree) if not name.startswith("_")}
        if exported not in (sorted(exported), sorted(exported, key=_isort_key)):
            wrong.append(f"{module.where}: __all__ is not sorted")
        wrong += [f"{module.where}: {name} is exported and not there" for name in exported if not hasattr(loaded, name)]
        wrong += [f"{module.where}: {name} is public and not in __all__" for name in sorted(own - set(exported))]

    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("package", [package for _, package in tree.packages()])
def test_a_distribution_states_its_exports(package: str) -> None:
    exported = importlib.import_module(package).__all__

    assert len(set(exported)) == len(exported), f"{package}.__all__ names something twice"


def test_the_median_file_is_short() -> None:
    median = statistics.median(module.lines for module in tree.shipped())

    assert median <= MEDIAN_FILE, f"the median shipped file has {median} lines, more than {MEDIAN_FILE}"


def test_no_file_is_long() -> None:
    allowed = tree.allowed("long_files")
    sizes = {
        path.relative_to(tree.ROOT).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for path in tree.tracked()
        if path.suffix == ".py"
    }
    long = [f"{name}: {size}" for name, size in sizes.items() if size > allowed.get(name, (LONGEST_FILE, ""))[0]]
    stale = [name for name in allowed if sizes.get(name, 0) <= LONGEST_FILE]

    assert not long, f"split these by subject (more than {LONGEST_FILE} lines, or than their ceiling): {long}"
    assert not stale, f"tests/repo/allow/long_files.txt only shrinks: take out {stale}"


def test_functions_fit_a_screen() -> None:
    lengths = sorted(_functions())
    p95 = lengths[int(len(lengths) * 0.95)][0]

    assert p95 <= P95_FUNCTION, f"95th percentile is {p95} lines; the longest: {lengths[-8:]}"


def test_every_module_imports_alone_without_warnings() -> None:
    failed = importing.failures(tree.shipped())

    assert not failed, "these do not import alone with warnings as errors:\n" + "\n".join(map(" ".join, failed.items()))


def test_a_module_that_needs_another_first_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The way in matters in a circle, a borrowed submodule only works after its importer, and a warning is an error."""
    sources = {
        "room.__init__": "",
        "room.base": "VALUE = 1",
        "room.first": "import room.second",
        "room.second": "import room.first",
        "room.third": "C = 1\nfrom room.fourth import D",
        "room.fourth": "from room.third import C\nD = 1",
        "room.borrowing": "import room\nE = room.base.VALUE",
        "room.warning": "import warnings\nimport room.base\nwarnings.warn('old')",
        "room.eager.__init__": "from room.eager.part import F",
        "room.eager.part": "import room.base\nF = room.base.VALUE",
    }
    modules = []
    for name, source in sources.items():
        path = tmp_path.joinpath(*name.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
        modules.append(tree.Module(path, name.removesuffix(".__init__")))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    assert importing.failures(modules).keys() == {"room.fourth", "room.borrowing", "room.warning"}
