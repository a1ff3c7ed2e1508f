"""The program in a process of its own, at a terminal or with pipes; one that hangs is killed, and its test fails."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAM = str(Path(sys.executable).with_name("interlingua"))
SILENCE = 60.0  # seconds after which a program hangs


@contextmanager
def limited(process: subprocess.Popen[Any], seconds: float = SILENCE) -> Iterator[None]:
    """Kill a process that is still running after so many seconds, so that who reads its pipes gets their end."""
    timer = threading.Timer(seconds, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def at_terminal(
    answers: list[tuple[bytes, bytes]], *arguments: str, environ: Mapping[str, str] | None = None
) -> tuple[bytes, int]:
    """Run the program at a terminal; write each answer once its question is shown, behind the last one.

    Returns:
        What was shown, and the exit code: negative where the program showed nothing for too long and was killed.
    """
    child, terminal = pty.fork()
    if child == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a background job ignores it, and passes that on
        os.execve(PROGRAM, [PROGRAM, *arguments], {**os.environ, **(environ or {})})  # noqa: S606
    shown, seen = b"", 0
    while True:
        if not select.select([terminal], [], [], SILENCE)[0]:
            os.kill(child, signal.SIGKILL)
            break
        try:
            data = os.read(terminal, 1024)
        except OSError:  # the end, on Linux
            break
        if not data:
            break
        shown += data
        if answers and (found := shown.find(answers[0][0], seen)) >= 0:
            seen = found + len(answers[0][0])
            time.sleep(0.2)  # Python's prompt misses a signal that comes before it has begun to wait
            os.write(terminal, answers.pop(0)[1])
    os.close(terminal)
    return shown, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
