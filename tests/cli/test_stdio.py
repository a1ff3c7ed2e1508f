"""Standard streams that are closed, hold no text, or show what a model would do to a terminal."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from interlingua_cli.streams import escape_controls
from tests.cli.conftest import Run
from tests.cli.local import LocalServer

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
    assert "no text in this terminal's encoding" in typed.stderr
    assert server.requests == []


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_control_characters_instead_of_obeying_them() -> None:
    said = "\x1b]52;c;ZXZpbA==\x07one\n\ttwo \x9b2Jthree"

    assert escape_controls(said, Terminal()) == "\\x1b]52;c;ZXZpbA==\\x07one\n\ttwo \\x9b2Jthree"
    assert escape_controls(said, io.StringIO()) == said  # a pipe gets what the model said
