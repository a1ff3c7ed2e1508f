"""The repaired conversation and what was taken out of it, as files: all of both, or none.

Never overwrites a file it was not told to, and never without a copy of what it held. The front door comes in.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path

import attrs

from interlingua.errors import CallerError
from interlingua.json import replace_lone_surrogates
from interlingua_cli.doctor.finding import Diagnosis

REMOVED = ".removed.jsonl"


"""Put behind the name of the repaired file: what the repair did, each with the JSON it took away."""


def write_repaired(diagnosis: Diagnosis, out: Path, *, replace: bool = False) -> list[Path]:
    """Write the repaired conversation, and beside it every repair with what it took away; return the files written.

    Args:
        diagnosis: of the conversation.
        out: the file to write.
        replace: `out` is the examined file itself; a copy of it is kept, numbered `.bak`, `.bak1`, ….

    Raises:
        CallerError: `out` is there and may not be replaced.
        OSError: a file cannot be written; `out` is then as it was.
    """
    written: list[Path] = []
    if out.exists():
        if not replace:
            raise CallerError(f"{out} is there already; name another file, or repair in place")
        written.append(_backup(out))
    repairs = [attrs.asdict(finding) for finding in diagnosis.repairs]
    if repairs:
        kept = _free(out.with_name(out.name + REMOVED))
        _write(kept, "".join(replace_lone_surrogates(json.dumps(each, ensure_ascii=False, default=str)) + "\n" for each in repairs))
        written.append(kept)
    _write(out, "".join(f"{line.text}\n" for line in diagnosis.after))
    return [out, *written]


def _backup(path: Path) -> Path:
    kept = _free(path.with_name(path.name + ".bak"))
    shutil.copy2(path, kept)
    return kept


def _free(path: Path) -> Path:
    """Return this path, or the first numbered one that is not there."""
    number, found = 0, path
    while found.exists():
        number += 1
        found = path.with_name(f"{path.name}{number}")
    return found


def _write(path: Path, text: str) -> None:
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=".", delete=False) as file:
        file.write(text)
    os.replace(file.name, path)  # noqa: PTH105  Path.replace says the same and hides that it is atomic
