"""Values: the entries of a session file, what a system finds in them, and the conversation they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import attrs

from interlingua import InterlinguaError
from interlingua.types import Message, ToolUseBlock

_Value = TypeVar("_Value")


class TranscriptError(InterlinguaError):
    """A file that cannot be read as a session, or a conversation that a system cannot hold.

    Attributes:
        path: the file, if there is one.
    """

    def __init__(self, message: str, *, path: str | Path | None = None) -> None:
        super().__init__(message if path is None else f"{path}: {message}")
        self.path = None if path is None else str(path)


class Note(NamedTuple):
    """Something a reader of the report should know.

    Attributes:
        entry: index of the entry it is about; None for the whole file.
        text: description.
    """

    entry: int | None
    text: str


class MessageGroup(NamedTuple):
    """Entries that make one message, or a message and the results of its calls.

    Attributes:
        key: identifies the group in its file, the same on every reading. Message ids derive from it.
        entries: indexes of its entries, rising; an entry is of one group at most.
        facts: additional facts of the format, such as the model of an earlier setting.
    """

    key: str
    entries: tuple[int, ...]
    facts: Any = None


class HeldSession(NamedTuple):
    """Facts about one of a file's conversations.

    Attributes:
        session_id: the system's id of it.
        title: its title.
        cwd: the folder it was held in.
        context: indexes of those of its messages that the model would see next, after a compaction. Default: all.
    """

    session_id: str
    title: str | None = None
    cwd: str | None = None
    context: Sequence[int] | None = None


@attrs.define
class ReadPlan:
    """The structure of a file's entries, found before any message is created; it holds indexes and ids only.

    Attributes:
        session_id: the system's id of the session.
        version: version of the format, as the file has it.
        groups: the conversation in order: the active branch.
        context: indexes of the groups that the model would see next, after a compaction, in its order; of a group of
            which it sees one message, the index with the message's own. Default: all.
        branches: index of an entry that belongs to another branch -> that branch's name.
        title: title of the session.
        cwd: the folder it was held in.
        notes: descriptions of what was repaired, guessed or not understood.
        sessions: of a file that holds several conversations, the facts about each group's; empty without any.
    """

    session_id: str
    version: str = ""
    groups: list[MessageGroup] = attrs.field(factory=list)
    context: list[int | tuple[int, int]] | None = None
    branches: dict[int, str] = attrs.field(factory=dict)
    title: str | None = None
    cwd: str | None = None
    notes: list[Note] = attrs.field(factory=list)
    sessions: Sequence[HeldSession] = ()

    def seen(self, found: Mapping[int, Sequence[_Value]]) -> list[_Value]:
        """Return what belongs to the context, in its order.

        Args:
            found: index of a group -> one value for each of its messages.
        """
        wanted = range(len(self.groups)) if self.context is None else self.context
        made: list[_Value] = []
        for one in wanted:
            of_group = found.get(one if isinstance(one, int) else one[0], ())
            made += of_group if isinstance(one, int) else of_group[one[1] : one[1] + 1]
        return made


@attrs.frozen(kw_only=True)
class Transcript:
    """One session of one system.

    Attributes:
        system: the system's name, such as `codex`.
        version: version of the format according to the file; "" if the file has no version.
        session_id: the system's id of the session.
        messages: the active branch as canonical messages.
        entries: every entry's JSON string as in the file, in file order; also entries that are not JSON.
        groups: which entries make which messages.
        counts: how many messages each group makes.
        context: the messages that the model would see next: fewer than `messages` after a compaction.
        branches: index of an entry that belongs to another branch -> that branch's name.
        title: title of the session.
        cwd: the folder it was held in.
        notes: descriptions of what was repaired, guessed or not understood.
    """

    system: str
    version: str
    session_id: str
    messages: Sequence[Message]
    entries: Sequence[bytes] = attrs.field(repr=False, default=())
    groups: Sequence[MessageGroup] = attrs.field(repr=False, default=())
    counts: Sequence[int] = attrs.field(repr=False, default=())
    context: Sequence[Message] = attrs.field(repr=False, default=())
    branches: Mapping[int, str] = attrs.field(repr=False, factory=dict)
    title: str | None = None
    cwd: str | None = None
    notes: tuple[Note, ...] = ()


class SessionPlace(NamedTuple):
    """Where an agent looks for a session.

    Attributes:
        path: path of the session's file.
        command: the command that continues it, run in the folder of the session.
        first: a command that must run before it, such as an import; empty without one.
    """

    path: Path
    command: tuple[str, ...]
    first: tuple[str, ...] = ()


class Written(NamedTuple):
    """One entry that a system writes.

    Attributes:
        value: its JSON value.
        messages: ids of the messages it concerns; empty for a header.
    """

    value: Any
    messages: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Conversation:
    """The conversation that a format writes.

    Attributes:
        messages: the messages, in order.
        session_id: the system's id of the session.
        created_at: when it began.
        title: its title.
        cwd: the folder it was held in.
        calls: canonical id of a call -> the call, of the whole conversation.
        spread: id of a message -> how many entries it had in the system's own file; empty for another system's session.
        before: the entries already in the file, if messages are added to a file; empty for a new file.
        branch: the entries of `before` that the new messages continue: the active branch as far as it is kept.
    """

    messages: Sequence[Message]
    session_id: str
    created_at: datetime
    title: str | None = None
    cwd: str | None = None
    calls: Mapping[str, ToolUseBlock] = attrs.field(factory=dict)
    spread: Mapping[str, int] = attrs.field(factory=dict)
    before: Sequence[Any] = ()
    branch: Sequence[Any] = ()

    def issued_id(self, tool_use_id: str) -> str:
        """Return the id that the service issued for a call; the canonical id if there is no issued one."""
        call = self.calls.get(tool_use_id)
        return tool_use_id if call is None else call.provider_id or call.id
