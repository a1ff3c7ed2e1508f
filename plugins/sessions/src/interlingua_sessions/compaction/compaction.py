"""Compaction (seed 004 §9): is the context over the limit, and what is done about it; blocking and asynchronous.

Never rewrites history: policies add session-only entries, and the context builder reads them. Sessions are given one of
these; applications come in through the room's front door.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Protocol

from interlingua import CallerError, ProviderError, WireError
from interlingua.types.messages import Message
from interlingua.types.tools import ToolDefinition
from interlingua_sessions.compaction.pruning import ToolPruning
from interlingua_sessions.compaction.summary import Summary

if TYPE_CHECKING:
    from interlingua_sessions.session.api import AsyncSteps, Facts, Steps

_log = logging.getLogger("interlingua")


class CompactionPolicy(Protocol):
    """One way to make the context smaller."""

    def apply(self, facts: Facts, limit: int) -> Generator[Sequence[Message], Message, None]:
        """Add entries that make the context smaller; yield what a model is to be asked, and be sent its answer.

        Args:
            facts: of the turn; entries go in by `add_entry`.
            limit: tokens the context is to stay under.
        """


class Compaction:
    """Keeps a session's context under a limit; what a session takes as its compactor.

    Args:
        limit: tokens; None takes a share of the model's context window, and does nothing where that is unknown.
        share: of the window, for input; the rest is for the answer and for the estimate's error.
        policies: tried in order until the context is under the limit.
        tools: what is offered beside the messages, for the estimate.
    """

    def __init__(
        self,
        *,
        limit: int | None = None,
        share: float = 0.8,
        policies: Sequence[CompactionPolicy] | None = None,
        tools: Sequence[ToolDefinition] = (),
    ) -> None:
        if not 0 < share <= 1:
            raise CallerError(f"share is a part of the context window, above 0 and up to 1, not {share}")
        self._limit = limit
        self._share = share
        self._policies = (ToolPruning(), Summary()) if policies is None else tuple(policies)
        self._tools = tools

    def compact(self, steps: Steps) -> None:
        """Make the context smaller where it is over the limit; a failed summary is logged and the turn goes on."""
        course = self._course(steps)
        try:
            wanted = next(course)
            while True:
                wanted = course.send(steps.complete(wanted))
        except StopIteration:
            pass
        except (ProviderError, WireError) as error:
            _given_up(steps, error)

    async def compact_async(self, steps: AsyncSteps) -> None:
        """As `compact`."""
        course = self._course(steps)
        try:
            wanted = next(course)
            while True:
                wanted = course.send(await steps.complete(wanted))
        except StopIteration:
            pass
        except (ProviderError, WireError) as error:
            _given_up(steps, error)

    def over(self, facts: Facts) -> int:
        """Return by how many tokens the context is over the limit, by the provider's estimate; 0 when it fits."""
        limit = self._tokens(facts)
        return max(facts.estimate(facts.context(), self._tools) - limit, 0) if limit else 0

    def _tokens(self, facts: Facts) -> int:
        return int(facts.window * self._share) if self._limit is None else self._limit

    def _course(self, facts: Facts) -> Generator[Sequence[Message], Message, None]:
        for policy in self._policies:
            if not self.over(facts):
                return
            yield from policy.apply(facts, self._tokens(facts))
        if left := self.over(facts):
            _log.warning("session %s: the context is still %d tokens over the limit", facts.id, left)


def _given_up(facts: Facts, error: Exception) -> None:
    _log.warning("session %s: no summary could be had, the context stays as it is: %s", facts.id, error)
