"""Warn when a request no longer extends the one before it: the provider's prompt cache is lost."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from threading import Lock
from typing import Any, NamedTuple

from interlingua.catalogue import ModelInfo
from interlingua.errors import InterlinguaError
from interlingua.plugins.provider import Provider
from interlingua.plugins.registry import Registry
from interlingua.types.messages import Message, Role
from interlingua.types.options import AdapterOptions
from interlingua.types.tools import ToolDefinition

_log = logging.getLogger("interlingua")


_SESSIONS = 32


"""So many conversations a client remembers, and so keeps in memory, one request each."""


_LAST = 32


class Sent(NamedTuple):
    """What a request's prefix is made of; all messages but the last stand apart, as `fragments` keeps them."""

    provider: Provider
    model: str
    older: Sequence[Message]
    last: Message
    tools: Sequence[ToolDefinition]

    @property
    def messages(self) -> list[Message]:
        """All messages."""
        return [*self.older, self.last]


class Prefixes:
    """The last request of each session; safe for use from several threads."""

    def __init__(self) -> None:
        self._last: dict[str, Sent] = {}
        self._lock = Lock()

    def changed(self, sent: Sent, *, grown: bool) -> tuple[Sent, int] | None:
        """Remember a request; return the one before it and how many messages both begin with, where it was edited.

        Args:
            sent: the request.
            grown: its messages are known to begin with some that were sent before.
        """
        session = sent.last.session_id
        with self._lock:
            before = self._last.pop(session, None)
            self._last[session] = sent
            if len(self._last) > _SESSIONS:
                del self._last[next(iter(self._last))]
        if before is None or before.model != sent.model or before.provider is not sent.provider:
            return None  # a swap is asked for; what it costs `explain` tells
        if before.tools is not sent.tools and list(before.tools) != list(sent.tools):
            return (before, 0) if _same_talk(before, sent) else None  # tools stand before all messages
        if grown:
            return None
        early, late = before.messages, sent.messages
        same = _common(early, late)
        whole = same in (len(early), len(late))
        return None if whole or not _same_talk(before, sent) else (before, same)


def _common(early: Sequence[Message], late: Sequence[Message]) -> int:
    pairs = zip(early, late, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a is not b and a != b), min(len(early), len(late)))


def _same_talk(before: Sent, sent: Sent) -> bool:
    """True when what is said first is in both, or something of what is said last (a beginning may have been folded).

    Many talks may share a session's name, and one system prompt.
    """
    early, late = before.messages, sent.messages
    first = _first_said(early)
    if first is not None and first == _first_said(late):
        return True
    said = {message.id for message in early[-_LAST:] if message.role is not Role.SYSTEM}
    return any(message.id in said for message in late[-2 * _LAST :])


def _first_said(messages: Sequence[Message]) -> str | None:
    return next((message.id for message in messages if message.role is not Role.SYSTEM), None)


def tell(
    before: Sent, kept: int, sent: Sent, options: AdapterOptions, info: ModelInfo | None, registry: Registry
) -> None:
    """Say what a changed prefix costs: one WARN, and one event for whoever observes.

    Args:
        before: the request before it.
        kept: messages both begin with.
        sent: the request about to be sent.
        options: its options.
        info: catalogue row of its model.
        registry: who observes.
    """
    fields: dict[str, Any] = {
        "session_id": sent.last.session_id,
        "provider": sent.provider.key,
        "model": sent.model,
        "message": kept,
        "tokens": None,
        "cost_usd": None,
        "cost_note": "this adapter estimates no tokens",
    }
    with suppress(InterlinguaError):  # the request is not held back for an estimate
        fields |= _cost(before, kept, sent, options, info)
    if fields["tokens"] == 0:
        return  # what was edited had not been cached
    _log.warning(
        "changed prefix: session_id=%(session_id)s model=%(provider)s:%(model)s from message=%(message)s "
        "lost_tokens=%(tokens)s cost_usd=%(cost_usd)s note=%(cost_note)s",
        fields,
        extra={"changed_prefix": fields},
    )
    registry.observe({"type": "prefix.changed", **fields})


def _cost(before: Sent, kept: int, sent: Sent, options: AdapterOptions, info: ModelInfo | None) -> dict[str, Any]:
    from interlingua.pricing import lost_cache  # noqa: PLC0415  only for a prefix that changed

    def tokens(messages: Sequence[Message]) -> int:
        return sent.provider.estimate_input_tokens(messages, sent.tools, options) if messages else 0

    still = tokens(sent.messages[:kept])
    lost = lost_cache(before.messages, tokens(sent.messages), info, datetime.now(UTC), tokens, still=still)
    return {
        "tokens": lost.tokens,
        "cost_usd": None if lost.cost_usd is None else f"{lost.cost_usd:f}",
        "cost_note": lost.cost_note,
    }
