"""`approved.jsonl`: one row for each different result of a scene, and the comparison with what a plugin shows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import attrs

from interlingua.errors import CallerError
from interlingua_contract.approved.observe import OBSERVERS
from interlingua_contract.approved.shown import Shown
from interlingua_contract.approved.values import difference, digest
from interlingua_contract.json_paths import format_path, leaves
from interlingua_contract.rule import NotApplicable
from interlingua_contract.subject import Subject

APPROVED_FILE = "approved.jsonl"
_MOST_CHANGES = 8
_MOST_TEXT = 300
_VALUE = 200
_NOTHING = "nothing"


@attrs.frozen
class _Row:
    """One result of a scene; of all but the first of a scene only the digest and the changes to the first."""

    places: frozenset[str]
    value: Any
    sum: str
    changes: dict[str, Any] | None = None


@attrs.frozen
class Approved:
    """The rows of a file.

    Attributes:
        places: every API and model, and the number of recorded answers.
        rows: section and scene -> results.
    """

    places: frozenset[str]
    exchanges: int
    rows: dict[tuple[str, str], list[_Row]]


def read_approved(subject: Subject) -> Approved | None:
    """Return the rows of `approved.jsonl` beside the cassettes; None without that file.

    Raises:
        CallerError: a line is not what `interlingua check KEY --approve` writes.
    """
    path = subject.folder / APPROVED_FILE if subject.folder is not None else None
    if path is None or not path.is_file():
        return None
    return _read(path.resolve(), path.stat().st_mtime_ns)


@lru_cache(maxsize=4)
def _read(path: Path, _changed: int) -> Approved:
    try:
        head, *lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        names = head["places"]
        found: dict[tuple[str, str], list[_Row]] = {}
        for section, scene, at, value in lines:
            places = frozenset(names[each] for each in at)
            rows = found.setdefault((section, scene), [])
            if rows:
                rows.append(_Row(places, None, value["sum"], value.get("but")))
            else:
                rows.append(_Row(places, value, digest(value)))
        return Approved(frozenset(names), head["exchanges"], found)
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise CallerError(f"{path} holds no approved results: {error}; write it with --approve") from error


def write_approved(subject: Subject) -> str:
    """Return the results of every scene as the lines of `approved.jsonl`."""
    found: dict[tuple[str, str], dict[str, tuple[list[str], Any]]] = {}
    for section, observe in OBSERVERS.items():
        try:
            for shown in observe(subject):
                rows = found.setdefault((section, shown.scene), {})
                rows.setdefault(digest(shown.value), ([], shown.value))[0].append(shown.where)
        except NotApplicable:
            continue
    names = list(dict.fromkeys(where for rows in found.values() for places, _ in rows.values() for where in places))
    lines: list[Any] = [{"places": names, "exchanges": len(subject.exchanges)}]
    for (section, scene), rows in found.items():
        first: Any = None
        for sum_, (places, value) in rows.items():
            at = sorted({names.index(where) for where in places})
            if first is None:
                first, written = (value,), value
            else:
                written = {"sum": sum_, **_changes(first[0], value)}
            lines.append([section, scene, at, written])
    return "".join(f"{json.dumps(line, ensure_ascii=True, separators=(',', ':'))}\n" for line in lines)


def _changes(first: Any, other: Any) -> dict[str, Any]:
    before = {format_path(path): leaf for path, leaf in leaves(first)}
    now = {format_path(path): leaf for path, leaf in leaves(other)}
    changes = {
        name: now.get(name, _NOTHING)
        for name in dict.fromkeys((*before, *now))
        if json.dumps(before.get(name, _NOTHING)) != json.dumps(now.get(name, _NOTHING))
    }
    small = len(changes) <= _MOST_CHANGES and len(json.dumps(changes)) <= _MOST_TEXT
    return {"but": changes} if small else {}


def compare(subject: Subject, *sections: str) -> Iterator[tuple[str, str]]:
    """Yield where a result is not the approved one, and why.

    Raises:
        NotApplicable: there is no file of approved results, or nothing of these sections.
    """
    approved = read_approved(subject)
    if approved is None:
        raise NotApplicable(f"there is no {APPROVED_FILE} beside the recordings: `interlingua check KEY --approve`")
    seen: set[tuple[str, str]] = set()
    whole = {aim.name for aim in subject.aims} >= {name for name in approved.places if "/" in name}
    whole = whole and len(subject.exchanges) == approved.exchanges
    for section in sections:
        try:
            for shown in OBSERVERS[section](subject):
                seen.add((section, shown.scene))
                if section == "served requests" and "error" in shown.value:
                    yield f"{shown.scene} {shown.where}".strip(), f"the request is refused: {shown.value['message']}"
                elif why := _differs(approved, section, shown):
                    yield f"{shown.scene} {shown.where}".strip(), why
        except NotApplicable:
            if not whole and any(known == section for known, _ in approved.rows):
                raise
    if whole:
        for section, scene in approved.rows.keys() - seen:
            if section in sections:
                yield scene, f"{APPROVED_FILE} has this scene, and nothing shows it"


def _differs(approved: Approved, section: str, shown: Shown) -> str:
    rows = approved.rows.get((section, shown.scene), [])
    row = next((row for row in rows if shown.where in row.places), None)
    if row is None:
        return f"{APPROVED_FILE} has no row for it"
    if row.sum == digest(shown.value):
        return ""
    if row.changes is not None or row is rows[0]:
        known = {format_path(path): leaf for path, leaf in leaves(rows[0].value)} | (row.changes or {})
        known = {name: leaf for name, leaf in known.items() if leaf != _NOTHING}
        now = {format_path(path): leaf for path, leaf in leaves(shown.value)}
        for name in dict.fromkeys((*known, *now)):
            one, other = known.get(name, _NOTHING), now.get(name, _NOTHING)
            if one != other or type(one) is not type(other):
                return f"{name or 'it'} is {_show(other, shown, name)}, approved is {_show(one)}"
        return "its members have another order than approved"
    found = difference(rows[0].value, shown.value)
    near = f"; {format_path(found[0])} is {_show(found[2])}" if found else ""
    return f"it is not the approved result{near}"


def _show(value: Any, shown: Shown | None = None, name: str = "") -> str:
    if shown is not None and isinstance(value, str) and (value.startswith("# ") or "... " in value):
        for path, leaf in _all(shown.whole):
            if format_path(path) == name:
                value = leaf
                break
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _VALUE else f"{text[:_VALUE]}..."


def _all(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    yield path, value
    if isinstance(value, (dict, list)):
        for step, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _all(item, (*path, step))
