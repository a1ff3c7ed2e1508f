"""Prompt caches: hints where a prompt repeats, and a warning before a request that no longer extends the last one.

The warning stays in core: a cache is lost without any error, at ten times the price (docs/explanation/decisions).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from threading import Lock
from typing import Any, Literal, NamedTuple

from interlingua._catalogue import ModelInfo
from interlingua._plugins.encoding import ProjectedConversation
from interlingua._plugins.provider import Provider
from interlingua._plugins.registry import Registry
from interlingua._pricing import cost_of
from interlingua._request.project import project_conversation
from interlingua._values import replace
from interlingua.errors import InterlinguaError
from interlingua.types.messages import Loss, Message, Role, Usage
from interlingua.types.options import RequestOptions
from interlingua.types.tools import CacheHint, ToolDefinition

_log = logging.getLogger("interlingua")
_RECENT = 32  # messages at the end in which two requests of one conversation share some
_SESSIONS = 16  # how many sessions' last requests are remembered


def add_cache_hints(
    messages: ProjectedConversation, tools: Sequence[ToolDefinition], most: int
) -> tuple[ProjectedConversation, Sequence[ToolDefinition]]:
    """Put cache hints at the end of what the next request repeats: tools, system prompt, last request, this request.

    The caller's hints are kept: these follow the last one of them, and together they are at most `most`.
    """
    own = [-1 for tool in tools if tool.cache]
    for at, message in enumerate(messages):
        parts = [part for block in message.content for part in (block, *getattr(block, "content", ()))]
        own += [at for part in parts if getattr(part, "cache", None)]
    spoken = [at for at, message in enumerate(messages) if message.role is not Role.SYSTEM]
    pairs = zip(spoken, [*(messages[at].role for at in spoken[1:]), Role.ASSISTANT], strict=True)
    ends = [at for at, then in pairs if then is Role.ASSISTANT and messages[at].role is not Role.ASSISTANT]
    places = [*([-1] if tools else []), *([spoken[0] - 1] if spoken and spoken[0] else []), *ends[-2:]]
    places = [place for place in places if place > max(own, default=-2)]
    marked = ProjectedConversation(messages, messages.written)
    for place in places[max(len(places) - max(most - len(own), 0), 0) :]:
        if place < 0:
            tools = [*tools[:-1], replace(tools[-1], cache=CacheHint())]
            continue
        content = list(marked[place].content)
        last = next((at for at in reversed(range(len(content))) if _has_text(content[at])), None)
        if last is not None:
            content[last] = replace(content[last], cache=CacheHint())
            marked[place] = replace(marked[place], content=tuple(content))
    return marked, tools


def _has_text(block: Any) -> bool:
    parts = (block, *getattr(block, "content", ()))
    return hasattr(block, "cache") and any(getattr(part, "text", "").strip() for part in parts)


class LostCache(NamedTuple):
    """A prompt cache that does not apply to a request, and what that costs.

    Attributes:
        tokens: input tokens that would have been read from the cache.
        source: `usage` if the last answer reported its cache, else `estimate`.
        cost_usd: how much more the request costs than with the cache, in USD; None when unknown.
        cost_note: why the cost is unknown.
    """

    tokens: int
    source: Literal["usage", "estimate"]
    cost_usd: Decimal | None = None
    cost_note: str | None = None


def lost_cache(
    messages: Sequence[Message],
    input_tokens: int,
    model: ModelInfo | None,
    at: datetime,
    prefix_tokens: Callable[[Sequence[Message]], int],
    *,
    still: int = 0,
) -> LostCache:
    """Return what a request costs because the cached part of its conversation, `messages`, no longer applies.

    `prefix_tokens` estimates the tokens of messages; it is called only if no answer reports its cache. The first
    `still` tokens are cached as before.
    """
    tokens, source = _cached(messages, prefix_tokens)
    tokens = max(min(tokens, input_tokens) - still, 0)  # two models count differently
    cold = cost_of(Usage(input_tokens=input_tokens, output_tokens=0, cached_input_tokens=still), model, at)
    warm = cost_of(Usage(input_tokens=input_tokens, output_tokens=0, cached_input_tokens=still + tokens), model, at)
    if cold.cost_usd is None or warm.cost_usd is None:
        return LostCache(tokens, source, cost_note=cold.cost_note or warm.cost_note)
    price = model.price_at(at) if model else None
    if model and (price is None or price.rates(input_tokens).cached_read_per_mtok_usd is None):
        return LostCache(tokens, source, cost_note=f"no price known for cached input of {model.id}")
    return LostCache(tokens, source, cold.cost_usd - warm.cost_usd)


def _cached(
    messages: Sequence[Message], prefix_tokens: Callable[[Sequence[Message]], int]
) -> tuple[int, Literal["usage", "estimate"]]:
    for place in range(len(messages) - 1, -1, -1):
        usage = messages[place].metadata.usage
        if usage is None:
            continue
        read, written = usage.cached_input_tokens, usage.cache_creation_input_tokens
        if read is not None or written is not None:
            return (read or 0) + (written or 0), "usage"
        known = usage.input_tokens
        return (known if known is not None else prefix_tokens(messages[:place]) if place else 0), "estimate"
    return 0, "estimate"  # no answer yet, so nothing is cached


class _Sent(NamedTuple):
    """One session's last request: provider, model, tools, and the first `length` messages of a list that may grow."""

    provider: Provider
    model: str
    tools: Sequence[ToolDefinition]
    grown: list[Message]
    length: int

    def kept_by(self, later: _Sent) -> int | None:
        """Return how many messages a later request begins with unchanged; None if it only adds or removes the last."""
        if self.tools is not later.tools and list(self.tools) != list(later.tools):
            return 0  # tools precede all messages
        if self.grown is later.grown and self.length <= later.length:
            return None
        pairs = zip(self.grown[: self.length], later.grown, strict=False)
        return next((at for at, (a, b) in enumerate(pairs) if a is not b and a != b), None)


