"""The summary policy of seed 004 §9: what is oldest is told in a few words, by the turn's own model.

Never removes a message: it stores the summary and how many messages it stands for. Compaction comes in.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING

import attrs

from interlingua.types.factories import system, user
from interlingua.types.messages import Message, MessageStatus, Role
from interlingua_sessions.compaction.context import build_context
from interlingua_sessions.compaction.layout import COVERS, layout_of
from interlingua_sessions.compaction.transcript import pieces
from interlingua_sessions.compaction.weight import LETTERS_PER_TOKEN, weight
from interlingua_sessions.store import EntryKind

if TYPE_CHECKING:
    from interlingua_sessions.session.api import Facts

_log = logging.getLogger("interlingua")

_SHORTEST_PIECE = 2_000  # characters; a limit below that is a mistake, not a reason to ask a thousand times

_ROOM = 0.8  # of the window; the rest is for the summary and for the estimate's error

INSTRUCTION = """\
You write the memory of a conversation between a user and an assistant that goes on after you. Summarise the \
transcript for the assistant: the user's goals and exact requirements; decisions and their reasons; what was done and \
found, with names, paths, numbers and error messages as they were; what is unfinished and what comes next. Where the \
transcript begins with an earlier summary, keep what still matters of it. Write only the summary."""


@attrs.frozen(kw_only=True)
class Summary:
    """Replaces the oldest part of the context by a summary.

    Attributes:
        keep: newest messages that stay word for word, as a share of the token limit.
        instruction: what the model is told to do.
    """

    keep: float = 0.25
    instruction: str = INSTRUCTION

    def apply(self, facts: Facts, limit: int) -> Generator[Sequence[Message], Message, None]:
        """Ask for a summary and store it; where none can be had, the context stays as it is."""
        messages = facts.messages
        done = layout_of(facts.entries).covers
        covers = self.cut(messages, done, limit)
        if covers <= done:
            return
        before = facts.estimate(facts.context())
        text, answer = "", None
        for piece in self._pieces(facts, build_context(messages[:covers], facts.entries), limit):
            told = f"<earlier-summary>\n{text}\n</earlier-summary>\n\n{piece}" if text else piece
            answer = yield [system(self.instruction), user(told)]
            text = answer.text_content().strip()
            if not text or answer.metadata.status is not MessageStatus.COMPLETE:
                _log.warning("session %s: the model wrote no summary; the context stays as it is", facts.id)
                return
        if answer is not None:
            facts.add_entry(EntryKind.COMPACTION_SUMMARY, text, data=_account(answer, covers, before))

    def _pieces(self, facts: Facts, covered: Sequence[Message], limit: int) -> list[str]:
        """Return the transcript, in as few pieces as fit the model by the provider's estimate."""
        room = max(limit, int(facts.window * _ROOM))
        size = 2 * LETTERS_PER_TOKEN * sum(map(weight, covered))  # with room for who says what
        while size > _SHORTEST_PIECE:
            first = next(pieces(covered, size), "")
            if facts.estimate([system(self.instruction), user(first)]) <= room:
                break
            size = size * 3 // 4
        return list(pieces(covered, max(size, 1)))

    def cut(self, messages: Sequence[Message], done: int, limit: int) -> int:
        """Return how many messages the summary may stand for: never half a batch of calls, and never the question.

        The question under way is only cut off from what followed it when both together would fill the limit anyway.
        """
        room = self.keep * limit
        best = len(messages)
        for place in range(len(messages) - 1, done - 1, -1):
            room -= weight(messages[place])
            if room < 0 and best < len(messages):
                break
            if messages[place].role in (Role.USER, Role.ASSISTANT):
                best = place
        question = next((at for at in range(len(messages) - 1, -1, -1) if messages[at].role is Role.USER), best)
        if question < best and sum(map(weight, messages[question:])) <= limit / 2:
            best = question
        return best if best < len(messages) else done


def _account(answer: Message, covers: int, before: int) -> dict[str, object]:
    usage = answer.metadata.usage
    cost = None if usage is None or usage.cost_usd is None else str(usage.cost_usd)
    return {COVERS: covers, "tokens_before": before, "model": answer.metadata.model, "cost_usd": cost}
