"""A session: a stored conversation, and the turns that go on with it.

Never a wire and never a database: the client sends, the store keeps. Applications come in, through
`interlingua_sessions`; tools and compaction come in by `session.api` alone, so nothing else is loaded for them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interlingua_sessions.session.aio import AsyncSession, AsyncTurn
    from interlingua_sessions.session.aio_stream import AsyncSessionStream
    from interlingua_sessions.session.prompt import SystemPrompt
    from interlingua_sessions.session.sync import Session, Turn
    from interlingua_sessions.session.sync_stream import SessionStream

_LATER = {
    "AsyncSession": "aio",
    "AsyncSessionStream": "aio_stream",
    "AsyncTurn": "aio",
    "Session": "sync",
    "SessionStream": "sync_stream",
    "SystemPrompt": "prompt",
    "Turn": "sync",
}

__all__ = [
    "AsyncSession",
    "AsyncSessionStream",
    "AsyncTurn",
    "Session",
    "SessionStream",
    "SystemPrompt",
    "Turn",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    globals()[name] = value
    return value
