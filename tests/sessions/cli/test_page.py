"""docs/sessions/commands.md shows the help text of every session command as it is.

`python -m tests.sessions.cli.test_page` writes the page anew.
"""

from __future__ import annotations

from click.testing import CliRunner

from interlingua_cli.root import cli
from interlingua_sessions.commands import _COMMANDS
from tests.support import tree

PAGE = tree.ROOT / "docs" / "sessions" / "commands.md"
LEAD = """# Session commands

`interlingua session …`, with `interlingua-sessions` and `interlingua[cli]` installed; `interlingua chat --session` is
in the [command line reference](../reference/cli.md). A test keeps this page equal to the program's help.
"""


def page() -> str:
    parts = [LEAD]
    for name in (None, *sorted(_COMMANDS)):
        words = ["session", *([name] if name else []), "--help"]
        text = CliRunner().invoke(cli, words, prog_name="interlingua", terminal_width=100).output
        parts.append((f"\n## `{name}`\n" if name else "") + f"\n```text\n{text}```\n")
    return "".join(parts)


def test_the_page_shows_every_help_text() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tests.sessions.cli.test_page"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
