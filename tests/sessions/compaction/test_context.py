"""The context builder: what a model is sent of a history and the session-only entries beside it.

Expectations are docs/sessions/compaction.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import interlingua as il
from interlingua_sessions.compaction import PRUNING, SessionContext, build_context
from interlingua_sessions.store import EntryKind, SessionEntry


def entry(
    kind: EntryKind, text: str = "", data: Mapping[str, Any] | None = None, after: str | None = None,
    custom_type: str | None = None,
) -> SessionEntry:  # fmt: skip
    return SessionEntry(
        id=il.types.new_ulid(), session_id="s", kind=kind, custom_type=custom_type, text=text, data=data or {},
        after=after, created_at=datetime.now(UTC),
    )  # fmt: skip


def turns(count: int) -> list[il.Message]:
    """A system message, then questions that are each answered by way of a tool: five messages a turn at most."""
    made = [il.system("Be brief.")]
    for at in range(count):
        call = il.ToolUseBlock(id=f"tu_{at}", name="read", input={"n": at})
        made += [il.user(f"q{at}"), il.assistant([call]), il.tool_result(call, f"content {at} " * 50)]
        made.append(il.assistant(f"a{at}"))
    return made


def seen(messages: Sequence[il.Message]) -> list[str]:
    return [f"{message.role.value}: {message.text or message.content[0].type}" for message in messages]


def test_without_entries_that_matter_the_history_is_the_same_object() -> None:
    history = turns(2)

    assert build_context(history, []) is history
    assert build_context(history, [entry(EntryKind.CUSTOM, "a note", custom_type="my.note")]) is history


def test_a_summary_is_the_first_thing_the_model_sees_after_the_system_prompt() -> None:
    history = turns(3)
    summary = entry(EntryKind.COMPACTION_SUMMARY, "They read two files.", {"covers": 9})

    context = build_context(history, [summary])

    assert [message.role.value for message in context] == [
        "system",
        "user",
        *["user", "assistant", "tool", "assistant"],
    ]
    assert context[0] is history[0]
    assert "They read two files." in context[1].text
    assert list(context[2:]) == history[9:]
    assert all(left is right for left, right in zip(context[2:], history[9:], strict=True))
    assert [message.id for message in context] == sorted(message.id for message in context)


def test_a_context_grows_by_the_very_same_objects() -> None:
    """What keeps a turn cheap and its wire a byte prefix of the next."""
    history = turns(3)
    entries = [
        entry(EntryKind.COMPACTION_SUMMARY, "Earlier.", {"covers": 5}),
        entry(EntryKind.CUSTOM, custom_type=PRUNING, data={"pruned": [7]}),
    ]
    context = SessionContext()
    before = context(history, entries)
    after = context([*history, il.user("more")], entries)

    assert len(after) == len(before) + 1
    assert all(left is right for left, right in zip(before, after, strict=False))


def test_the_newest_summary_counts_and_covered_system_messages_stay() -> None:
    history = turns(2)
    history.insert(5, il.system("Now in French."))
    entries = [
        entry(EntryKind.COMPACTION_SUMMARY, "old", {"covers": 3}),
        entry(EntryKind.COMPACTION_SUMMARY, "new", {"covers": 6}),
    ]

    context = build_context(history, entries)

    assert seen(context[:2]) == ["system: Be brief.", "system: Now in French."]
    assert "new" in context[2].text
    assert seen(context[3:]) == ["user: q1", "assistant: tool_use", "tool: tool_result", "assistant: a1"]


def test_pruned_results_keep_their_place_their_call_and_the_stored_message() -> None:
    history = turns(1)
    stored = history[3]

    context = build_context(history, [entry(EntryKind.CUSTOM, custom_type=PRUNING, data={"pruned": [3]})])

    (result,) = context[3].tool_results
    assert result.content == (il.TextBlock(text="[the result of read was removed to save space]"),)
    assert result.tool_use_id == "tu_0"
    assert context[3].id == stored.id
    assert history[3] is stored
    assert "content 0" in stored.tool_results[0].content[0].text  # type: ignore[union-attr]


def test_a_branch_summary_stands_where_the_branch_began_and_never_inside_a_batch() -> None:
    history = turns(2)
    asked, result = history[2], history[3]
    inside = entry(EntryKind.BRANCH_SUMMARY, "Tried B.", after=asked.id)
    behind = entry(EntryKind.BRANCH_SUMMARY, "Tried C.", after=history[-1].id)

    context = build_context(history, [inside, behind])

    at = next(place for place, message in enumerate(context) if "Tried B." in message.text)
    assert (context[at - 1], context[at].role) == (result, il.Role.USER)
    assert "Tried C." in context[-1].text
    assert len(context) == len(history) + 2


def test_a_covered_branch_is_in_the_summary_already() -> None:
    history = turns(2)
    branch = entry(EntryKind.BRANCH_SUMMARY, "Tried B.", after=history[1].id)
    summary = entry(EntryKind.COMPACTION_SUMMARY, "All of it.", {"covers": 5})

    assert "Tried B." not in str(seen(build_context(history, [branch, summary])))


def test_a_prompt_put_in_front_later_moves_the_places_of_entries() -> None:
    """An imported history was compacted without a system prompt, and is then opened with one."""
    history = turns(3)[1:]
    entries = [
        entry(EntryKind.COMPACTION_SUMMARY, "They read a file.", {"covers": 4}),
        entry(EntryKind.CUSTOM, data={"pruned": [6]}, custom_type=PRUNING),
    ]
    before = build_context(history, entries)
    after = build_context([il.system("Be brief."), *history], entries)

    assert seen(after) == ["system: Be brief.", *seen(before)]
    assert [one.content for one in after[1:]] == [one.content for one in before]
