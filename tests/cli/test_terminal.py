"""A program that hangs ends its test, not the run."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support import terminal


def test_a_silent_program_with_pipes_is_killed() -> None:
    command = [sys.executable, "-c", "input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        with terminal.limited(process, 0.2):
            assert process.stdout.read() == b""
    assert process.returncode < 0


def test_a_silent_program_at_a_terminal_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "SILENCE", 0.5)
    monkeypatch.setattr(terminal, "PROGRAM", sys.executable)

    assert terminal.at_terminal([], "-c", "input('? ')") == (b"? ", -9)
