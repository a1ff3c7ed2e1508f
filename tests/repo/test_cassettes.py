"""Every cassette has a provenance and is used by the test that owns it; nothing authored is called recorded."""

from __future__ import annotations

import datetime as dt
import functools
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from tests.support import tree
from tests.support.cassettes import LOADER
from tests.support.run_record import RECORD

FOLDER = tree.ROOT / "cassettes"
LIST = FOLDER / "PROVENANCE.toml"
FIELDS = {"path", "provenance", "source", "date", "test"}
KINDS = {"recorded", "authored"}
NOTES = {"README.md", "quirks.toml", "facts.toml", "approved.jsonl"}
LOCAL = {"127.0.0.1", "localhost"}
RANDOM_ID = re.compile(r"\b(?:[a-z]+[-_])?([A-Za-z0-9]{32})\b")  # of an answer of llama.cpp's server
LETTERS = 12  # of 32 random characters many more differ


def _listed() -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = tomllib.loads(LIST.read_text(encoding="utf-8")).get("cassette", [])
    return listed


def _files() -> set[str]:
    kept = (path for path in FOLDER.rglob("*") if path.is_file() and path != LIST and path.name not in NOTES)
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


def doubts(source: str, cassette: Mapping[str, Any]) -> Iterator[str]:
    """Yield why a cassette is hardly recorded from that source: what it says and what it holds do not agree.

    Nobody can tell a careful forgery; this finds an authored exchange that got the wrong word.
    """
    for at, item in enumerate(cassette["interactions"]):
        answer, host = item["response"], urlsplit(item["request"]["uri"]).hostname
        text = json.dumps(answer["body"], default=str)
        if ("llama.cpp" in source) != (host in LOCAL):
            yield f"exchange {at} was with {host}, not with {source}"
        elif "authored" in text.lower():
            yield f"exchange {at} says itself that it is authored"
        elif host in LOCAL and not (
            any(len(set(found)) >= LETTERS for found in RANDOM_ID.findall(text))
            or re.search(rf'"code": ?{answer["status"]["code"]}\b', text)
        ):
            yield f"exchange {at} has neither a random id nor an error of that server"


@functools.cache
def _loaded(path: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.load((FOLDER / path).read_text(encoding="utf-8"), LOADER)  # noqa: S506 a safe loader
    return loaded


def test_what_is_called_recorded_looks_recorded() -> None:
    found = [
        f"{entry['path']}: {doubt}"
        for entry in _listed()
        if entry["provenance"] == "recorded"
        for doubt in doubts(entry["source"], _loaded(entry["path"]))
    ]

    assert not found, "record these, or call them authored and name the documentation:\n" + "\n".join(found)


def test_an_authored_exchange_called_recorded_is_found() -> None:
    """Every authored one of ours, with the word and the source of a recorded one."""
    recorded = next(entry["source"] for entry in _listed() if entry["provenance"] == "recorded")
    believed = [
        entry["path"]
        for entry in _listed()
        if entry["provenance"] == "authored" and entry["path"].endswith(".yaml")
        and not list(doubts(recorded, _loaded(entry["path"])))
    ]  # fmt: skip

    assert [path for path in believed if not path.startswith("vllm/")] == []  # its error envelope is llama.cpp's


@pytest.mark.whole_run
def test_every_cassette_is_opened_by_its_owner() -> None:
    orphans = [
        f"{entry['path']}: not opened by {entry['test']}, but by {sorted(openers)}"
        for entry in _listed()
        if entry["test"] not in (openers := RECORD.cassettes.get(entry["path"], set()))
    ]

    assert not orphans, "a cassette its owner does not use proves nothing:\n" + "\n".join(orphans)
