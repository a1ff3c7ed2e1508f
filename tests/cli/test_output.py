"""What is printed: tables that fit the terminal, an answer's lines, control characters, and errors with what to do."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from interlingua.errors import (
    AuthenticationError,
    BadRequestError,
    CallerError,
    ContextWindowExceededError,
    InterlinguaError,
    MalformedResponseError,
    ModelNotFoundError,
    OverloadedError,
    RateLimitError,
    StreamInterruptedError,
)
from interlingua.types import StreamEvent, TextDelta, ThinkingDelta, assistant
from interlingua_cli import output as show
from interlingua_cli.context import CommandContext
from interlingua_cli.output import advise, print_stream
from interlingua_cli.root import print_warnings
from interlingua_cli.streams import escape_controls
from tests.cli.conftest import Run
from tests.cli.local import LocalServer
from tests.support.tree import ROOT

COLUMNS = ("key", "api key", "variables", "from")


ROWS = [
    ("acme-cloud", "missing", "ACME_CLOUD_API_KEY ACME_CLOUD_BASE_URL", "some-distribution 1.0"),
    ("b", None, "", 9),
]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Any:
    def of(width: int) -> None:
        monkeypatch.setattr(
            show,
            "make_console",
            lambda *, err=False: Console(file=sys.stdout, width=width, force_terminal=True, color_system=None),
        )

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

    assert "acme-cloud  missing  ACME_CLOUD_API_KEY ACME_CLOUD_BASE_URL  some-distribution 1.0" in (
        capsys.readouterr().out
    )


def test_a_piped_table_is_as_wide_as_its_content(capsys: pytest.CaptureFixture[str]) -> None:
    long = "word " * 60
    show.print_table(("a", "b", "c"), [("x", 1000, None), ("long", "two\nlines", long), ("", "z", None)])

    assert capsys.readouterr().out.splitlines() == [
        "a     b      c",
        "x     1,000",
        f"long  two    {long}".rstrip(),
        "      lines",
        "      z",
    ]


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
    done = _demo("utf-8", "--recorded")

    assert done.stderr == b""
    assert b"runs on this machine and has no price" in done.stdout


def test_json_stays_json_in_a_poor_encoding() -> None:
    done = _demo("ascii", "--json")

    def said(text: bytes) -> list[Any]:
        return [step["message"]["content"] for step in json.loads(text)["steps"] if step["type"] == "turn"]

    assert said(done.stdout) == said(_demo("utf-8", "--json").stdout)


class Screen(io.StringIO):
    """A file that notes what is written on `shown`, too, as two files share a terminal."""

    def __init__(self, shown: list[str], *, terminal: bool = True) -> None:
        super().__init__()
        self._shown = shown
        self._terminal = terminal

    def write(self, text: str) -> int:
        count = super().write(text)  # first: click tries with bytes
        self._shown.append(text)
        return count

    def isatty(self) -> bool:
        return self._terminal


def answer() -> Iterator[StreamEvent]:
    yield ThinkingDelta(text="hm", index=0)
    yield TextDelta(text="one ", index=1)
    yield TextDelta(text="two", index=1)
    logging.getLogger("interlingua").warning("the catalogue does not know x:y")


def test_a_warning_does_not_share_the_answers_line(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr(sys, "stdout", Screen(shown))
    monkeypatch.setattr(sys, "stderr", Screen(shown))
    with print_warnings(CommandContext()):
        print_stream(answer())

    lines = "".join(shown).replace("\x1b[2m", "").replace("\x1b[0m", "").splitlines()
    assert lines == ["hm", "one two", "warning: the catalogue does not know x:y"]


def test_piped_text_is_only_what_the_model_said(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe, screen = Screen([], terminal=False), Screen([])
    monkeypatch.setattr(sys, "stdout", pipe)
    monkeypatch.setattr(sys, "stderr", screen)

    def talk() -> Iterator[StreamEvent]:
        yield from answer()
        yield TextDelta(text=" three", index=1)

    with print_warnings(CommandContext()):
        print_stream(talk())

    assert pipe.getvalue() == "one two three\n"


PROGRAM = str(Path(sys.executable).with_name("interlingua"))


def closing(number: int) -> Callable[[], None]:
    return lambda: os.close(number)


@pytest.mark.parametrize("command", [["corpus", "-"], ["doctor", "-"], ["explain", "-", "--to", "here:echo"]])
def test_nothing_is_read_from_a_closed_standard_input(home: Path, command: list[str]) -> None:
    closed = subprocess.run([PROGRAM, *command], preexec_fn=closing(0), capture_output=True, check=False)
    empty = subprocess.run([PROGRAM, *command], stdin=subprocess.DEVNULL, capture_output=True, check=False)

    assert (closed.returncode, closed.stdout, closed.stderr) == (empty.returncode, empty.stdout, empty.stderr)


def test_a_closed_standard_output_is_said(server: LocalServer) -> None:
    done = subprocess.run(
        [PROGRAM, "send", "here:echo", "hi"], preexec_fn=closing(1), stderr=subprocess.PIPE, check=False
    )

    assert done.returncode == 1
    assert done.stderr.startswith(b"error: standard output is closed")
    assert server.requests == []  # nobody pays for an answer that cannot be had


def test_a_closed_standard_error_stops_nothing(server: LocalServer) -> None:
    done = subprocess.run(
        [PROGRAM, "send", "here:echo", "hi"], preexec_fn=closing(2), stdout=subprocess.PIPE, check=False
    )

    assert (done.returncode, done.stdout) == (0, b"Hello\n")


@pytest.mark.parametrize("command", [("send", "here:echo"), ("session", "send", "moon", "-m", "e")])
def test_what_is_no_text_is_not_sent(run: Run, server: LocalServer, command: tuple[str, ...]) -> None:
    piped = run(*command, input=b"\xff\xfe bad")
    typed = run(*command, os.fsdecode(b"\xff typed"))

    assert (piped.exit_code, typed.exit_code) == (2, 2)
    assert "not UTF-8" in piped.stderr
    assert "not text in this terminal's encoding" in typed.stderr
    assert server.requests == []


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_control_characters_instead_of_obeying_them() -> None:
    said = "\x1b]52;c;ZXZpbA==\x07one\n\ttwo \x9b2Jthree"

    assert escape_controls(said, Terminal()) == "\\x1b]52;c;ZXZpbA==\\x07one\n\ttwo \\x9b2Jthree"
    assert escape_controls(said, io.StringIO()) == said  # a pipe gets what the model said


def failed(kind: type[InterlinguaError], status: int | None, **facts: object) -> InterlinguaError:
    return kind("no", provider="acme", model="m", status=status, **facts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (failed(ModelNotFoundError, 404), "interlingua models acme --live"),
        (failed(ContextWindowExceededError, 400), "interlingua models acme"),
        (failed(RateLimitError, 429, retry_after=7.5), "in 7.5 s"),
        (failed(RateLimitError, 429), "in a while"),
        (failed(OverloadedError, 529), "later"),
        (failed(MalformedResponseError, 200), "the URL"),
        (failed(StreamInterruptedError, None), "the URL"),
        (failed(StreamInterruptedError, None, partial=assistant("one")), "try again"),
    ],
)  # fmt: skip
def test_what_to_do(home: Path, error: InterlinguaError, said: str) -> None:
    assert said in str(advise(CommandContext(), error))


def test_what_says_it_already_gets_no_advice(home: Path) -> None:
    for error in (failed(BadRequestError, 400), CallerError("name a model"), failed(AuthenticationError, None)):
        assert advise(CommandContext(), error) is None


def test_a_refused_key_is_told_by_its_variable(run: Run, server: LocalServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "other-key-for-tests")
    own, known = run("send", "here:refused", "hi"), run("send", "anthropic:refused", "hi", "--url", server.url)

    assert "check that the key in MY_OWN_KEY is right" in own.stderr.splitlines()[-1]
    assert "check that the key in ANTHROPIC_API_KEY is right" in known.stderr.splitlines()[-1]
    assert "key-for-tests" not in own.stderr + known.stderr
