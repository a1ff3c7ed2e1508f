"""What may be known and added while a turn runs: the behaviour behind `session.api.Facts`.

Never decides and never sends. The turn comes in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from interlingua.types.messages import Message
from interlingua.types.tools import ToolDefinition
from interlingua_sessions.routing import Decision
from interlingua_sessions.session.core import Core
from interlingua_sessions.store import EntryKind, SessionEntry, Store


class TurnFacts(ABC):
    """The facts of one turn over one session."""

    def __init__(self, core: Core, options: Mapping[str, Any]) -> None:
        self._core = core
        self._options = {**core.setup.options, **options}

    @property
    @abstractmethod
    def decision(self) -> Decision:
        """The decision of the turn so far."""

    @property
    def id(self) -> str:
        """The session's id."""
        return self._core.id

    @property
    def store(self) -> Store:
        """Where the session is kept."""
        return self._core.store

    @property
    def messages(self) -> Sequence[Message]:
        """The stored history."""
        return self._core.messages

    @property
    def entries(self) -> Sequence[SessionEntry]:
        """The session-only entries."""
        return self._core.entries

    @property
    def model(self) -> str:
        """Canonical id of the model this turn asks."""
        return self.decision.model

    @property
    def window(self) -> int:
        """The context window of `model` in tokens; 0 when unknown."""
        router = self._core.router
        return router.window(router.registry.resolve(self.model), self._options)

    def context(self) -> Sequence[Message]:
        """What the next step would send."""
        return self._core.context()

    def estimate(self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = ()) -> int:
        """Estimate the input tokens of messages and tools at `model`."""
        router = self._core.router
        return router.estimated(router.registry.resolve(self.model), messages, tools, self._options)

    def add(self, message: Message) -> Message:
        """Append a message to the session; returns it as stored."""
        return self._core.append([message])[0]

    def add_entry(
        self, kind: EntryKind, text: str = "", *, custom_type: str | None = None, data: Mapping[str, Any] | None = None
    ) -> SessionEntry:
        """Append a session-only entry."""
        entry = self.store.append_entry(self.id, kind, text, custom_type=custom_type, data=data)
        self._core.entries.append(entry)
        return entry
