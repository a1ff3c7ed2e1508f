"""The other side of `store_writer`: starting writers, killing them, and all they said.

Kills only what it started.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import defaultdict
from threading import Condition, Thread
from typing import Self

from tests.support import tree

PATIENCE = 300.0


class Writers:
    """A running `store_writer` for one store."""

    def __init__(self, place: str) -> None:
        self._place = place
        self.said: dict[str, list[list[str]]] = defaultdict(list)
        self._started: dict[str, int] = defaultdict(int)
        self._pids: dict[str, list[int]] = defaultdict(list)
        self._news = Condition()

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "tests.support.store_writer", self._place]
        self._host = subprocess.Popen(
            command, cwd=tree.ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self._reader = Thread(target=self._listen, daemon=True)
        self._reader.start()
        return self

    def __exit__(self, *exc: object) -> None:
        """Wait until every writer is gone: only then does the pipe end."""
        if self._host.stdin and self._host.stdout:
            self._host.stdin.close()
            self._reader.join(PATIENCE)
            self._host.stdout.close()
        assert self._host.wait(PATIENCE) == 0

    def start(self, kind: str, session_id: str, number: int) -> int:
        """Start a writer and return its pid."""
        assert self._host.stdin
        self._host.stdin.write(f"{kind} {session_id} {number}\n")
        self._started[session_id] += 1
        with self._news:
            assert self._news.wait_for(lambda: len(self._pids[session_id]) == self._started[session_id], PATIENCE)
        return self._pids[session_id][-1]

    def kill(self, pid: int) -> None:
        """Kill one, with no chance to say anything."""
        os.kill(pid, signal.SIGKILL)

    def _listen(self) -> None:
        assert self._host.stdout
        for line in self._host.stdout:
            session_id, *words = line.split()
            with self._news:
                if words[0] == "pid":
                    self._pids[session_id].append(int(words[1]))
                else:
                    self.said[session_id].append(words)
                self._news.notify_all()
