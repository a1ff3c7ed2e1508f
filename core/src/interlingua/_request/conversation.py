"""What was worked out for a conversation's messages, kept so that a longer one costs its new messages only.

A `ConversationState` hangs on the newest message it covers and dies with the conversation. It is looked up, never
trusted: it serves a request only as far as each message is the very same object. `Message._prepared` is read and
written here alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from operator import is_
from threading import Lock
from typing import Any, NamedTuple

from interlingua._catalogue import ModelInfo
from interlingua._plugins.provider import ProjectionTarget, Provider
from interlingua._plugins.registry import Registry
from interlingua._pricing import lost_cache
from interlingua._request.media import MessageMedia, find_media
from interlingua._request.project import Projection, project_conversation
from interlingua._request.rules import Violation, check_message, is_plain, locate_violations
from interlingua.errors import InterlinguaError
from interlingua.types.messages import Message, Role
from interlingua.types.options import RequestOptions
from interlingua.types.tools import ToolDefinition

_log = logging.getLogger("interlingua")
_REACH = 64  # how many new messages a conversation may have got
_RECENT = 32  # messages at the end in which two requests of one conversation share some
_TARGETS = 4  # how many targets' projections are kept


class ConversationState:
    """What is known of a conversation: checked messages, their media, and a projection for each of the last targets.

    Attributes:
        messages: the messages it covers; it only grows.
        media: index -> resolved media, of the messages that hold some.
    """

    def __init__(
        self,
        messages: Sequence[Message],
        earlier: ConversationState | None = None,
        cache: ConversationCache | None = None,
    ) -> None:
        """Begin with these messages; what `earlier` knows of media of the very same ones is used again."""
        self.messages = list(messages)
        self.media: dict[int, MessageMedia] = {}
        self._known_media = {id(one.message): one for one in list(earlier.media.values())} if earlier else {}
        self._checked = 0
        self._projections: dict[ProjectionTarget, Projection] = {}
        self.key = 0  # in the cache
        self._cache = cache
        self._lock = Lock()
        self._lock.acquire()
        self.release = self._lock.release  # lets others use this

    def check(self) -> list[Violation]:
        """Return what forbids sending the messages that were not checked before; where nothing does, note their media.

        Paths are places in the conversation.
        """
        found: list[Violation] = []
        special = [at for at in range(self._checked, len(self.messages)) if not is_plain(self.messages[at])]
        for index in special:
            violations = locate_violations(check_message(self.messages[index]), index)
            found += [one for one in violations if not one.repairable]
        if found:
            del self.messages[self._checked :]
            return found
        for index in special:
            message = self.messages[index]
            if media := self._known_media.get(id(message)) or find_media(message):
                self.media[index] = media
        self._checked = len(self.messages)
        return found

    def project(self, target: ProjectionTarget, messages: Sequence[Message]) -> Projection:
        """Return the projection of these messages, this conversation's with their media resolved, into a target."""
        projection = self._projections.pop(target, None)
        if projection is None or not projection.covers(messages):
            projection = Projection(target, projection)
        projection.extend(messages[len(projection.sources) :])
        self._projections[target] = projection
        while len(self._projections) > _TARGETS:
            del self._projections[next(iter(self._projections))]
        return projection

    def __enter__(self) -> ConversationState:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Let others use this; where nothing failed the cache has it for the next request."""
        if kind is None and self.messages and self._cache is not None:
            self._cache.keep(self)
        self.release()


class ConversationCache:
    """The last conversations that one client sent, each found by its newest message; safe for several threads.

    It holds no more than `size` of them, so what is kept of a conversation that ended goes when others have been sent.
    """

    def __init__(self, size: int = 32) -> None:
        self._size = size
        self._found: dict[int, ConversationState] = {}  # an entry holds its messages, so their ids stay theirs
        self._lock = Lock()

    def claim(self, messages: Sequence[Message]) -> ConversationState:
        """Return what is known of these messages, for the caller alone until `release` or the end of its `with`.

        Nothing waits: where another request has it, all but resolved media is worked out anew. A conversation that was
        edited, forked or cut gets its own, which begins with what was written of the same messages.
        """
        get = self._found.get
        for message in messages[: -_REACH - 1 : -1]:
            found = get(id(message))
            if found is None:
                continue
            if not found._lock.acquire(blocking=False):
                return ConversationState(messages, found, self)
            known = found.messages
            if len(known) <= len(messages) and all(map(is_, known, messages)):
                known += messages[len(known) :]
                return found
            made = ConversationState(messages, found, self)
            made._projections = {target: Projection(target, one) for target, one in found._projections.items()}
            found.release()
            return made
        return ConversationState(messages, None, self)

    def keep(self, conversation: ConversationState) -> None:
        """Remember a conversation by its newest message, and forget the one that was not used for longest."""
        key = id(conversation.messages[-1])
        with self._lock:
            if self._found.get(conversation.key) is conversation:
                del self._found[conversation.key]
            self._found.pop(key, None)
            conversation.key = key
            self._found[key] = conversation
            if len(self._found) > self._size:
                del self._found[next(iter(self._found))]

    def clear(self) -> None:
        """Forget all."""
        self._found.clear()


class _Sent(NamedTuple):
    """A request's prefix: provider, model, tools, and the first `length` messages of a conversation."""

    provider: Provider
    model: str
    tools: Sequence[ToolDefinition]
    conversation: ConversationState
    length: int

    @property
    def messages(self) -> list[Message]:
        return self.conversation.messages[: self.length]


