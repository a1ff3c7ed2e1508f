"""One session in memory: its record, history and entries as the store has them, and how they grow."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import attrs

from interlingua.plugins import Registry
from interlingua.types import Message, MessageStatus, Role, system
from interlingua_sessions.routing.needs import NeedsRecord, PatternStore, RoutedTurn
from interlingua_sessions.routing.policy import RoutingPolicy, decode_policy, encode_policy
from interlingua_sessions.routing.router import Chain, Router
from interlingua_sessions.store import SessionEntry, SessionExistsError, SessionNotFoundError, SessionRecord, Store

ContextBuilder: TypeAlias = Callable[[Sequence[Message], Sequence[SessionEntry]], Sequence[Message]]
"""From the stored history and the session-only entries to what a model is sent; deterministic.

Returning the same Message objects for an unchanged prefix keeps a turn cheap and its request a byte prefix of the next.
"""


@attrs.frozen(kw_only=True)
class SystemPrompt:
    """What a system prompt is made of: base instructions, and sections such as memory, skills, the workspace.

    Attributes:
        base: the instructions.
        sections: title -> text, in order; an empty text is left out.
        agent: the agent's name as `base` and the sections write it.
        display_name: what stands in its place, everywhere; None leaves it.
    """

    base: str
    sections: Mapping[str, str] = attrs.field(factory=dict)
    agent: str = ""
    display_name: str | None = None

    def text(self) -> str:
        """Return the whole prompt."""
        titled = (f"# {title}\n\n{text.strip()}" for title, text in self.sections.items() if text.strip())
        whole = "\n\n".join(part for part in (self.base.strip(), *titled) if part)
        if not (self.agent and self.display_name):
            return whole
        name = self.display_name
        return re.sub(rf"(?<!\w){re.escape(self.agent)}(?!\w)", lambda _: name, whole)

    @classmethod
    def of(cls, given: str | SystemPrompt | None) -> SystemPrompt | None:
        """Return what a caller gave as a prompt."""
        return cls(base=given) if isinstance(given, str) else given

    def message(self, session_id: str) -> Message | None:
        """Return it as a message; None where it is empty."""
        whole = self.text()
        return system(whole, session_id=session_id) if whole else None


@attrs.frozen(kw_only=True)
class SessionSetup:
    """What a session is opened with, besides its store and its id.

    Attributes:
        registry: the providers it may use.
        last_resort: the model used when its policy names none.
        prompt: put in front of a conversation that has no system message.
        patterns: recommends models.
        user_id: stable pseudonymous id written onto every message; it is not sent to a provider.
        team_id: likewise.
        context: from history and entries to what a model sees.
        options: request options of every turn.
    """

    registry: Registry
    last_resort: str | None = None
    prompt: SystemPrompt | None = None
    patterns: PatternStore | None = None
    user_id: str | None = None
    team_id: str | None = None
    context: ContextBuilder
    options: Mapping[str, Any] = attrs.field(factory=dict)


class SessionState:
    """The state that blocking and asynchronous sessions share; one thread at a time."""

    def __init__(self, store: Store, record: SessionRecord, setup: SessionSetup) -> None:
        self.store = store
        self.record = record
        self.setup = setup
        self.router = Router(setup.registry)
        self.needs = NeedsRecord()
        with gc_paused():
            self.messages: list[Message] = list(store.messages(record.id))
        self.entries: list[SessionEntry] = store.entries(record.id)
        self._unfinished = _unfinished(self.messages)

    @classmethod
    def open(
        cls, store: Store, session_id: str | None, setup: SessionSetup, *, workspace: str, policy: RoutingPolicy | None
    ) -> SessionState:
        """Read a session, or make it; a policy that is given replaces the stored one."""
        written = None if policy is None else encode_policy(policy)
        record = _read_record(store, session_id)
        if record is None:
            try:
                record = store.create_session(session_id, workspace_path=workspace, routing_policy=written)
            except SessionExistsError:  # another process made it meanwhile
                record = store.session(str(session_id))
        if written is not None and written != record.routing_policy:
            record = store.update_session(record.id, routing_policy=written)
        return cls(store, record, setup)

    # -- what is known ------------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The session's id."""
        return self.record.id

    @property
    def policy(self) -> RoutingPolicy:
        """The session's routing policy."""
        return decode_policy(self.record.routing_policy)

    @property
    def chain(self) -> Chain:
        """The policies as they stand."""
        setup = self.setup
        return Chain(
            policy=self.policy,
            sticky=self.record.active_model,
            patterns=setup.patterns,
            last_resort=setup.last_resort,
        )

    def context(self) -> Sequence[Message]:
        """What the next step sends."""
        return self.setup.context(self.messages, self.entries)

    @property
    def last_id(self) -> str:
        """Id of the newest message that was read; empty where there is none."""
        return self.messages[-1].id if self.messages else ""

    # -- how it grows -------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Read what others did to the session since: one statement, unless an answer was unfinished or entries came."""
        if self._unfinished:
            now = {at: self.store.message(at) for at in self._unfinished}
            self.messages = [now.get(message.id, message) for message in self.messages]
            self._unfinished = _unfinished(now.values())
        changes = self.store.changes(self.id, after=self.last_id)
        self.record = changes.record
        self.messages += changes.messages
        self._unfinished += _unfinished(changes.messages)
        if changes.last_entry_id != (self.entries[-1].id if self.entries else None):
            self.entries = self.store.entries(self.id)

    def append(self, messages: Sequence[Message], opening: Message | None = None) -> list[Message]:
        """Store messages of this session in one transaction; returns them as stored. `opening` as `Store.extend`."""
        rows = self.store.extend(
            [self.owned(message) for message in messages],
            opening=None if opening is None else self.owned(opening),
            after=self.last_id,
        )
        self.take_in(rows)
        return rows[len(rows) - len(messages) :]

    def take_in(self, rows: Sequence[Message]) -> None:
        """Add what was just stored, with what others stored before it; a PARTIAL that was read is replaced."""
        last = self.last_id
        fresh = [message for message in rows if message.id > last]
        if len(fresh) < len(rows):
            finished = {message.id: message for message in rows if message.id <= last}
            self.messages = [finished.get(message.id, message) for message in self.messages]
        self.messages += fresh
        self._unfinished += _unfinished(fresh)

    def owned(self, message: Message) -> Message:
        """Return a message as this session's, credited to its user and team unless it names others."""
        metadata, setup = message.metadata, self.setup
        user, team = metadata.user_id or setup.user_id, metadata.team_id or setup.team_id
        if (user, team) != (metadata.user_id, metadata.team_id):
            message = attrs.evolve(message, metadata=attrs.evolve(metadata, user_id=user, team_id=team))
        return message if message.session_id == self.id else attrs.evolve(message, session_id=self.id)

    def opening(self) -> Message | None:
        """Return the system prompt as a message, where the conversation has none yet."""
        prompt = self.setup.prompt
        if prompt is None or any(message.role is Role.SYSTEM for message in self.messages):
            return None
        return prompt.message(self.id)

    def switch(self, model: str | None, reason: str | None) -> str | None:
        """Make a model the session's own from now on, or with None go back to the policy.

        Returns:
            Its canonical id.

        Raises:
            SwapRefusedError: it cannot carry the session; nothing changed.
            CallerError: the name is no model id and no alias, or its provider is not installed.
        """
        self.refresh()
        name = None
        if model is not None:
            turn = RoutedTurn(
                session_id=self.id, messages=self.context(), options=self.setup.options, record=self.needs
            )
            name = self.router.check_swap(self.chain, turn, model)
        policy = self.policy
        policy = attrs.evolve(policy, manual_reason=reason or RoutingPolicy().manual_reason)
        self.record = self.store.update_session(
            self.id, active_model=name, routing_policy=encode_policy(policy) or None
        )
        return name


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pause Python's cycle collector while a whole history is read; it goes on afterwards, unless it was off before.

    Every few hundred new objects start the collector, and each time it walks over what was just read, all of which
    stays (docs/explanation/performance.md). Of two threads that do this at once, the first to finish ends the pause for
    both: that costs time and nothing else.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _read_record(store: Store, session_id: str | None) -> SessionRecord | None:
    try:
        return store.session(session_id) if session_id is not None else None
    except SessionNotFoundError:
        return None


def _unfinished(messages: Iterable[Message]) -> list[str]:
    """Return the ids of answers that some process is, or was, still receiving."""
    partial = MessageStatus.PARTIAL
    return [message.id for message in messages if message.metadata.status is partial]
