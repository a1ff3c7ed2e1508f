"""docs/reference/cli.md shows the help text of every command as it is.

`python -m tests.cli.test_reference` writes the texts; the prose between the blocks is written by hand and kept.
"""

from __future__ import annotations

import re

import click
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
