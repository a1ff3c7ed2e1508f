"""Each shipped module can be imported; a package's `__all__` names what is there; no Python file is too long."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

from tests.repo import figures, importing
from tests.support import tree

LONGEST = 600  # lines
P95_FUNCTION = 40  # lines of 95 in 100 functions


def test_no_python_file_is_too_long() -> None:
    long = [
        f"{path.relative_to(tree.ROOT)}: {lines}"
        for path in tree.tracked()
        if path.suffix == ".py" and (lines := figures.lines_of(path)) > LONGEST
    ]

    assert not long, f"a file is a subject of at most {LONGEST} lines; split these by subject: {long}"


def test_functions_fit_a_screen() -> None:
    lengths = sorted(figures.function_lengths())
    p95 = lengths[int(len(lengths) * 0.95)][0]

    assert p95 <= P95_FUNCTION, f"95th percentile is {p95} lines; the longest: {lengths[-8:]}"


PACKAGES = [module for module in tree.shipped() if module.path.name == "__init__.py"]


@pytest.mark.parametrize("module", PACKAGES, ids=lambda module: module.name)
def test_a_package_that_reexports_states_its_exports(module: tree.Module) -> None:
    own = [node for node in ast.walk(module.tree) if isinstance(node, ast.ImportFrom) and _is_own(node, module)]

    assert not own or hasattr(importlib.import_module(module.name), "__all__"), f"{module.where} needs __all__"


def _is_own(node: ast.ImportFrom, module: tree.Module) -> bool:
    return (node.module or "").partition(".")[0] == module.name.partition(".")[0]


def test_exports_are_sorted_and_there() -> None:
    wrong = []
    for module in PACKAGES:
        loaded = importlib.import_module(module.name)
        exported = list(getattr(loaded, "__all__", ()))
        if len(set(exported)) != len(exported):
            wrong.append(f"{module.where}: __all__ names something twice")
        wrong += [f"{module.where}: {name} is exported and not there" for name in exported if not hasattr(loaded, name)]

    assert not wrong, "\n".join(wrong)


def test_every_module_is_imported_without_warnings() -> None:
    failed = importing.failures(tree.shipped())

    assert not failed, "these cannot be imported with warnings as errors:\n" + "\n".join(map(" ".join, failed.items()))


def test_a_module_that_warns_or_fails_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = {
        "sample.__init__": "",
        "sample.base": "VALUE = 1",
        "sample.user": "from sample.base import VALUE",
        "sample.failing": "from sample.base import OTHER",
        "sample.leaving": "raise SystemExit",
        "sample.warning": "import warnings\nimport sample.base\nwarnings.warn('old')",
    }
    modules = []
    for name, source in sources.items():
        path = tmp_path.joinpath(*name.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
        modules.append(tree.Module(path, name.removesuffix(".__init__")))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    assert importing.failures(modules).keys() == {"sample.failing", "sample.leaving", "sample.warning"}
