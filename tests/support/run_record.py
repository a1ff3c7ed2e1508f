"""What happened in this test run: which hooks were called, and which cassettes each test file opened.

Tests in `tests/repo/` judge it at the end of a whole run, so that a convention cannot be met by a test that merely
names a thing. In a run on several processes each keeps a record of its own, and the first process adds them up.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pluggy

from tests.support.tree import ROOT

PROJECTS = ("interlingua", "interlingua.serving")
CASSETTES = str(ROOT / "cassettes") + os.sep


class RunRecord:
    """The hooks called and the cassettes opened so far."""

    def __init__(self) -> None:
        self.hooks: set[str] = set()
        self.cassettes: dict[str, set[str]] = {}
        self.running = ""

    def sent(self) -> dict[str, Any]:
        """Return the record as plain lists, to be sent to another process."""
        opened = {path: sorted(openers) for path, openers in self.cassettes.items()}
        return {"hooks": sorted(self.hooks), "cassettes": opened}

    def add(self, sent: dict[str, Any]) -> None:
        """Add another process's record."""
        self.hooks |= set(sent["hooks"])
        for path, openers in sent["cassettes"].items():
            self.cassettes.setdefault(path, set()).update(openers)

    def hook_called(self, name: str, *_: object) -> None:
        """Note one call of a hook."""
        self.hooks.add(name)

    def audit(self, event: str, args: tuple[Any, ...]) -> None:
        """Note a cassette being opened (an audit hook: it sees every file the interpreter opens)."""
        if event == "open" and isinstance(args[0], str | os.PathLike):
            path = os.path.realpath(args[0])
            if path.startswith(CASSETTES):
                opened = Path(path).relative_to(CASSETTES).as_posix()
                self.cassettes.setdefault(opened, set()).add(self.running)


RECORD = RunRecord()


def start() -> None:
    """Begin recording: every plugin manager of the project made from now on is watched."""
    plain_init = pluggy.PluginManager.__init__

    def watched_init(self: pluggy.PluginManager, project_name: str, *args: Any, **kwargs: Any) -> None:
        plain_init(self, project_name, *args, **kwargs)
        if project_name in PROJECTS:
            self.add_hookcall_monitoring(RECORD.hook_called, lambda *_: None)

    pluggy.PluginManager.__init__ = watched_init  # type: ignore[method-assign]
    sys.addaudithook(RECORD.audit)
