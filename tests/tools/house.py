"""Print the figures of the source tree: size, circles of modules, names, imports, prose; of this checkout or another.

    python tests/tools/house.py                       this checkout
    python tests/tools/house.py /path/to/checkout     another one, read with this one's rules; before and after
    python tests/tools/house.py --list                each figure with the entries that it counts
    python tests/tools/house.py --write-allow         drop what is no longer needed from tests/repo/allow/house.toml

The tests of `tests/repo/test_house.py` hold each list to that file.
"""

from __future__ import annotations

import argparse
import ast
import functools
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

HERE = Path(__file__).resolve()
ROOT = HERE.parents[2]
ALLOW = ROOT / "tests" / "repo" / "allow" / "house.toml"
sys.path.insert(0, str(ROOT))

from tests.tools import prose  # noqa: E402 run as a script, too


# -- the tree --------------------------------------------------------------------------------------------------------
@functools.cache
def distributions(root: Path) -> dict[str, Path]:
    """Return the folder of each distribution, by the package it ships."""
    folders = [root / "core", *sorted(path.parent for path in root.glob("plugins/*/pyproject.toml"))]
    return {
        package.name: folder
        for folder in folders
        for package in sorted((folder / "src").iterdir())
        if (package / "__init__.py").is_file()
    }


@functools.cache
def modules(root: Path, package: str) -> dict[Path, ast.Module]:
    """Return the parsed modules of a package, templates and links aside."""
    top = distributions(root)[package] / "src" / package
    paths = (path for path in sorted(top.rglob("*.py")) if not {"template", "example"} & set(path.parts))
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def _where(root: Path, path: Path, node: ast.AST | int) -> str:
    line = node if isinstance(node, int) else getattr(node, "lineno", 1)
    return f"{path.relative_to(root).as_posix()}:{line}"


def lines(root: Path, package: str) -> int:
    """Return how many lines a package has."""
    return sum(path.read_text(encoding="utf-8").count("\n") for path in modules(root, package))


def code_lines(root: Path, package: str) -> int:
    """Return how many lines of a package are code: not blank, no comment, no docstring."""
    count = 0
    for path, tree in modules(root, package).items():
        silent = {
            line
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
        }
        source = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        count += sum(number not in silent and bool(re.match(r"\s*[^\s#]", line)) for number, line in source)
    return count


def longest(root: Path) -> tuple[int, str]:
    """Return the longest shipped file's length and path."""
    return max(
        (path.read_text(encoding="utf-8").count("\n"), path.relative_to(root).as_posix())
        for package in distributions(root)
        for path in modules(root, package)
    )


# -- circles ---------------------------------------------------------------------------------------------------------
def circles(root: Path) -> list[list[str]]:
    """Return the circles of modules in all distributions; imports in functions and for type checkers count too."""
    import grimp

    sources = [str(folder / "src") for folder in distributions(root).values()]
    sys.path[:0] = sources
    try:
        graph = grimp.build_graph(*distributions(root), exclude_type_checking_imports=False, cache_dir=None)
    finally:
        del sys.path[: len(sources)]
    return strongly_connected({module: graph.find_modules_directly_imported_by(module) for module in graph.modules})


