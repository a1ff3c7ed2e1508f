"""Write docs/reference/coverage.md from the table: what becomes of each word of each API."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.support import tree
from tests.tools.coverage.places import MEANINGS

PAGE = tree.ROOT / "docs" / "reference" / "coverage.md"
_HEAD = """# Coverage of the services' APIs

What becomes of every request parameter, tool, block, event and field that the official SDKs' types name. Nothing here
is written by hand: a program takes the types of the SDKs, asks for a request with each parameter, tool and block, feeds
an answer with each field, block and event to the adapter, whole and streamed, and compares. A word counts only if every
text and number that it brought is found again.

Written by `python -m tests.tools.coverage` from these SDKs: {sdks}.
`python -m tests.tools.coverage newest` compares the newest SDKs and prints the fields and values that are not
covered yet. The page has only the APIs that conversations and decisions use; [limits of plugins](../plugins/limits.md)
lists what a plugin cannot express.

| state | meaning |
|---|---|
{meanings}

After a block, *goes back* says that the next request to the same model has all of it; *with a row* that the
ledger says why not. The values are made up from the types: a signature or a picture that a service would refuse
is left out here as it would be there.
"""
_ORDER: list[str] = [state for state in MEANINGS if state != "unplaced"]


def page(table: dict[str, Any]) -> str:
    """Return the page."""
    sdks = "\n" + ", ".join(f"{name} {version}" for name, version in table["sdks"].items())
    meanings = "\n".join(f"| {state} | {MEANINGS[state]} |" for state in _ORDER)
    parts = [_HEAD.format(sdks=sdks, meanings=meanings), *_summary(table)]
    for name, api in table["apis"].items():
        parts.append(f"\n## {name}\n\nTypes of {api['sdk']} {table['sdks'][api['sdk']]}.")
        for title, rows in api["groups"].items():
            if rows:
                parts.append(f"\n### {name}: {title}\n\n" + "\n".join(_lines(rows)))
    return "\n".join(parts) + "\n"


def _summary(table: dict[str, Any]) -> Iterator[str]:
    yield f"| API | words | {' | '.join(_ORDER)} |\n|---|--:|{'--:|' * len(_ORDER)}"
    total: Counter[str] = Counter()
    for name, api in table["apis"].items():
        counts = Counter(state for rows in api["groups"].values() for state, _ in rows.values())
        total += counts
        yield _row(name, counts)
    yield _row("all", total)


def _row(name: str, counts: Counter[str]) -> str:
    return f"| {name} | {counts.total()} | {' | '.join(str(counts[state] or '') for state in _ORDER)} |"


def _lines(rows: dict[str, list[str]]) -> Iterator[str]:
    """Yield a line for each state and note, with its words."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for name, (state, note) in rows.items():
        grouped.setdefault((state, note), []).append(f"`{name}`")
    for (state, note), names in sorted(grouped.items(), key=lambda one: (_ORDER.index(one[0][0]), one[0][1])):
        yield f"- **{state}**{f', {note}' if note else ''}: {', '.join(names)}"
