"""Sessions are built from what every application can have: core's public names, and nothing else of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import interlingua
import interlingua_cli
from tests.support import tree

MODULES = [module for module in tree.shipped() if module.name.split(".")[0] == "interlingua_sessions"]


def _core_imports(module: tree.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names if alias.name.split(".")[0] == "interlingua")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "interlingua":
            room = (node.module or "").removeprefix("interlingua").removeprefix(".")
            yield from ((node.lineno, f"{room}.{alias.name}".removeprefix(".")) for alias in node.names)


def test_sessions_use_only_public_names_of_core() -> None:
    allowed = {*interlingua.__all__, "interlingua", *(f"cli.{name}" for name in interlingua_cli.__all__)}
    wrong = [
        f"{module.where}:{line} {name}"
        for module in MODULES
        for line, name in _core_imports(module)
        if name not in allowed
    ]

    assert MODULES
    assert not wrong, f"not in interlingua.__all__: {wrong}"