def strongly_connected(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the sets of more than one node that all reach each other (Tarjan, without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []
    for start in sorted(graph):
        todo = [] if start in index else [(start, iter(sorted(graph[start])))]
        while todo:
            node, following = todo[-1]
            if node not in index:
                index[node] = low[node] = len(index)
                stack.append(node)
            for other in following:
                if other in graph and other not in index:
                    todo.append((other, iter(sorted(graph[other]))))
                    break
                if other in stack:
                    low[node] = min(low[node], index[other])
            else:
                todo.pop()
                if todo:
                    low[todo[-1][0]] = min(low[todo[-1][0]], low[node])
                if low[node] == index[node]:
                    at = stack.index(node)
                    if len(stack) - at > 1:
                        found.append(sorted(stack[at:]))
                    del stack[at:]
    return sorted(found)


# -- names -----------------------------------------------------------------------------------------------------------
def shared_class_names(root: Path) -> dict[str, list[str]]:
    """Return the names of public classes that several distributions define, with the places."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for package in distributions(root):
        for path, tree in modules(root, package).items():
            for node in tree.body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found[node.name].setdefault(package, _where(root, path, node))
    return {name: sorted(places.values()) for name, places in sorted(found.items()) if len(places) > 1}


def named_by_core(root: Path) -> dict[str, list[str]]:
    """Return the other distributions that core's source names, with the places; `pip install` hints do not count."""
    others = [package for package in distributions(root) if package != "interlingua"]
    pattern = re.compile(rf"\b({'|'.join(sorted(others, key=len, reverse=True)).replace('_', '[_-]')})\b")
    found: dict[str, list[str]] = defaultdict(list)
    for path in modules(root, "interlingua"):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if "pip install" not in line:
                for match in pattern.finditer(line):
                    found[match[0].replace("-", "_")].append(_where(root, path, number))
    return dict(sorted(found.items()))


COUNT_NAMES = """
import importlib, json, sys
for name in sys.argv[1:]:
    module = importlib.import_module(name)
    names = getattr(module, "__all__", None)
    if names is None:
        names = [key for key, value in vars(module).items() if getattr(value, "__module__", None) == name]
    print(json.dumps([name, len([key for key in names if not key.startswith("_")])]))
"""


def public_names(root: Path) -> dict[str, int]:
    """Return how many names each façade shows: core's public modules, and each distribution's package."""
    core = distributions(root)["interlingua"] / "src" / "interlingua"
    inside = sorted({path.stem for path in core.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()})
    names = [*distributions(root), *(f"interlingua.{name}" for name in inside if not name.startswith("_"))]
    sources = os.pathsep.join(str(folder / "src") for folder in distributions(root).values())
    command = [sys.executable, "-c", COUNT_NAMES, *sorted(names)]
    environment = {**os.environ, "PYTHONPATH": sources}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=True)
    return dict(json.loads(line) for line in done.stdout.splitlines())


# -- imports ---------------------------------------------------------------------------------------------------------
def undeclared_imports(root: Path) -> dict[str, list[str]]:
    """Return the imports that a distribution's requirements and extras do not cover, as `package -> module`."""
    providers = importlib.metadata.packages_distributions()
    own = {package: normal_name(_project(folder)["name"]) for package, folder in distributions(root).items()}
    found: dict[str, list[str]] = defaultdict(list)
    for package in distributions(root):
        declared, fixtures = _declared(root, package), _pytest_plugins(root, package)
        for path, tree in modules(root, package).items():
            covered = declared | {"pytest"} if path in fixtures else declared
            for node, top in _imports(tree):
                if top in _OF_CHECKERS and node in _type_checking(tree):
                    continue
                names = {own[top]} if top in own else {normal_name(one) for one in providers.get(top, [top])}
                if top != package and top not in sys.stdlib_module_names and not names & covered:
                    found[f"{package} -> {top}"].append(_where(root, path, node))
    return dict(sorted(found.items()))


_OF_CHECKERS = {"typing_extensions"}
"""Modules whose stubs every type checker brings; a program that runs does not import them."""


def _type_checking(tree: ast.Module) -> list[ast.stmt]:
    """Return the statements that only type checkers read."""
    found = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    return [statement for node in found for statement in node.body]


def _imports(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name.partition(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node, node.module.partition(".")[0]


def _project(folder: Path) -> dict[str, object]:
    project: dict[str, object] = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project


def _declared(root: Path, package: str) -> set[str]:
    project = _project(distributions(root)[package])
    extras: dict[str, list[str]] = project.get("optional-dependencies", {})  # type: ignore[assignment]
    required: list[str] = project.get("dependencies", [])  # type: ignore[assignment]
    return {normal_name(one) for one in [*required, *(one for extra in extras.values() for one in extra)]}


def _pytest_plugins(root: Path, package: str) -> set[Path]:
    """Return the modules that pytest alone imports, by entry points of `pytest11`: pytest is there when they run."""
    points: dict[str, dict[str, str]] = _project(distributions(root)[package]).get("entry-points", {})  # type: ignore[assignment]
    source = distributions(root)[package] / "src"
    return {source / f"{module.replace('.', '/')}.py" for module in points.get("pytest11", {}).values()}


def normal_name(requirement: object) -> str:
    """Return the normal form of a requirement's name."""
    return re.sub(r"[-_.]+", "-", re.split(r"[\s\[<>=!~;(@]", str(requirement).strip())[0]).lower()


# -- the lists and what they allow -----------------------------------------------------------------------------------
LISTS = {  # figure -> what is counted: the entries, with where each is found
    "circles": lambda root: {" ".join(circle): [] for circle in circles(root)},
    "shared_class_names": shared_class_names,
    "named_by_core": named_by_core,
    "undeclared_imports": undeclared_imports,
}


def allowed() -> dict[str, list[str]]:
    """Read the allowed entries, by figure."""
    tables: dict[str, list[str]] = tomllib.loads(ALLOW.read_text(encoding="utf-8"))
    return tables


def covers(figure: str, entry: str, found: str) -> bool:
    """Tell whether an allowed entry covers a found one; a circle covers smaller circles of its modules."""
    return set(found.split()) <= set(entry.split()) if figure == "circles" else found == entry


def unexpected(figure: str, found: Iterable[str], entries: Iterable[str]) -> list[str]:
    """Return the found entries that are not allowed."""
    return [one for one in found if not any(covers(figure, entry, one) for entry in entries)]


def needless(figure: str, found: Iterable[str], entries: Iterable[str]) -> list[str]:
    """Return the allowed entries that nothing needs any longer."""
    return [entry for entry in entries if not any(covers(figure, entry, one) for one in found)]


HEAD = """\
# The exceptions that tests/repo/test_house.py still allows. Each list may only shrink; an entry that nothing needs
# fails the test, and `python tests/tools/house.py --write-allow` drops it. The aim is four empty lists.
"""


def write_allow(lists: dict[str, dict[str, list[str]]], *, anew: bool) -> None:
    """Drop the entries that nothing needs any longer; `anew` allows everything found."""
    old = {} if anew else allowed()
    text = HEAD
    for figure, found in lists.items():
        kept = [one for one in found if anew or not unexpected(figure, [one], old.get(figure, []))]
        text += f"\n{figure} = [" + "".join(f'\n    "{one}",' for one in kept) + ("\n]\n" if kept else "]\n")
    ALLOW.write_text(text, encoding="utf-8")


# -- the command -----------------------------------------------------------------------------------------------------
def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description="Print the figures of the source tree.")
    parser.add_argument("root", nargs="?", type=Path, default=ROOT, help="another checkout")
    parser.add_argument("--list", action="store_true", help="print what was counted, too")
    parser.add_argument("--write-allow", choices=("shrink", "anew"), nargs="?", const="shrink", help="see above")
    given = parser.parse_args()
    root = given.root.resolve()
    lists = {figure: count(root) for figure, count in LISTS.items()}
    if given.write_allow:
        write_allow(lists, anew=given.write_allow == "anew")
        return
    commit = subprocess.run(["git", "log", "-1", "--format=%h"], cwd=root, capture_output=True, text=True, check=True)
    print(f"{root.name} at {commit.stdout.strip()}")
    every = distributions(root)
    size, where = longest(root)
    _print("core: lines", lines(root, "interlingua"))
    _print("core: lines of code", code_lines(root, "interlingua"))
    _print("all distributions: lines", sum(lines(root, package) for package in every))
    _print("longest file", size, where)
    for figure, found in lists.items():
        _print(figure.replace("_", " "), len(found))
        if given.list:
            for entry, places in found.items():
                print(f"    {entry}  {', '.join(places[:4])}")
    for name, count in public_names(root).items():
        _print(f"public names: {name}", count)
    tables = prose.counts(prose.hits(root))
    for folder, count in sorted(tables["prose"].items()):
        errors = tables["errors"][folder]
        _print(f"prose: {folder}", count, f"{errors} in error messages" if errors else "")
    _print("prose: all", tables["prose"].total(), f"{tables['errors'].total()} in error messages")


def _print(name: str, value: int, note: str = "") -> None:
    print(f"{name:44} {value:7,}  {note}".rstrip())


if __name__ == "__main__":
    main()
