"""The project's own files as the repo tests see them: what is tracked, what is shipped, and the parsed source."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import attrs

ROOT = Path(__file__).resolve().parents[2]
DISTRIBUTIONS = [ROOT / "core", *sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))]
FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```\s*$", re.MULTILINE | re.DOTALL)


@functools.cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


@attrs.frozen
class Module:
    """One shipped Python file."""

    path: Path
    name: str

    @property
    def where(self) -> str:
        """Return its path from the root, for messages."""
        return self.path.relative_to(ROOT).as_posix()

    @property
    def lines(self) -> int:
        """Return how many lines it has."""
        return len(self.path.read_text(encoding="utf-8").splitlines())

    @property
    def tree(self) -> ast.Module:
        """Return its syntax tree."""
        return _parsed(self.path)


@functools.cache
def shipped() -> list[Module]:
    """Return every Python file that a distribution ships, in path order; `__main__` files are scripts and left out."""
    return [
        Module(path, ".".join(path.relative_to(folder / "src").with_suffix("").parts).removesuffix(".__init__"))
        for folder in DISTRIBUTIONS
        for path in sorted((folder / "src").rglob("*.py"))
        if path.stem != "__main__"
    ]


def packages() -> Iterator[tuple[Path, str]]:
    """Yield each distribution's folder and the top package it ships."""
    for folder in DISTRIBUTIONS:
        for package in sorted((folder / "src").iterdir()):
            if package.is_dir() and not package.name.endswith((".egg-info", "__pycache__")):
                yield folder, package.name


@functools.cache
def tracked() -> list[Path]:
    """Return the files git tracks or would track: what a commit of everything would publish."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return [path for name in sorted(set(listing.split("\0"))) if name and (path := ROOT / name).is_file()]


def pyproject() -> dict[str, object]:
    """Return the workspace's own pyproject."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def pages() -> list[Path]:
    """Return the Markdown files under version control."""
    return [path for path in tracked() if path.suffix == ".md"]


def fenced_blocks(page: Path) -> Iterator[tuple[list[str], str, int]]:
    """Yield each fenced block of a page: the words after the fence, the body, and the body's line number."""
    text = page.read_text(encoding="utf-8")
    for fence in FENCE.finditer(text):
        yield fence["info"].split(), fence["body"], text.count("\n", 0, fence.start()) + 2