class PrefixWatch:
    """Warns before sending when a request no longer extends the one before it: the provider's prompt cache is lost.

    Remembers the last request of each of 32 sessions; safe for use from several threads.
    """

    _SESSIONS = 32

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._last: dict[str, _Sent] = {}
        self._lock = Lock()

    def check(
        self,
        conversation: ConversationState,
        provider: Provider,
        tools: Sequence[ToolDefinition],
        options: RequestOptions,
        model_info: Callable[[], ModelInfo | None],
    ) -> None:
        """Remember a request about to be sent; warn and tell observers where the one before it was edited."""
        sent = _Sent(provider, options.model, tools, conversation, len(conversation.messages))
        with self._lock:
            session = conversation.messages[-1].session_id
            before = self._last.pop(session, None)
            self._last[session] = sent
            if len(self._last) > self._SESSIONS:
                del self._last[next(iter(self._last))]
        if before is None or before.model != sent.model or before.provider is not provider:
            return  # a swap is asked for; what it costs `explain` says
        if before.tools is not tools and list(before.tools) != list(tools):
            same = 0  # tools precede all messages
        elif before.conversation is conversation and before.length <= sent.length:
            return
        else:
            pairs = zip(before.messages, sent.messages, strict=False)
            shorter = min(before.length, sent.length)
            same = next((at for at, (a, b) in enumerate(pairs) if a is not b and a != b), shorter)
            if same == shorter:
                return
        if _are_one_conversation(before.messages, sent.messages):
            self._warn(before, same, sent, options, model_info())

    def _warn(self, before: _Sent, kept: int, sent: _Sent, options: RequestOptions, info: ModelInfo | None) -> None:
        """Log and report what a changed prefix costs; `kept` messages are in both requests."""
        fields: dict[str, Any] = {
            "session_id": sent.messages[-1].session_id,
            "provider": sent.provider.key,
            "model": sent.model,
            "message": kept,
            "tokens": None,
            "cost_usd": None,
            "cost_note": "this adapter estimates no tokens",
        }
        target = sent.provider.target(options)

        def count(messages: Sequence[Message]) -> int:
            projected = project_conversation(messages, target)[0]
            return sent.provider.estimate_input_tokens(projected, sent.tools, options) if messages else 0

        with suppress(InterlinguaError):  # the request is not held back for an estimate
            still, every = count(sent.messages[:kept]), count(sent.messages)
            lost = lost_cache(before.messages, every, info, datetime.now(UTC), count, still=still)
            cost = None if lost.cost_usd is None else f"{lost.cost_usd:f}"
            fields |= {"tokens": lost.tokens, "cost_usd": cost, "cost_note": lost.cost_note}
        if fields["tokens"] == 0:
            return  # what was edited had not been cached
        _log.warning(
            "changed prefix: session_id=%(session_id)s model=%(provider)s:%(model)s from message=%(message)s "
            "lost_tokens=%(tokens)s cost_usd=%(cost_usd)s note=%(cost_note)s",
            fields,
            extra={"changed_prefix": fields},
        )
        self._registry.observe({"type": "prefix.changed", **fields})


def _are_one_conversation(early: Sequence[Message], late: Sequence[Message]) -> bool:
    """Return True when both begin with the same message, or share a recent one (a beginning may be summarised).

    Many conversations may share a session's name, and one system prompt.
    """
    firsts = [next((one.id for one in messages if one.role is not Role.SYSTEM), None) for messages in (early, late)]
    if firsts[0] is not None and firsts[0] == firsts[1]:
        return True
    recent = {message.id for message in early[-_RECENT:] if message.role is not Role.SYSTEM}
    return any(message.id in recent for message in late[-2 * _RECENT :])