class PrefixWatch:
    """Warns before sending a request that no longer extends the last one: the provider's prompt cache is lost.

    Remembers the messages and tools of the last request of each of 16 sessions. Safe for several threads.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._last: dict[str, _Sent] = {}
        self._lock = Lock()

    def check(
        self,
        messages: list[Message],
        provider: Provider,
        tools: Sequence[ToolDefinition],
        options: RequestOptions,
        model_info: Callable[[], ModelInfo | None],
    ) -> tuple[LostCache, Sequence[Message]] | None:
        """Remember a request; if it edits what the last one of its session sent, log a warning and tell observers.

        Later requests of the conversation may extend the list; `model_info` is called only for a warning. Returns what
        is lost, if the provider estimates tokens, and the messages of the last request.
        """
        sent = _Sent(provider, options.model, tools, messages, len(messages))
        with self._lock:
            session = messages[-1].session_id
            before = self._last.pop(session, None)
            self._last[session] = sent
            if len(self._last) > _SESSIONS:
                del self._last[next(iter(self._last))]
        if before is None or before.model != sent.model or before.provider is not provider:
            return None  # the caller chose another model; `interlingua explain` shows what that costs
        kept, earlier = before.kept_by(sent), before.grown[: before.length]
        if kept is None or not _are_one_conversation(earlier, messages):
            return None

        def count(messages: Sequence[Message]) -> int:
            return estimate_tokens(provider, messages, tools, options) if messages else 0

        lost, cost = None, None
        with suppress(InterlinguaError):  # an estimate that fails does not stop the request
            still, every = count(messages[:kept]), count(messages)
            lost = lost_cache(earlier, every, model_info(), datetime.now(UTC), count, still=still)
            cost = None if lost.cost_usd is None else f"{lost.cost_usd:f}"
        if lost is not None and not lost.tokens:
            return None  # the edited messages had not been cached
        fields = {
            "session_id": session,
            "provider": provider.key,
            "model": options.model,
            "message": kept,
            "tokens": lost and lost.tokens,
            "cost_usd": cost,
            "cost_note": lost.cost_note if lost else "this provider estimates no tokens",
        }
        _log.warning(
            "changed prefix: session_id=%(session_id)s model=%(provider)s:%(model)s from message=%(message)s "
            "lost_tokens=%(tokens)s cost_usd=%(cost_usd)s note=%(cost_note)s",
            fields,
            extra={"changed_prefix": fields},
        )
        self._registry.observe({"type": "prefix.changed", **fields})
        return lost and (lost, earlier)

    def clear(self) -> None:
        """Forget every session."""
        with self._lock:
            self._last.clear()


def price_change(losses: Sequence[Loss], lost: LostCache, earlier: Sequence[Message]) -> tuple[Loss, ...]:
    """Return the rows of a request, those about changes behind the last request's messages with what they cost."""
    known = {message.id for message in earlier}
    price = f"{lost.tokens:,} tokens, " + (f"{lost.cost_usd:f} USD more" if lost.cost_usd is not None else "no price")
    new = [row for row in losses if row.block_type == "change" and row.message_id not in known]
    return tuple(replace(row, reason=f"{row.reason} ({price})") if row in new else row for row in losses)


def estimate_tokens(
    provider: Provider, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions
) -> int:
    """Estimate the input tokens of a request."""
    projected, _ = project_conversation(messages, provider.target(options))
    return provider.estimate_input_tokens(projected, tools, options)


def _are_one_conversation(early: Sequence[Message], late: Sequence[Message]) -> bool:
    """Return True if both begin with the same message or share a recent one: a beginning may have been summarised.

    The session id alone does not tell: many conversations may share it, and the system prompt as well.
    """
    firsts = [next((one.id for one in messages if one.role is not Role.SYSTEM), None) for messages in (early, late)]
    if firsts[0] is not None and firsts[0] == firsts[1]:
        return True
    recent = {message.id for message in early[-_RECENT:] if message.role is not Role.SYSTEM}
    return any(message.id in recent for message in late[-2 * _RECENT :])
