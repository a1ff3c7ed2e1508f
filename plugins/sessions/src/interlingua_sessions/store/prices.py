"""Retroactive pricing: stored messages priced anew, and what they cost before (seed 003 §6.3).

Never computes a cost (core does) and never forgets one. The store comes in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

import orjson

from interlingua import CallerError
from interlingua.catalogue import ModelInfo
from interlingua.codec import decode_message, encode_message
from interlingua.pricing import reprice as repriced
from interlingua.types import Message, MessageMetadata, Role, Usage
from interlingua_sessions.store.lines import now_stamp, time_of
from interlingua_sessions.store.records import Repriced
from interlingua_sessions.store.revising import Revising

INSERT = "INSERT INTO repricings (message_id, repriced_at, old_usage_json, new_usage_json) VALUES (?, ?, ?, ?)"
_HISTORY = """
    SELECT m.session_id, m.id, r.old_usage_json, r.new_usage_json, r.repriced_at
    FROM repricings r JOIN messages m ON m.id = r.message_id
    WHERE m.session_id = ? ORDER BY r.repriced_at, m.id"""


class Prices(Revising):
    """See `Store`."""

    def reprice(
        self,
        lookup: Callable[[str], ModelInfo | None],
        *,
        session_id: str | None = None,
        at: datetime | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Iterator[Repriced]:
        """See `Store.reprice`."""
        return self.revised(lambda message: repriced([message], lookup, at)[0], self._keep_prices, session_id, progress)

    def price_history(self, session_id: str) -> list[Repriced]:
        """See `Store.price_history`."""
        return [
            Repriced(
                session_id=session,
                message_id=message,
                old=_usage_of(old),
                new=_usage_of(new),
                repriced_at=time_of(stamp),
            )
            for session, message, old, new, stamp in self._db.rows(_HISTORY, (session_id,))
        ]

    def _keep_prices(self, old: Message, new: Message) -> Repriced:
        before, after = old.metadata.usage, new.metadata.usage
        if before is None or after is None:
            raise CallerError(f"message {old.id} has no usage to price")
        stamp = now_stamp()
        self._db.run(INSERT, (new.id, stamp, _usage_json(before), _usage_json(after)))
        when = time_of(stamp)
        return Repriced(session_id=new.session_id, message_id=new.id, old=before, new=after, repriced_at=when)


def _usage_json(usage: Usage) -> str:
    """Write a usage; core's codec writes usages inside messages only."""
    message = Message(role=Role.ASSISTANT, content=(), metadata=MessageMetadata(usage=usage))
    return orjson.dumps(encode_message(message)["metadata"]["usage"]).decode()


def _usage_of(text: str) -> Usage:
    carrier = {"role": "assistant", "content": [], "metadata": {"usage": orjson.loads(text)}}
    return decode_message(carrier).metadata.usage or Usage()
