"""The figures of the source tree that `tests/repo` keeps within bounds; `python -m tests.repo.figures` prints them.

`allow/figures.toml` holds what each figure was before the redesign of November 2026 (`before`) and the most it may be
now (`most`, absent where a figure is only printed). With `--list`, what was counted is printed below each figure.
"""

from __future__ import annotations

import ast
import functools
import importlib
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import attrs

from tests.support import tree
from tests.support.tree import ROOT

ALLOW = ROOT / "tests" / "repo" / "allow" / "figures.toml"
SHORT = 60  # lines; a module as short as this needs more than one public name
CORE = ROOT / "core"
HERE = Path(__file__)

# Words of the first build that say nothing to a reader from outside.
RETIRED = re.compile(r"\bcomes? in\b|\bthis room\b|\brooms?\b|\bhears? of it\b|\bis told of\b|\bat a look\b")
# Papers that the project was built from and does not ship: docs/reference/format.md and WIRE.md say it instead.
PAPERS = re.compile(r"\bseed 00\d|\bDESIGN\b|\bsheets? (?:[a-z]+ )?§|\bsheet [A-Z]{2,}|\bREGRESSIONS\b")


@attrs.frozen
class Figure:
    """One figure: its value, and where each piece of it was found (empty for plain counts)."""

    name: str
    value: int
    found: tuple[str, ...] = ()


@attrs.frozen
class Bound:
    """What a figure was before the redesign, and the most it may be (None: it is only printed)."""

    before: int | None
    most: int | None


def bounds() -> dict[str, Bound]:
    """Read the bounds, by figure."""
    rows = tomllib.loads(ALLOW.read_text(encoding="utf-8"))
    return {name: Bound(row.get("before"), row.get("most")) for name, row in rows.items()}


# -- size ------------------------------------------------------------------------------------------------------------
@functools.cache
def sources() -> list[Path]:
    """Return every Python file that a distribution ships, templates aside."""
    return [
        path
        for folder in tree.DISTRIBUTIONS
        for path in sorted((folder / "src").rglob("*.py"))
        if "template" not in path.parts
    ]


@functools.cache
def text_of(path: Path) -> str:
    """Return a file's text, read once."""
    return path.read_text(encoding="utf-8")


def lines_of(path: Path) -> int:
    """Return how many lines a file has."""
    return text_of(path).count("\n")


def function_lengths() -> Iterator[tuple[int, str]]:
    """Yield how many lines each function of the shipped modules has, and where it stands."""
    for module in tree.shipped():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
                yield node.end_lineno - node.lineno + 1, f"{module.where}:{node.lineno} {node.name}"


def lone_modules() -> list[str]:
    """Return the shipped modules of at most 60 lines with one public function or class, or none."""
    return [
        _where(path)
        for path in sources()
        if path.name != "__init__.py" and lines_of(path) <= SHORT and len(_public(path)) <= 1
    ]


def _public(path: Path) -> list[str]:
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    body = ast.parse(text_of(path)).body
    return [node.name for node in body if isinstance(node, definitions) and not node.name.startswith("_")]


def _where(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


# -- imports ---------------------------------------------------------------------------------------------------------
PUBLIC = {"", "types", "errors", "plugins", "codec", "output", "transport", "fallback", "limits", "testing"}


def inner_imports() -> list[str]:
    """Return what sessions and agents import of core past its public packages, `__main__` and tests aside."""
    found = []
    for module in tree.shipped():
        if module.name.partition(".")[0] not in {"interlingua_sessions", "interlingua_agents"}:
            continue
        for node in ast.walk(module.tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [str(node.module)] if isinstance(node, ast.ImportFrom) and not node.level else []
            for name in names:
                top, _, rest = name.partition(".")
                if top == "interlingua" and rest not in PUBLIC:
                    found.append(f"{module.where}:{node.lineno}: {name}")
    return found


def exported_names() -> list[str]:
    """Return `interlingua.__all__`."""
    return list(importlib.import_module("interlingua").__all__)


# -- words and references --------------------------------------------------------------------------------------------
def documents() -> list[Path]:
    """Return the Markdown pages that git tracks or would track."""
    return [path for path in tree.tracked() if path.suffix == ".md"]


def test_files() -> list[Path]:
    """Return the Python files under `tests/`, this one aside: it holds the patterns."""
    return [path for path in tree.tracked() if path.suffix == ".py" and "tests" in path.parts and path != HERE]


def shipped_texts() -> list[Path]:
    """Return all text that the distributions ship: modules, templates, data."""
    kinds = {".py", ".toml", ".jinja", ".j2", ".md"}
    return [path for path in tree.tracked() if "src" in path.relative_to(ROOT).parts and path.suffix in kinds]


def matches(pattern: re.Pattern[str], paths: Iterable[Path]) -> list[str]:
    """Return where a pattern is found."""
    return [
        f"{_where(path)}:{number}: {match[0]}"
        for path in paths
        for number, line in enumerate(text_of(path).splitlines(), 1)
        for match in pattern.finditer(line)
    ]


FORMAT = ROOT / "docs" / "reference" / "format.md"
PLUGIN_DOCS = ROOT / "docs" / "plugins"
_REFERENCE = re.compile(r"(?P<page>[\w./-]*\b(?:format|WIRE)\.md)`?,\s*(?:#\s*)?(?P<section>[A-Z][\w '/-]*)")
_RULES = re.compile(r"Rules? (\d+(?:(?:, | and | or | to |-)\d+)*)")
_LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```\s*$", re.MULTILINE | re.DOTALL)


@functools.cache
def headings(page: Path) -> list[str]:
    """Return a page's headings, without marks."""
    text = _FENCE.sub("", text_of(page)) if page.is_file() else ""
    return [re.sub(r"[`*]", "", title).strip() for title in re.findall(r"^#+ (.+)$", text, re.MULTILINE)]


def anchors(page: Path) -> set[str]:
    """Return the anchors that a page's headings make."""
    made: set[str] = set()
    for title in headings(page):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).lower()
        anchor = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        made.add(anchor if anchor not in made else f"{anchor}-1")
    return made


