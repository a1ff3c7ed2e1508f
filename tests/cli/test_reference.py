"""docs/reference/cli.md shows the help text of every command as it is.

`python -m tests.cli.test_reference` writes the texts; the prose between the blocks is written by hand and kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from interlingua_cli.root import cli
from tests.support import tree

PAGE = tree.ROOT / "docs" / "reference" / "cli.md"
GROUPS = ("bulk", "session", "transcript")  # they have pages of their own
COMMANDS = [name for name in cli.list_commands(click.Context(cli)) if name not in GROUPS]
BLOCK = re.compile(r"```text\n(Usage: interlingua.*?)```\n", re.DOTALL)


def help_text(*command: str) -> str:
    return CliRunner().invoke(cli, [*command, "--help"], prog_name="interlingua", terminal_width=100).output


def helps() -> list[str]:
    return [help_text(), *(help_text(name) for name in COMMANDS)]


def test_the_page_shows_every_help_text() -> None:
    shown = BLOCK.findall(PAGE.read_text(encoding="utf-8"))

    assert shown == helps(), "run python -m tests.cli.test_reference"


def test_each_command_has_its_heading() -> None:
    headings = re.findall(r"^## `(\S+)`$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

    assert headings == COMMANDS


def commands(group: click.Group, *above: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield each command below a group and the words that call it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is not None:
            yield (*above, name), command
            if isinstance(command, click.Group):
                yield from commands(command, *above, name)


ALL = dict(commands(cli))


@pytest.mark.parametrize("words", [words for words, command in ALL.items() if isinstance(command, click.Group)])
def test_the_commands_that_a_summary_lists_exist(words: tuple[str, ...]) -> None:
    """A group's summary may list its commands behind a colon: `Kept sessions: list, show, send.`"""
    _, _, listed = (ALL[words].help or "").partition("\n")[0].partition(": ")
    named = [each.split()[0].rstrip(".") for each in listed.split(", ") if each]
    assert [name for name in named if (*words, name) not in ALL] == []


@pytest.mark.parametrize("words", ALL)
def test_the_commands_that_a_help_text_names_exist(words: tuple[str, ...]) -> None:
    for named in re.findall(r"`(?:interlingua )?([a-z-]+(?: [a-z-]+)*)", help_text(*words).replace("\n", " ")):
        called = tuple(named.split())
        group = ALL.get(called[:1])
        if isinstance(group, click.Group) and len(called) > 1:
            assert called[:2] in ALL, named
        elif f"`interlingua {named}" in help_text(*words):
            assert group is not None, named


def write() -> None:
    """Put today's help texts into the page, a new section for a new command."""
    before = PAGE.read_text(encoding="utf-8") if PAGE.exists() else "# Command line\n"
    for name, text in zip([None, *COMMANDS], helps(), strict=True):
        block = f"```text\n{text}```\n"
        usage = re.escape(f"Usage: interlingua {name} " if name else "Usage: interlingua [")
        before, found = re.subn(rf"```text\n{usage}.*?```\n", lambda _, new=block: new, before, flags=re.DOTALL)
        if not found:
            before = _inserted(before, f"## `{name}`\n\n{block}" if name else block)
    PAGE.write_text(before, encoding="utf-8")


def _inserted(page: str, section: str) -> str:
    """Put a section before the first one that comes after it by name."""
    later = [
        match.start() for match in re.finditer(r"^## `\S+`$", page, re.MULTILINE) if match[0] > section[: len(match[0])]
    ]
    at = later[0] if section.startswith("#") and later else len(page)
    return f"{page[:at].rstrip()}\n\n{section}\n{page[at:]}".rstrip() + "\n"


if __name__ == "__main__":
    write()
