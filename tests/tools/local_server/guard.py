"""Runs one command for as long as standard input stays open, so that a killed parent leaves no server behind."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading


def main(command: list[str]) -> int:
    """Run the command until it ends, or until standard input or SIGTERM ends it; returns its exit status."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())

    def end_with_parent() -> None:
        sys.stdin.buffer.read()
        child.terminate()

    threading.Thread(target=end_with_parent, daemon=True).start()
    return child.wait()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
