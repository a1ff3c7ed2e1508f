"""The committed table, which needs no SDK to be read: API, group, word, and what becomes of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("table.json")


def read_table() -> dict[str, Any]:
    """Return the committed table."""
    found: dict[str, Any] = json.loads(TABLE.read_text(encoding="utf-8"))
    return found


def written(table: dict[str, Any]) -> str:
    """Return the text of a table: a line a word, so that a changed word is a changed line."""
    return json.dumps(table, indent=1, ensure_ascii=False).replace('": [\n     "', '": ["').replace(
        '",\n     "', '", "'
    ).replace('"\n    ]', '"]') + "\n"  # fmt: skip


def unplaced(table: dict[str, Any]) -> list[str]:
    """Return the words that are lost, a line each."""
    return [f"{api}: {title}: {name}: {why}" for api, title, name, state, why in _rows(table) if state == "unplaced"]


def new_words(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return the words that only the second table has, a line each."""
    known = {row[:3] for row in _rows(old)}
    return [": ".join(row[:3]) + f": {row[3]}" for row in _rows(new) if row[:3] not in known]


def _rows(table: dict[str, Any]) -> Iterator[tuple[str, str, str, str, str]]:
    for api, found in table["apis"].items():
        for title, rows in found["groups"].items():
            for name, (state, why) in rows.items():
                yield api, title, name, state, why
