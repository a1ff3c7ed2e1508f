"""Rewrite rows of cassettes/PROVENANCE.toml one by one; the other rows stay as they are.

A row is found by its path; its five fields are those that the repo test requires.
"""

from __future__ import annotations

import datetime as dt
import re

from tests.support.cassettes import FOLDER

LIST = FOLDER / "PROVENANCE.toml"
_ROWS = re.compile(r"(?m)^(?=\[\[cassette\]\])")
_PATH = re.compile(r'(?m)^path = "([^"]*)"')


def write_row(path: str, *, provenance: str, source: str, test: str) -> None:
    """Write the row of one cassette, dated today, in place of the one it had."""
    row = (
        f'[[cassette]]\npath = "{path}"\nprovenance = "{provenance}"\nsource = "{source}"\n'
        f'date = {dt.datetime.now(dt.UTC).date()}\ntest = "{test}"\n'
    )
    text = LIST.read_text(encoding="utf-8") if LIST.is_file() else ""
    rows = [part.rstrip("\n") + "\n" for part in _ROWS.split(text) if part.strip()]
    at = [number for number, part in enumerate(rows) if (found := _PATH.search(part)) and found[1] == path]
    if at:
        rows[at[0]] = row
    else:
        rows.append(row)
    LIST.write_text("\n".join(rows), encoding="utf-8")
