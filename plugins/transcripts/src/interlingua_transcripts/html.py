"""A fidelity report as one HTML page without anything from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import attrs

from interlingua_transcripts.fidelity import Count, Fidelity

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; width: 100%; }
th, td { border-bottom: 1px solid #8884; padding: .3rem .6rem; text-align: right; }
th:first-child, td:first-child { text-align: left; word-break: break-word; }
"""


def to_html(report: Fidelity, name: str) -> str:
    """Return the page.

    Args:
        report: report on the leaves.
        name: name of the file, for the heading.
    """
    heading = f"{name}: {report.system} to {report.target}"
    kinds = [(kind, *_cells(count)) for kind, count in sorted(report.by_kind.items())]
    outcome = "written back equal" if report.equal else "not written back equal"
    parts = [
        f"<h1>{escape(heading)}</h1>",
        f"<p>{report.entries:,} entries, {report.messages:,} messages; {outcome}.</p>",
        _table(("entry", "leaves", "exact", "other form", "kept", "lost"), [*kinds, ("all", *_cells(report.total))]),
    ]
    for title, counter in (
        ("In another form", report.reasons),
        ("Kept beside the messages", report.places),
        ("Lost", report.lost),
    ):
        if counter:
            parts += [f"<h2>{title}</h2>", _table(("what", "leaves"), counter.most_common())]
    if report.notes:
        notes = "".join([f"<li>{escape(note.text)}</li>" for note in report.notes])
        parts += ["<h2>Notes</h2>", f"<ul>{notes}</ul>"]
    head = f'<meta charset="utf-8"><title>{escape(heading)}</title><style>{_STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>\n'


def _cells(count: Count) -> list[int]:
    return [count.leaves, *attrs.astuple(count)]


def _table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    head = "".join([f"<th>{escape(column)}</th>" for column in columns])
    body = "".join(["<tr>" + "".join([f"<td>{escape(_cell(cell))}</td>" for cell in row]) + "</tr>" for row in rows])
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
