"""What blocking and asynchronous sessions have in common: opening, looking, switching, adding, closing.

Never sends. The two session classes come in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from interlingua.http.async_client import AsyncClient
from interlingua.http.client import Client
from interlingua.types.messages import Message
from interlingua_sessions.compaction import build_context
from interlingua_sessions.routing import PatternStore, RoutingPolicy
from interlingua_sessions.session.api import ContextBuilder, ToolLoop
from interlingua_sessions.session.core import Core, Setup
from interlingua_sessions.session.prompt import SystemPrompt
from interlingua_sessions.store import SessionEntry, SessionRecord, Store, open_store
from interlingua_sessions.tools import AgentLoop, Toolbox


class SessionBase:
    """Everything of a session that does not wait for a model."""

    def __init__(self, core: Core) -> None:
        self._core = core

    @property
    def id(self) -> str:
        """The session's id."""
        return self._core.id

    @property
    def store(self) -> Store:
        """Where it is kept."""
        return self._core.store

    @property
    def record(self) -> SessionRecord:
        """What the store knows of the session itself, as of the last turn."""
        return self._core.record

    @property
    def messages(self) -> Sequence[Message]:
        """The history, oldest first, as of the last turn."""
        return tuple(self._core.messages)

    @property
    def entries(self) -> Sequence[SessionEntry]:
        """The session-only entries, oldest first."""
        return tuple(self._core.entries)

    @property
    def active_model(self) -> str | None:
        """The model the session was switched to; None where the policy decides."""
        return self._core.record.active_model

    @property
    def policy(self) -> RoutingPolicy:
        """The session's routing policy."""
        return self._core.policy

    def context(self) -> Sequence[Message]:
        """What the next turn sends, its question left out."""
        return self._core.context()

    def refresh(self) -> None:
        """Take in what other processes did to the session since; each turn begins with it."""
        self._core.refresh()

    def add(self, message: Message) -> Message:
        """Append a message by hand, such as an earlier exchange; returns it as stored."""
        return self._core.append([message])[0]

    def switch(self, model: str | None, *, reason: str | None = None) -> str | None:
        """Answer with this model from now on (seed 003 §8.3); None lets the policy decide again.

        Args:
            model: canonical model id or alias.
            reason: kept, and repeated in the record of each message it decides.

        Returns:
            The model's canonical id.

        Raises:
            SwapRefused: it cannot carry the session (seed 003 §8.4); the active model is unchanged.
            CallerError: the name is no model id and no alias, or its provider is not installed.
        """
        return self._core.switch(model, reason)


def opened(
    store: Store | str | Path,
    session_id: str | None,
    client: Client | AsyncClient,
    *,
    model: str | None,
    system: str | SystemPrompt | None,
    policy: RoutingPolicy | None,
    patterns: PatternStore | None,
    user_id: str | None,
    team_id: str | None,
    workspace: str,
    context: ContextBuilder | None,
    options: Mapping[str, Any] | None,
) -> tuple[Core, Store | None]:
    """Open what a session stands on; returns it with the store if it was opened here."""
    setup = Setup(
        registry=client.registry,
        last_resort=model or client.model,
        prompt=SystemPrompt.of(system),
        patterns=patterns,
        user_id=user_id,
        team_id=team_id,
        context=context or build_context,
        options=dict(options or {}),
    )
    if not isinstance(store, (str, Path)):
        return Core.open(store, session_id, setup, workspace=workspace, policy=policy), None
    mine = open_store(store)
    try:
        return Core.open(mine, session_id, setup, workspace=workspace, policy=policy), mine
    except BaseException:
        mine.close()
        raise


def running(tools: ToolLoop | Toolbox) -> ToolLoop:
    """Return what runs these tools: a toolbox by itself gets a loop with the usual limits."""
    return AgentLoop(tools) if isinstance(tools, Toolbox) else tools
