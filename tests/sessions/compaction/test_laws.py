"""The law of compaction: wherever it cuts, a call and its result stay together."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import interlingua as il
from interlingua_sessions.compaction import PRUNED, PRUNING, Summary, ToolPruning, build_context
from interlingua_sessions.store import EntryKind, SessionEntry

lengths = st.sampled_from([1, 400, 4_000])


@st.composite
def histories(draw: st.DrawFn) -> list[il.Message]:
    """Questions, each answered by way of steps with calls side by side; the last may still be under way."""
    made: list[il.Message] = [il.system("Be brief.")] if draw(st.booleans()) else []
    count = 0
    for _ in range(draw(st.integers(1, 5))):
        made.append(il.user("q" * draw(lengths)))
        for _ in range(draw(st.integers(0, 3))):
            calls = [il.ToolUseBlock(id=f"tu_{count + at}", name="read") for at in range(draw(st.integers(1, 3)))]
            count += len(calls)
            made.append(il.assistant([il.TextBlock(text="I look."), *calls]))
            made += [il.tool_result(call, "r" * draw(lengths)) for call in calls]
        made.append(il.assistant("a" * draw(lengths)))
    return made[: len(made) - draw(st.integers(0, 2))]


def entry(kind: EntryKind, data: dict[str, Any], custom_type: str | None = None) -> SessionEntry:
    return SessionEntry(
        id=il.types.new_ulid(), session_id="s", kind=kind, custom_type=custom_type, text="summary", data=data,
        after=None, created_at=datetime.now(UTC),
    )  # fmt: skip


def orphans(messages: Any) -> tuple[set[str], set[str]]:
    """Return the calls without a result, and the results whose call does not stand before them."""
    called: set[str] = set()
    answered: set[str] = set()
    lost: set[str] = set()
    for message in messages:
        called |= {call.id for call in message.tool_calls}
        for result in message.tool_results:
            answered.add(result.tool_use_id)
            if result.tool_use_id not in called:
                lost.add(result.tool_use_id)
    return called - answered, lost


@given(
    history=histories(),
    limit=st.integers(1, 5_000),
    keep=st.floats(0, 1),
    done=st.booleans(),
    prune=st.booleans(),
)
def test_no_cut_separates_a_call_from_its_result(
    history: list[il.Message], limit: int, keep: float, done: bool, prune: bool
) -> None:
    open_before, _ = orphans(history)
    entries: list[SessionEntry] = []
    covers = 0
    for share in (keep, keep / 2) if done else (keep,):  # a second one goes on from the first
        covers = Summary(keep=share).cut(history, covers, limit)
        if covers:
            entries.append(entry(EntryKind.COMPACTION_SUMMARY, {"covers": covers}))
    if prune:
        chosen = ToolPruning(keep=keep).choose(history, covers, limit)
        entries.append(entry(EntryKind.CUSTOM, {PRUNED: chosen}, PRUNING))
    context = build_context(history, entries)
    still_open, lost = orphans(context)

    assert not lost
    assert still_open <= open_before
