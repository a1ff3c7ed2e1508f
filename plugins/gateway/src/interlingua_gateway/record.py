"""Record conversations as sessions of interlingua-sessions, if the configuration sets `record`.

Callers send their whole history with every request. A digest of the parts of each message that every API shows
identifies the recorded beginning, so that only new messages are appended to the session.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import attrs
import orjson

from interlingua.errors import CallerError
from interlingua.types import Message, MessageStatus, Role, ToolResultBlock, ToolUseBlock, new_tool_use_id, new_ulid
from interlingua_gateway.recall import shown
from interlingua_gateway.store import GatewayStore, ask_store
from interlingua_serving import InboundRequest

if TYPE_CHECKING:
    from interlingua_sessions import Store

_log = logging.getLogger("interlingua.gateway")


class ConversationRecorder:
    """Appends conversations to a store of sessions.

    A session belongs to one tenant: its `workspace_path` is `gateway:` and the tenant's name. A repeated request, or
    one with an edited history, starts a new session.

    Args:
        place: the store of sessions: a file, or `postgresql://…`.
        heads: the gateway's store, which holds the end of each recorded session.

    Raises:
        CallerError: interlingua-sessions is not installed.
        StoreError: the store cannot be opened.
    """

    def __init__(self, place: str, heads: GatewayStore) -> None:
        try:
            from interlingua_sessions import open_store  # noqa: PLC0415  an extra
        except ImportError as error:
            raise CallerError("record: pip install 'interlingua-gateway[record]'") from error
        self._store: Store = open_store(place)
        self._heads = heads
        self._turns: dict[str, asyncio.Lock] = {}

    async def append(self, tenant: str, model: str, request: InboundRequest, answer: Message) -> bool:
        """Record a request's conversation and its answer; return False if that failed.

        Args:
            tenant: the caller.
            model: the `provider:model` that answered.
            request: the request as the caller sent it.
            answer: the answer, or the part that was received.
        """
        try:
            async with self._turns.setdefault(tenant, asyncio.Lock()):  # in the order of the answers
                await ask_store(self._append, tenant, model, request.messages, answer)
        except Exception as error:  # recording must not make an answer fail
            _log.warning("a conversation was not recorded: %s", type(error).__name__)  # messages of errors may quote it
            return False
        return True

    def _append(self, tenant: str, model: str, history: Sequence[Message], answer: Message) -> None:
        digests = list(digests_of(history))
        found = self._heads.take_session(tenant, digests)
        session, known = (found[0], digests.index(found[1]) + 1) if found else (None, 0)
        ids: dict[str, str] = {}
        if session is None:
            session = self._store.create_session(workspace_path=f"gateway:{tenant}", active_model=model).id
        else:
            calls = next((each.tool_calls for each in reversed(history[:known]) if each.role is Role.ASSISTANT), [])
            ids = {call.id: kept.id for call, kept in zip(calls, self._last_calls(session), strict=False)}
        for message in history[known:]:
            self._store.append(_fresh(message, session, ids))
        final = _fresh(answer, session, ids)
        if answer.metadata.status is MessageStatus.PARTIAL:
            self._store.save_partial(final)
        else:
            self._store.append(final)
        ends = list(digests_of([*history, answer]))[-1:]
        cut = answer.metadata.status is not MessageStatus.COMPLETE
        if cut and any(each.role is not Role.SYSTEM for each in history):
            ends += digests[-1:]  # the next request continues after the cut answer
        self._heads.keep_session(tenant, session, ends)

    def _last_calls(self, session: str) -> Sequence[ToolUseBlock]:
        """Return the calls of the newest complete answer, whose results may be in the next request."""
        for message in self._store.messages(session, newest_first=True):
            if message.role is Role.ASSISTANT and message.metadata.status is MessageStatus.COMPLETE:
                return message.tool_calls
        return ()

    def close(self) -> None:
        """Close the store."""
        self._store.close()


def digests_of(messages: Sequence[Message]) -> Iterator[str]:
    """Yield a digest of the conversation up to each message, without system messages: agents change those often."""
    running = hashlib.sha256()
    for message in messages:
        if message.role is not Role.SYSTEM:
            media = [
                hashlib.sha256(str(source.data).encode()).hexdigest()
                for block in message.content
                for part in (block.content if isinstance(block, ToolResultBlock) else (block,))
                if (source := getattr(part, "source", None)) is not None
            ]
            running.update(orjson.dumps([message.role.value, shown(message), media]) + b"\n")
        yield running.hexdigest()[:40]


def _fresh(message: Message, session: str, ids: dict[str, str]) -> Message:
    """Return a message with new ids: the ids of callers are unique in one conversation only."""
    content: list[Any] = []
    for block in message.content:
        if isinstance(block, ToolUseBlock):
            ids[block.id] = new_tool_use_id()
            content.append(attrs.evolve(block, id=ids[block.id]))
        elif isinstance(block, ToolResultBlock):
            content.append(attrs.evolve(block, tool_use_id=_known(ids, block.tool_use_id)))
        else:
            content.append(block)
    metadata = message.metadata
    if metadata.parent_tool_use_id:
        metadata = attrs.evolve(metadata, parent_tool_use_id=_known(ids, metadata.parent_tool_use_id))
    return attrs.evolve(
        message, id=new_ulid(), session_id=session, content=tuple(content), metadata=metadata,
        created_at=datetime.now(UTC),
    )  # fmt: skip


def _known(ids: Mapping[str, str], name: str) -> str:
    return ids.get(name, name)
