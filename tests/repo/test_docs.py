"""What the documents say is true: commands exist, Python blocks run, links lead somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from interlingua_cli.root import cli
from tests.support import tree
from tests.support.doc_services import documented_services
from tests.tools import demo_picture

SHELL = {"sh", "bash", "console", "shell"}
PAGES = tree.pages()
IDS = [path.relative_to(tree.ROOT).as_posix() for path in PAGES]


def _commands() -> Iterator[tuple[str, list[str]]]:
    for page in PAGES:
        for info, body, line in tree.fenced_blocks(page):
            if info[:1] and info[0] in SHELL:
                for command in body.splitlines():
                    words = command.removeprefix("$ ").split("#")[0].split()
                    if words:
                        yield f"{page.relative_to(tree.ROOT)}:{line}: {command}", words


def test_make_commands_are_targets() -> None:
    makefile = (tree.ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^(\w+):", makefile, re.MULTILINE))
    wrong = [where for where, words in _commands() if words[0] == "make" and words[1] not in targets]

    assert not wrong, "no such make target:\n" + "\n".join(wrong)


def test_interlingua_commands_exist() -> None:
    asked = {words[1]: where for where, words in _commands() if Path(words[0]).name == "interlingua" and len(words) > 1}
    wrong = [where for command, where in asked.items() if CliRunner().invoke(cli, [command, "--help"]).exit_code]

    assert not wrong, "no such command:\n" + "\n".join(wrong)


def test_the_readme_gives_the_two_commands() -> None:
    readme = [words for where, words in _commands() if where.startswith("README.md")]

    assert ["make", "demo"] in readme
    assert ["make", "test"] in readme


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_python_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of one page run in order and share their names; ```python no-run is only shown."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    blocks = [(body, line) for info, body, line in tree.fenced_blocks(page) if info == ["python"]]
    if not blocks:
        return
    with documented_services() as environ:
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        for body, line in blocks:
            exec(compile("\n" * (line - 1) + body, str(page), "exec"), names)  # noqa: S102 - our own documents


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_links_lead_somewhere(page: Path) -> None:
    text = tree.FENCE.sub("", page.read_text(encoding="utf-8"))
    targets = re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)", text)
    targets += re.findall(r"^\[[^\]]+\]: (?!https?:|mailto:)(\S+)", text, re.MULTILINE)
    dead = [target for target in targets if not (page.parent / target).exists()]

    assert not dead, f"{page.relative_to(tree.ROOT)} links to what is not there: {dead}"


def test_every_document_is_reachable_from_the_index() -> None:
    docs = tree.ROOT / "docs"
    linked = {docs / "README.md"}
    queue = [docs / "README.md"]
    while queue:
        page = queue.pop()
        for target in re.findall(r"\]\((?!https?:)([^)#\s]+)", page.read_text(encoding="utf-8")):
            found = (page.parent / target).resolve()
            if found.suffix == ".md" and found.is_file() and found not in linked:
                linked.add(found)
                queue.append(found)
    lost = [str(page.relative_to(tree.ROOT)) for page in PAGES if page.is_relative_to(docs) and page not in linked]

    assert not lost, f"no page reached from docs/README.md links to {lost}"


def test_decisions_have_a_number_each() -> None:
    pages = [path for path in PAGES if path.parent.name == "decisions" and path.name != "README.md"]
    numbers = [path.name[:3] for path in pages]

    assert [path.name for path in pages if numbers.count(path.name[:3]) > 1] == []
    assert [path.name for path in pages if not path.read_text().startswith(f"# {path.name[:3]} ")] == []


def test_the_picture_shows_what_the_demo_prints() -> None:
    drawn = demo_picture.PICTURE.read_text(encoding="utf-8")

    assert drawn == demo_picture.draw(), "run `python -m tests.tools.demo_picture`"
