"""Every cassette has a provenance and is used by the test that owns it; nothing authored is called recorded."""

from __future__ import annotations

import datetime as dt
import tomllib
from typing import Any

import pytest

from tests.support import tree
from tests.support.run_record import RECORD

FOLDER = tree.ROOT / "cassettes"
LIST = FOLDER / "PROVENANCE.toml"
FIELDS = {"path", "provenance", "source", "date", "test"}
KINDS = {"recorded", "authored"}
NOTES = {"README.md", "quirks.toml"}


def _listed() -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = tomllib.loads(LIST.read_text(encoding="utf-8")).get("cassette", [])
    return listed


def _files() -> set[str]:
    kept = (
        path
        for path in FOLDER.rglob("*")
        if path.is_file() and path != LIST and path.name not in ("README.md", "quirks.toml")
    )
    return {path.relative_to(FOLDER).as_posix() for path in kept}


def test_there_are_cassettes() -> None:
    assert _files(), "no cassette yet: nothing recorded stands behind the adapters"


def test_every_cassette_is_listed_once_and_exists() -> None:
    listed = [entry.get("path", "") for entry in _listed()]
    twice = sorted({path for path in listed if listed.count(path) > 1})

    assert not _files() - set(listed), f"cassettes without provenance: {sorted(_files() - set(listed))}"
    assert not set(listed) - _files(), f"listed in PROVENANCE.toml and not there: {sorted(set(listed) - _files())}"
    assert not twice, f"listed twice: {twice}"


def test_every_entry_says_where_it_is_from() -> None:
    wrong = []
    for entry in _listed():
        empty = {field for field in FIELDS if not str(entry.get(field, "")).strip()}
        if empty or entry.keys() - FIELDS:
            wrong.append(f"{entry.get('path')}: missing {sorted(empty)}, unknown {sorted(entry.keys() - FIELDS)}")
        elif entry["provenance"] not in KINDS:
            wrong.append(f"{entry['path']}: provenance is one of {sorted(KINDS)}")
        else:
            dt.date.fromisoformat(str(entry["date"]))

    assert not wrong, "\n".join(wrong)


def test_every_owner_exists() -> None:
    gone = [f"{entry['path']} -> {entry['test']}" for entry in _listed() if not (tree.ROOT / entry["test"]).is_file()]

    assert not gone, f"the owning test is not there: {gone}"


@pytest.mark.whole_run
def test_every_cassette_is_opened_by_its_owner() -> None:
    orphans = [
        f"{entry['path']}: not opened by {entry['test']}, but by {sorted(openers)}"
        for entry in _listed()
        if entry["test"] not in (openers := RECORD.cassettes.get(entry["path"], set()))
    ]

    assert not orphans, "a cassette its owner does not use proves nothing:\n" + "\n".join(orphans)
