"""What is printed fits the terminal it is printed on: narrow ones cut nothing off, poor encodings stop nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from rich.console import Console

from interlingua_cli import output as show
from tests.support.tree import ROOT

COLUMNS = ("key", "api key", "variables", "from")
ROWS = [
    ("acme-cloud", "missing", "ACME_CLOUD_API_KEY ACME_CLOUD_BASE_URL", "some-distribution 1.0"),
    ("b", None, "", 9),
]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Any:
    def of(width: int) -> None:
        monkeypatch.setattr(show, "make_console", lambda *, err=False: Console(file=sys.stdout, width=width))

    return of


@pytest.mark.parametrize("width", [30, 46, 60, 80, 200])
def test_no_width_cuts_a_word(terminal: Any, capsys: pytest.CaptureFixture[str], width: int) -> None:
    terminal(width)
    show.print_table(COLUMNS, ROWS)
    shown = capsys.readouterr().out

    words = {word for row in (COLUMNS, *ROWS) for cell in row if cell is not None for word in str(cell).split()}
    assert words <= set(shown.split())
    assert "…" not in shown
    if width >= 80:  # below, it is no table: the terminal wraps its long lines
        assert max(map(len, shown.splitlines())) <= width


def test_spare_columns_go_first_the_last_one_before(terminal: Any, capsys: pytest.CaptureFixture[str]) -> None:
    terminal(60)
    show.print_table(COLUMNS, ROWS, spare=("from", "api key"))
    shown = capsys.readouterr().out

    assert "some-distribution" in shown
    assert "missing" not in shown
    assert "ACME_CLOUD_BASE_URL" in shown


def test_a_wide_table_is_one_line_a_row(terminal: Any, capsys: pytest.CaptureFixture[str]) -> None:
    terminal(200)
    show.print_table(COLUMNS, ROWS, spare=("from",))

    assert "acme-cloud   missing   ACME_CLOUD_API_KEY ACME_CLOUD_BASE_URL   some-distribution 1.0" in (
        capsys.readouterr().out
    )


def _demo(encoding: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", "from interlingua_cli import main; main()", "demo", *arguments],
        cwd=ROOT, env={"PYTHONIOENCODING": encoding, "INTERLINGUA_CONFIG": "/dev/null"},
        capture_output=True, check=False, timeout=120,
    )  # fmt: skip


def test_a_terminal_that_cannot_write_a_character_gets_its_escape() -> None:
    done = _demo("ascii")

    assert done.returncode == 0, done.stderr
    assert b"turn 1 \\xb7 " in done.stdout


def test_what_the_demo_says_itself_is_not_warned_of() -> None:
    done = _demo("utf-8")

    assert done.stderr == b""
    assert b"runs on this machine and has no price" in done.stdout


def test_json_stays_json_in_a_poor_encoding() -> None:
    done = _demo("ascii", "--json")

    def said(text: bytes) -> list[Any]:
        return [step["message"]["content"] for step in json.loads(text)["steps"] if step["type"] == "turn"]

    assert said(done.stdout) == said(_demo("utf-8", "--json").stdout)