def unresolved_references() -> list[str]:
    """Return each `format.md, Rule N`, `format.md, Section` and `WIRE.md, Section` that leads nowhere."""
    return [
        f"{_where(path)}:{text_of(path).count(chr(10), 0, match.start()) + 1}: {match[0]}"
        for path in [*shipped_texts(), *test_files(), *documents()]
        for match in _REFERENCE.finditer(text_of(path))
        if not any(_holds(page, match["section"]) for page in _pages(path, match["page"]))
    ]


def _holds(page: Path, section: str) -> bool:
    """Tell whether a page has that rule or a section whose title begins so."""
    if not page.is_file():
        return False
    if rules := _RULES.match(section):
        known = set(re.findall(r"^[#|*\- ]*(?:Rule )?(\d+)\b", text_of(page), re.MULTILINE))
        return set(re.findall(r"\d+", rules[1])) <= known
    said = section.strip(" '").lower()
    return any(title.lower().startswith(said) or said.startswith(f"{title.lower()} ") for title in headings(page))


def _pages(path: Path, name: str) -> list[Path]:
    """Return the pages that can be meant: the path given, a plugin's own, or any plugin's from outside all plugins.

    What is below docs/plugins means the example's page.
    """
    if name.endswith("format.md"):
        return [FORMAT]
    if "/" in name:
        return [ROOT / name, ROOT / "plugins" / name, (path.parent / name).resolve()]
    if path.is_relative_to(PLUGIN_DOCS):
        return [PLUGIN_DOCS / "example" / "WIRE.md"]
    parts = {part.replace("-", "_") for part in path.relative_to(ROOT).parts}
    pages = [folder / "WIRE.md" for folder in tree.DISTRIBUTIONS if (folder / "WIRE.md").is_file()]
    return [page for page in pages if page.parent.name.replace("-", "_") in parts] or pages


def dead_links() -> list[str]:
    """Return the links of the documents that lead to no file or no heading."""
    dead = []
    for page in documents():
        for target in _LINK.findall(_FENCE.sub("", text_of(page))):
            name, _, anchor = target.partition("#")
            other = (page.parent / name).resolve() if name else page
            if not other.exists() or (anchor and other.suffix == ".md" and anchor not in anchors(other)):
                dead.append(f"{_where(page)}: {target}")
    return dead


# -- all of them -----------------------------------------------------------------------------------------------------
def _listed(count: Callable[[], list[str]]) -> Callable[[], tuple[int, tuple[str, ...]]]:
    return lambda: (len(found := count()), tuple(found))


def _counted(count: Callable[[], int]) -> Callable[[], tuple[int, tuple[str, ...]]]:
    return lambda: (count(), ())


def _core() -> list[Path]:
    return [path for path in sources() if path.is_relative_to(CORE)]


FIGURES: dict[str, Callable[[], tuple[int, tuple[str, ...]]]] = {
    "files": _counted(lambda: len(sources())),
    "lines": _counted(lambda: sum(map(lines_of, sources()))),
    "core: files": _counted(lambda: len(_core())),
    "core: lines": _counted(lambda: sum(map(lines_of, _core()))),
    "longest file": _counted(lambda: max(map(lines_of, sources()))),
    "lone modules (<= 60 lines, one public name or none)": _listed(lone_modules),
    "names of `interlingua.__all__`": _counted(lambda: len(exported_names())),
    "imports of core's inner modules by sessions and agents": _listed(inner_imports),
    "references to papers outside the repository (source)": _listed(lambda: matches(PAPERS, shipped_texts())),
    "references to papers outside the repository (docs)": _listed(lambda: matches(PAPERS, documents())),
    "references to papers outside the repository (tests)": _listed(lambda: matches(PAPERS, test_files())),
    "retired words (source)": _listed(lambda: matches(RETIRED, shipped_texts())),
    "retired words (docs)": _listed(lambda: matches(RETIRED, documents())),
    "retired words (tests)": _listed(lambda: matches(RETIRED, test_files())),
    "references to sections and rules that lead nowhere": _listed(unresolved_references),
    "links that lead nowhere": _listed(dead_links),
}


def figure(name: str) -> Figure:
    """Work out one figure."""
    return Figure(name, *FIGURES[name]())


def main() -> None:
    """Print every figure beside what it was and what it may be."""
    allowed = bounds()
    print(f"{'':62} {'before':>7} {'now':>7} {'most':>7}")
    for name in FIGURES:
        one, bound = figure(name), allowed[name]
        before, most = ("" if value is None else value for value in (bound.before, bound.most))
        print(f"{name:62} {before:>7} {one.value:>7} {most:>7}")
        if "--list" in sys.argv:
            print("".join(f"    {place}\n" for place in one.found), end="")


if __name__ == "__main__":
    main()
