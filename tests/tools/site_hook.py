"""What MkDocs is told beyond .mkdocs.yml: the navigation, the API reference, and other files that documents link to.

The documents link to each other as they lie in the repository. Links to documents outside docs/ and to code lead to a
copy on the site, below repository/: a document as it is, code as a page that shows it.
"""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from textwrap import indent
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SECTIONS = ["how-to", "examples", "agents", "sessions", "plugins", "reference", "explanation"]
PACKAGES = [
    "interlingua",
    "interlingua.types",
    "interlingua.errors",
    "interlingua.output",
    "interlingua.codec",
    "interlingua.transport",
    "interlingua.testing",
    "interlingua.plugins",
    "interlingua_output",
    "interlingua_serving",
    "interlingua_agents",
    "interlingua_sessions",
    "interlingua_transcripts",
    "interlingua_bulk",
    "interlingua_gateway",
    "interlingua_otel",
    "interlingua_pycurl",
    "interlingua_uploads",
    "interlingua_decisions",
    "interlingua_contract",
]
FENCE = re.compile(r"^(```.*?^```\s*?$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(\]\()(?!\w+:|#)([^)#\s]+)")
INFO = re.compile(r"^(```\w+) .*$", re.MULTILINE)  # words for the tests behind a block's language: no-run, file=…
PLACED = {".md", ".html", ".svg", ".css"}  # what MkDocs itself takes from docs/
COPIES = "repository"
TABS = re.compile(r"<!-- tabs -->\n(.*?)<!-- /tabs -->", re.DOTALL)
TAB = re.compile(r"^\*\*(.+?)\*\*\n\n(```.*?^```)$", re.MULTILINE | re.DOTALL)
API_HEADING = "## Python API\n"


def links_of(page: Path) -> list[str]:
    """Return the targets of a document's links to files, in order."""
    return [target for _, target in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8")))]


def source_of(page: str) -> Path:
    """Return the file that a page of the site is made of."""
    below = page.removeprefix(f"{COPIES}/")
    if below == page:
        return DOCS / page
    names = (below, f".{below}", below.removesuffix(".md"))
    return next(path for path in map(ROOT.joinpath, names) if path.exists())


def place_of(target: Path) -> str:
    """Return where a file of the repository stands on the site."""
    if target.is_relative_to(DOCS) and target.suffix in PLACED:
        return target.relative_to(DOCS).as_posix()
    name = target.relative_to(ROOT).as_posix().removeprefix(".")  # MkDocs leaves out folders that begin with a dot
    return f"{COPIES}/{name}" + ("" if target.suffix == ".md" else ".md")


def title_of(page: Path) -> str:
    """Return the heading a document begins with."""
    return page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ").replace("`", "")


def entries(folder: Path) -> list[Any]:
    """Return a folder's pages for the navigation: its README first, then the others as the README links to them."""
    found: list[Any] = [place_of(folder / "README.md")]
    for target in dict.fromkeys(links_of(folder / "README.md")):
        page = (folder / target).resolve()
        if not page.is_relative_to(folder) or page.suffix not in (".md", ".py") or place_of(page) in found:
            continue
        if page.suffix == ".py":
            found.append({page.name: place_of(page)})
        elif page.name == "README.md":
            found.append({title_of(page): entries(page.parent)})
        else:
            found.append(place_of(page))
    return found


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Make the navigation of the folders."""
    config.nav = ["README.md"]
    for name in SECTIONS:
        pages = entries(DOCS / name)
        if name == "reference":
            pages.append({"Python API": [{package: f"reference/api/{package}.md"} for package in PACKAGES]})
        config.nav.append({title_of(DOCS / name / "README.md"): pages})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the API reference and the other files that documents link to, and those that these link to."""
    at: dict[str, str] = {}  # what is described, each at one place: `interlingua` repeats names of its subpackages
    for package in sorted(PACKAGES, key=lambda name: name == "interlingua"):
        files.append(File.generated(config, f"reference/api/{package}.md", content=api_page(package, at)))
    waiting = sorted(DOCS.rglob("*.md"))
    while waiting:
        page = waiting.pop()
        for target in links_of(page):
            file = (page.parent / target).resolve()
            if files.get_file_from_path(place_of(file)) is not None:
                continue
            if file.suffix == ".md":
                waiting.append(file)
            files.append(File.generated(config, place_of(file), content=shown(file)))
    return files


def shown(file: Path) -> str:
    """Return a file as a page: a document as it is, code in a block, a folder as a list."""
    name = file.relative_to(ROOT).as_posix()
    if file.is_dir():
        return f"# {name}\n\n" + "".join(f"- `{path.name}`\n" for path in sorted(file.glob("[a-z]*")))
    text = file.read_text(encoding="utf-8")
    kind = {".py": "python", ".toml": "toml", ".json": "json"}.get(file.suffix, "text")
    return text if file.suffix == ".md" else f"# {name}\n\n````{kind}\n{text}````\n"


def api_page(package: str, at: dict[str, str]) -> str:
    """Return the page of a package's public classes and functions, from their docstrings; `at` is filled with them."""
    module = importlib.import_module(package)
    page = f"# {package}\n\n{inspect.getdoc(module) or ''}\n\n"
    own, elsewhere, others = [], [], []
    listed = getattr(module, "__all__", None) or [n for n, v in vars(module).items() if inspect.getmodule(v) is module]
    for name in sorted(set(listed)):
        value = getattr(module, name)
        if name.startswith("_") or inspect.ismodule(value):
            continue
        path = f"{value.__module__}.{value.__qualname__}" if inspect.isclass(value) or inspect.isfunction(value) else ""
        if not path:
            others.append(f"`{name}`")
        elif at.setdefault(path, package) == package:
            own.append(f"::: {path}\n\n")
        else:
            elsewhere.append(f"[`{name}`][{path}]")
    if elsewhere:
        page += f"Also here, described on their own pages: {', '.join(elsewhere)}.\n\n"
    if others:
        page += f"Constants and type aliases: {', '.join(others)}.\n\n"
    return page + "".join(own)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to files of the repository to their places on the site."""
    if page.file.src_uri.startswith("reference/api/"):
        return markdown
    source, up = source_of(page.file.src_uri), "../" * page.file.src_uri.count("/")

    def lead(link: re.Match[str]) -> str:
        return link[1] + up + place_of((source.parent / link[2]).resolve())

    parts = FENCE.split(markdown)
    text = "".join(INFO.sub(r"\1", part) if part.startswith("```") else LINK.sub(lead, part) for part in parts)
    if page.file.src_uri == "reference/README.md":
        links = "".join(f"- [{package}](api/{package}.md)\n" for package in PACKAGES)
        text = text.replace(API_HEADING, f"{API_HEADING}\n{links}", 1)
    return TABS.sub(lambda found: TAB.sub(_tab, found[1]), text)


def _tab(found: re.Match[str]) -> str:
    """Return a labelled block as a tab; on the forge it is a label above a block."""
    return f'=== "{found[1]}"\n\n' + indent(found[2], "    ")
