"""The context builder: from the stored history and the session-only entries to what a model is sent.

Pure and deterministic, and it never changes a stored message: what it makes is remembered on the message it comes from.
Sessions come in through the room's front door, and the policies to see what they have come to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from interlingua.types.blocks import TextBlock, ToolResultBlock
from interlingua.types.messages import Message, MessageMetadata, Role
from interlingua_sessions.compaction.layout import Layout, layout_of
from interlingua_sessions.store import SessionEntry

_SUMMARY = "The conversation so far was summarised to save space. The summary:\n\n<summary>\n{}\n</summary>"
_BRANCH = (
    "The conversation branched off here: another branch was tried and left. Its summary:\n\n<summary>\n{}\n</summary>"
)


def build_context(messages: Sequence[Message], entries: Sequence[SessionEntry]) -> Sequence[Message]:
    """Return what a model is sent of a session (seed 001, `build_session_context`).

    The newest compaction's summary comes first, as a user message behind all system messages that it covers, then what
    it does not cover. A branch's summary stands where the branch began, as a user message. Pruned tool results say that
    they were left out. Without such entries the history comes back as the same object.
    """
    layout = layout_of(entries)
    if layout.summary is None and not layout.pruned and not layout.branches:
        return messages
    covered = messages[: layout.covers]
    made = [message for message in covered if message.role is Role.SYSTEM]
    if layout.summary is not None:
        made += _summarised(covered, layout.summary)
    waiting = _by_place(messages, layout)
    for place in range(len(covered), len(messages)):
        message = messages[place]
        if waiting and message.role is not Role.TOOL:  # never between a call and its result
            made += _branches(waiting, place, message.session_id)
        made.append(_pruned(message) if place in layout.pruned else message)
    return made + _branches(waiting, len(messages), messages[-1].session_id if messages else "")


def _by_place(messages: Sequence[Message], layout: Layout) -> dict[int, list[SessionEntry]]:
    """Return the branch entries by the place they stand before; those in the covered part are in the summary."""
    if not layout.branches:
        return {}
    places = {message.id: place + 1 for place, message in enumerate(messages)}
    found: dict[int, list[SessionEntry]] = {}
    for entry in layout.branches:
        place = places.get(entry.after, 0) if entry.after is not None else 0
        if place >= layout.covers:
            found.setdefault(place, []).append(entry)
    return found


def _summarised(covered: Sequence[Message], entry: SessionEntry) -> list[Message]:
    """The summary under the id of the last message it stands for, so that ids go on increasing."""
    last = next((message for message in reversed(covered) if message.role is not Role.SYSTEM), None)
    if last is None:
        return []

    def make() -> Message:
        text = TextBlock(text=_SUMMARY.format(entry.text))
        return attrs.evolve(last, role=Role.USER, content=(text,), metadata=MessageMetadata())

    return [_remembered(last, ("interlingua_sessions.summary", entry.id), make)]


def _branches(waiting: dict[int, list[SessionEntry]], place: int, session_id: str) -> list[Message]:
    """Take the branches that begin up to this place."""
    begun = [entry for at in sorted(waiting) if at <= place for entry in waiting.pop(at)]
    return [_branch(entry, session_id) for entry in begun]


def _branch(entry: SessionEntry, session_id: str) -> Message:
    text = TextBlock(text=_BRANCH.format(entry.text))
    return Message(id=entry.id, session_id=session_id, role=Role.USER, content=(text,), created_at=entry.created_at)


def _pruned(message: Message) -> Message:
    def make() -> Message:
        content = tuple([_emptied(block) if isinstance(block, ToolResultBlock) else block for block in message.content])
        return attrs.evolve(message, content=content)

    return _remembered(message, "interlingua_sessions.pruned", make)


def _emptied(block: ToolResultBlock) -> ToolResultBlock:
    text = f"[the result of {block.tool_name or 'this call'} was removed to save space]"
    return attrs.evolve(block, content=(TextBlock(text=text),))


def _remembered(message: Message, key: Any, make: Callable[[], Message]) -> Message:
    made: Message | None = message.memo.get(key)
    if made is None:
        made = message.memo[key] = make()
    return made
