"""The import contracts of the root pyproject are kept, and bind every package of the workspace."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support import tree


def _settings() -> dict[str, Any]:
    tool: Any = tree.pyproject()["tool"]
    settings: dict[str, Any] = tool["importlinter"]
    return settings


def test_import_contracts_are_kept() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([str(linter), "--no-cache"], cwd=tree.ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, f"import contracts broken (pyproject.toml says why each is there):\n{done.stdout}"


def test_every_package_of_the_workspace_is_under_contract() -> None:
    shipped = {package for _, package in tree.packages()}

    assert shipped == set(_settings()["root_packages"]), "root_packages of [tool.importlinter] and the tree differ"


def test_every_plugin_is_bound_by_each_plugin_contract() -> None:
    plugins = {package for folder, package in tree.packages() if folder.name != "core"}
    contracts = {contract["name"]: contract for contract in _settings()["contracts"]}
    translators = set(contracts["providers do no I/O and do not use the client"]["source_modules"])
    others = contracts["the other distributions know no provider and no HTTP"]
    layers = contracts["plugins do not import each other"]["layers"]

    assert plugins == translators | set(others["source_modules"])
    assert translators | {"httpx"} == set(others["forbidden_modules"])
    assert plugins == set(contracts["core imports no plugin"]["forbidden_modules"])
    assert plugins == {name.strip() for layer in layers for name in layer.split("|")}


def test_every_contract_gives_its_reason() -> None:
    lines = (tree.ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    bare = [
        lines[number + 1]
        for number, line in enumerate(lines)
        if line == "[[tool.importlinter.contracts]]" and not lines[number - 1].startswith("# ")
    ]

    assert not bare, f"a contract without a comment above it that says why: {bare}"
