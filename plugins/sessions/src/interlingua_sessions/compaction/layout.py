"""What session-only entries say of a history: what a summary covers, which results are left out, where branches began.

Never makes a message of it (`context` does). The context builder and the policies come in.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from interlingua_sessions.store import EntryKind, SessionEntry

PRUNING = "interlingua.tool_pruning"
"""`custom_type` of the entry that says which tool results are left out from then on."""
COVERS = "covers"
"""Field of a compaction entry: how many messages, from the first, its summary stands for."""
PRUNED = "pruned"
"""Field of a pruning entry: the places of the tool messages whose content is left out."""


@attrs.frozen
class Layout:
    """What the entries say of a history, by places in it: places do not change when ids do (an imported copy).

    Attributes:
        covers: so many messages are stood for by `summary`.
        summary: the newest compaction entry, or None.
        pruned: places of tool messages whose content is left out.
        branches: branch entries.
    """

    covers: int
    summary: SessionEntry | None
    pruned: frozenset[int]
    branches: tuple[SessionEntry, ...]


def layout_of(entries: Sequence[SessionEntry]) -> Layout:
    """Read the entries; custom entries of applications say nothing here."""
    summary: SessionEntry | None = None
    pruned: set[int] = set()
    branches = []
    for entry in entries:
        if entry.kind is EntryKind.COMPACTION_SUMMARY and isinstance(entry.data.get(COVERS), int):
            summary = entry
        elif entry.kind is EntryKind.BRANCH_SUMMARY:
            branches.append(entry)
        elif entry.custom_type == PRUNING:
            pruned.update(entry.data.get(PRUNED, ()))
    covers = 0 if summary is None else summary.data[COVERS]
    return Layout(covers, summary, frozenset(pruned), tuple(branches))
