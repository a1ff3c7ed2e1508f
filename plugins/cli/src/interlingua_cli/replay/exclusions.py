"""Entries that are not to be judged: a TOML file of ids, each with its reason.

Never invents a reason: an exclusion without one is an error. The command line comes in.
    [[exclude]]
    id = "<api>/<digest>"
    reason = "the recording is cut off"
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from interlingua.errors import DecodeError


def read_exclusions(path: str) -> dict[str, str]:
    """Return id -> reason.

    Raises:
        DecodeError: not TOML, or an exclusion lacks its id or reason; the message names the place.
        OSError: the file cannot be read.
    """
    try:
        data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise DecodeError(f"{path} is not TOML: {error}") from error
    rows = data.get("exclude", [])
    if not isinstance(rows, list):
        raise DecodeError(f"{path}: exclude is a list of tables, [[exclude]]", path="exclude")
    found = {}
    for number, row in enumerate(rows):
        for name in ("id", "reason"):
            if not (isinstance(row, dict) and isinstance(row.get(name), str) and row[name].strip()):
                raise DecodeError(f"{path}: an exclusion needs its {name}", path=f"exclude[{number}].{name}")
        found[row["id"]] = row["reason"]
    return found
