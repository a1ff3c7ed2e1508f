"""`check --watch` runs again when a file changes; several processes find what one finds."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from interlingua_contract.commands import watch
from interlingua_contract.report import run
from interlingua_contract.rules import ALL
from interlingua_contract.subject import Subject


def test_a_change_starts_another_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package, log = tmp_path / "package", tmp_path / "runs.txt"
    package.mkdir()
    (package / "plugin.py").write_text("x = 1\n", encoding="utf-8")
    monkeypatch.setattr(watch, "_package_folders", lambda _: iter([package]))
    monkeypatch.setattr(watch, "_EVERY", 0.05)
    code = f"import time; open({str(log)!r}, 'a').write('run '); time.sleep(0.2)"
    monkeypatch.setattr(watch, "_COMMAND", (*watch._COMMAND[:2], code))

    def change() -> None:
        until = time.monotonic() + 30
        while not log.exists() and time.monotonic() < until:
            time.sleep(0.05)
        (package / "plugin.py").write_text("x = 2\n", encoding="utf-8")

    changing = threading.Thread(target=change)
    changing.start()
    watch.watch("acme", None, [], rounds=2)
    changing.join()

    assert log.read_text(encoding="utf-8") == "run run "


def test_the_folders_of_an_installed_plugin_are_found() -> None:
    assert [folder.name for folder in watch._package_folders("cohere")] == ["interlingua_cohere"]


def test_several_processes_find_the_same() -> None:
    rules = [rule for rule in ALL if rule.number in ("C02", "C43", "C44", "C45", "C75")]
    subject = Subject("llamacpp", examples=3)
    alone, shared = (run(subject, rules, jobs=jobs) for jobs in (1, 2))

    assert [(each.rule.number, each.outcome) for each in alone.results] == [
        (each.rule.number, each.outcome) for each in shared.results
    ]
