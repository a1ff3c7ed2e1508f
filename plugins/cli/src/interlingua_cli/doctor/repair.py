"""The repair of a conversation file: as a diff to review, and as files."""

from __future__ import annotations

import difflib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import attrs

from interlingua._json import loads, repair_surrogates
from interlingua.errors import CallerError
from interlingua_cli.doctor.findings import Diagnosis
from interlingua_cli.input import write_file

REMOVED = ".removed.jsonl"  # appended to the name of the repaired file: the repairs, each with the JSON it removed


def diff_repair(diagnosis: Diagnosis, name: str) -> Iterator[str]:
    """Yield the lines of a unified diff between the file and its repair; empty if nothing would change."""
    kept = {line.number: line.text for line in diagnosis.after if line.number is not None}
    order = [line.number for line in diagnosis.after if line.number is not None]
    moved = set(order) - set(_find_unmoved(order))
    for number, text in diagnosis.before.items():
        if number not in kept:
            yield from _diff_line(text, "", f"{name}:{number}", "/dev/null")
        elif kept[number] != text:
            yield from _diff_line(text, kept[number], f"{name}:{number}", f"{name}:{number} repaired")
    last = 0
    for line in diagnosis.after:
        if line.number is None:
            yield from _diff_line("", line.text, "/dev/null", f"{name}: inserted after line {last}")
        elif line.number in moved:
            yield f"--- {name}:{line.number}"
            yield f"+++ {name}: moved after line {last}"
        else:
            last = line.number


def _find_unmoved(order: list[int]) -> list[int]:
    """Return the numbers that no smaller number follows; the other lines were moved."""
    lowest, kept = len(order) and max(order) + 1, []
    for number in reversed(order):
        if number < lowest:
            lowest = number
            kept.append(number)
    return kept


def _diff_line(was: str, now: str, left: str, right: str) -> Iterator[str]:
    return difflib.unified_diff(_pretty_lines(was), _pretty_lines(now), left, right, lineterm="", n=2)


def _pretty_lines(text: str) -> list[str]:
    if not text:
        return []
    try:
        return repair_surrogates(json.dumps(loads(text), ensure_ascii=False, indent=1)).splitlines()
    except ValueError:
        return [text]


def write_repaired(diagnosis: Diagnosis, out: Path, *, replace: bool = False) -> list[Path]:
    """Write the repaired conversation, and a file of the repairs with the removed JSON; return the written files."""
    written: list[Path] = []
    if out.exists():
        if not replace:
            raise CallerError(f"{out} exists already: choose another file, or repair in place")
        backup = _free_path(out.with_name(out.name + ".bak"))
        shutil.copy2(out, backup)
        written.append(backup)
    repairs = [attrs.asdict(finding) for finding in diagnosis.repairs]
    if repairs:
        kept = _free_path(out.with_name(out.name + REMOVED))
        lines = (repair_surrogates(json.dumps(each, ensure_ascii=False, default=str)) for each in repairs)
        write_file(kept, "".join(f"{line}\n" for line in lines))
        written.append(kept)
    write_file(out, "".join(f"{line.text}\n" for line in diagnosis.after))
    return [out, *written]


def _free_path(path: Path) -> Path:
    """Return this path, or the first numbered path that does not exist."""
    number, found = 0, path
    while found.exists():
        number += 1
        found = path.with_name(f"{path.name}{number}")
    return found
