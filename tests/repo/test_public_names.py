"""Sessions and agents are built from what every application can have: names that core's public packages export."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator

import pytest

from tests.repo.figures import PUBLIC
from tests.support import tree

USERS = {"interlingua_sessions", "interlingua_agents"}
MODULES = [module for module in tree.shipped() if module.name.partition(".")[0] in USERS]
EXPORTED = {
    name: set(getattr(importlib.import_module(f"interlingua.{name}".rstrip(".")), "__all__", ())) for name in PUBLIC
}


def _imported(module: tree.Module) -> Iterator[tuple[int, str, str]]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "interlingua":
            package = (node.module or "").partition(".")[2]
            yield from ((node.lineno, package, alias.name) for alias in node.names)


def test_only_exported_names_are_imported() -> None:
    """Imports of other modules are counted by `figures.inner_imports`; without `__all__` every name is exported."""
    wrong = [
        f"{module.where}:{line} {package}.{name}"
        for module in MODULES
        for line, package, name in _imported(module)
        if EXPORTED.get(package) and name not in EXPORTED[package] and name not in PUBLIC
    ]

    assert MODULES
    assert not wrong, f"not exported: {wrong}"


@pytest.mark.parametrize("package", sorted(PUBLIC - {""}))
def test_public_packages_are_there(package: str) -> None:
    importlib.import_module(f"interlingua.{package}")


ORDINARY = {
    "from __future__ import annotations",
    "from typing import TYPE_CHECKING",
    "from typing import TYPE_CHECKING, Any",
    "from importlib import import_module",
    "from interlingua._lazy import lazy_names",
    "from interlingua.plugins import lazy_names",
}
LAZY = [module for module in tree.shipped() if "lazy_names(__name__" in module.path.read_text(encoding="utf-8")]


def _imported_as(body: list[ast.stmt]) -> Iterator[str]:
    """Yield the names that statements import as themselves (`X as X`): type checkers see those alone."""
    for node in body:
        if isinstance(node, ast.ImportFrom):
            yield from (alias.asname or f"{alias.name}, not exported" for alias in node.names)
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield from _imported_as(node.body)


@pytest.mark.parametrize("module", LAZY, ids=lambda module: module.name)
def test_type_checkers_see_the_names_that_exist(module: tree.Module) -> None:
    names = importlib.import_module(module.name).__all__
    body = [node for node in module.tree.body if ast.unparse(node) not in ORDINARY]

    assert sorted(_imported_as(body)) == sorted(set(names) - {"__version__"})
