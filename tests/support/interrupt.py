"""Ctrl-C for tests: heard by this process and its children, and pressed in the middle of a chat's answer.

Nothing is asserted of what comes of it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.terminal import PROGRAM, limited

__all__ = ["PROGRAM", "heard", "interrupted_chat"]


@contextmanager
def heard() -> Iterator[None]:
    """Hear Ctrl-C also in a run that a script put into the background: that one is deaf to it, and its children are."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def interrupted_chat(*arguments: str) -> None:
    """Chat with the local server's slow model, press Ctrl-C after "Hel", then ask `e`, which answers "Hello"."""
    command = [PROGRAM, "chat", "here:slow", *arguments]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    environ = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, env=environ, **pipes) as chat, limited(chat):  # type: ignore[call-overload]
        chat.stdin.write(b"hi\n")
        chat.stdin.flush()
        assert chat.stdout.read(3) == b"Hel"
        time.sleep(0.2)
        chat.send_signal(signal.SIGINT)
        _, errors = chat.communicate(b"/model e\nagain\n", timeout=60)
    assert chat.returncode == 0, errors
