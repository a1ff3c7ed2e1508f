"""Every import of a module outside the standard library is declared by the distribution that imports it."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PROJECTS = sorted([ROOT / "core" / "pyproject.toml", *(ROOT / "plugins").glob("*/pyproject.toml")])
LEAVING = {"interlingua_serving"}  # still named by core for type checkers
HOST = {"click", "rich", "interlingua_cli"}  # a command is loaded by interlingua-cli, which has these
EXAMPLE = "commands/example"  # a link to docs/plugins/example, a distribution of its own


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def declared(project: dict[str, Any]) -> set[str]:
    """Return the distribution and what it requires, extras included."""
    lists = [project.get("dependencies", []), *project.get("optional-dependencies", {}).values(), [project["name"]]]
    return {normalised(re.split(r"[\s\[<>=!~;]", line, maxsplit=1)[0]) for lines in lists for line in lines}


def imported(source: Path) -> Iterator[tuple[Path, int, str]]:
    """Yield the file, line and top-level module of every absolute import, whether it runs or is for type checkers."""
    for path in sorted(source.rglob("*.py")):
        if EXAMPLE in path.as_posix():
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level and node.module:
                names = [node.module]
            yield from ((path, node.lineno, name.split(".")[0]) for name in names)  # type: ignore[attr-defined]


def is_command(path: Path) -> bool:
    return "commands" in path.parts or path.name == "command.py"


@pytest.mark.parametrize("project", PROJECTS, ids=lambda path: path.parent.name)
def test_every_import_is_declared(project: Path) -> None:
    shipped_by = packages_distributions()
    known = declared(tomllib.loads(project.read_text())["project"])
    missing = [
        f"{path.relative_to(ROOT)}:{line}: {module}"
        for path, line, module in imported(project.parent / "src")
        if module not in sys.stdlib_module_names | LEAVING
        and not (module in HOST and is_command(path))
        and not known & set(map(normalised, shipped_by.get(module, [module])))
    ]
    assert not missing, f"declare in {project.relative_to(ROOT)}, or do not import:\n" + "\n".join(missing)
