"""Tables and answers fit the terminal: no name of a table is broken, and no word of an answer."""

from __future__ import annotations

import re
import sys

import pytest

from interlingua.types import Loss
from interlingua_cli.output import WordWrap, cell_len, print_ledger, print_table
from tests.cli.conftest import Run
from tests.support.terminal import at_terminal

ANSI = re.compile(r"\x1b\[[0-9;]*m")
NAMES = ("AZURE_OPENAI_API_KEY", "ANTHROPIC_FOUNDRY_BASE_URL", "AWS_SHARED_CREDENTIALS_FILE", "OPENROUTER_API_KEY")
TEXT = "The quick brown fox jumps over a lazy dog named Bartholomew.\n\nA second paragraph: ordinary words again.\n"


def test_providers_fit_80_columns_in_a_pipe(run: Run) -> None:
    shown = run("providers").stdout
    assert max(map(len, shown.splitlines())) <= 80
    assert all(name in shown for name in NAMES)


def test_providers_fit_80_columns_at_a_terminal(home: object) -> None:
    shown, code = at_terminal([], "providers", environ={"COLUMNS": "80"})
    text = ANSI.sub("", shown.decode())
    assert code == 0
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80
    assert all(name in text for name in NAMES)


def test_long_names_of_models_stand_above_their_rows(home: object) -> None:
    shown, code = at_terminal([], "models", "bedrock", environ={"COLUMNS": "80"})
    lines = [line.rstrip() for line in ANSI.sub("", shown.decode()).splitlines()]
    at = lines.index("bedrock:global.anthropic.claude-haiku-4-5-20251001-v1:0")
    short = next(line for line in lines if line.startswith("bedrock:anthropic.claude-opus-5 "))

    assert code == 0
    assert max(map(len, lines)) <= 80
    assert lines[at + 1].split() == ["200,000", "64,000", "1", "5"]
    assert lines[at + 1].index("64,000") == short.index("128,000")


def test_a_narrow_terminal_has_a_block_for_each_row(home: object) -> None:
    shown, code = at_terminal([], "models", "bedrock", environ={"COLUMNS": "40"})

    assert code == 0
    assert "model    bedrock:anthropic.claude-opus-5" in ANSI.sub("", shown.decode())


REASON = "the model accepts no documents; send the text of the document instead, or choose a model that takes it"


@pytest.mark.parametrize("columns", [40, 60, 72, 80, 100, 200])
def test_a_ledger_is_broken_between_words_and_loses_none(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    written: list[str] = []
    monkeypatch.setattr("interlingua_cli.output.make_console", lambda **_: _Terminal(columns))
    monkeypatch.setattr("interlingua_cli.output.click.echo", lambda text="", **_: written.append(text))
    loss = Loss(path="messages[0].content[1].source", block_type="opaque", verdict="dropped", reason=REASON)
    print_ledger([loss])

    assert max(map(len, written)) <= columns
    words = " ".join(written).split()
    assert [word for word in words if word in REASON.split()] == REASON.split()


class _Terminal:
    """A terminal of a width."""

    is_terminal = True
    file = sys.stdout

    def __init__(self, width: int) -> None:
        self.width = width


def _screen(written: str) -> list[str]:
    """Return the rows that a terminal shows."""
    rows, column = [""], 0
    for letter in written:
        if letter == "\n":
            rows.append("")
            column = 0
        elif letter == "\b":
            column -= 1
        else:
            row = rows[-1].ljust(column)
            rows[-1] = row[:column] + letter + row[column + 1 :]
            column += 1
    return [row.rstrip() for row in rows]


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
@pytest.mark.parametrize("width", [20, 30, 80])
def test_words_stay_whole_in_any_pieces(size: int, width: int) -> None:
    wrap = WordWrap(lambda: width)
    rows = _screen("".join(wrap.feed(TEXT[at : at + size]) for at in range(0, len(TEXT), size)))
    assert max(map(len, rows)) < width
    assert " ".join(rows).split() == TEXT.split()


def test_code_keeps_its_lines() -> None:
    code = "Run this:\n\n```sh\n" + "echo a very long line of code that is wider than the screen\n" + "```\n"
    wrap = WordWrap(lambda: 20)
    assert "".join(map(wrap.feed, code)) == code
    assert wrap.feed("    indented code that is wider than the screen\n").count("\n") == 1
    assert wrap.feed("plain words that are wider than the screen\n").count("\n") > 1


def test_columns_of_wide_characters_stand_below_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Chinese character takes two columns."""
    monkeypatch.setattr("interlingua_cli.output.make_console", lambda **_: _Terminal(40))
    written: list[str] = []
    monkeypatch.setattr("interlingua_cli.output.click.echo", lambda text="", **_: written.append(text))
    print_table(("title", "model"), [("天気はどうですか", "a:b"), ("weather", "c:d"), ("你好 世界 " * 5, "e:f")])

    at = {line[line.index(":") - 1 :]: cell_len(line[: line.index(":")]) for line in written if ":" in line}
    assert len(at) == 3
    assert len(set(at.values())) == 1
    assert max(map(cell_len, written)) <= 40
    assert "".join(written).count("你好") == 5
