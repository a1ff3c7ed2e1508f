"""The typed answer of a run: read, accepted or corrected, and shown while it arrives."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import attrs

from interlingua import InterlinguaError
from interlingua.output import OutputPlan
from interlingua.types import Message, Role, TextBlock, ToolResultBlock, ToolUseBlock, user
from interlingua_agents.outcomes import ToolOutcome, outcome_of_output
from interlingua_agents.tools import ToolOutput

_BLOCKED = "not accepted, because other calls failed or wait: answer again after their results"
_ENDED = "not accepted"


@attrs.frozen(kw_only=True)
class OutputReply:
    """The reply to an attempt at a typed answer.

    Attributes:
        taken: True if the answer fits the type.
        is_attempt: False if the answer was not read.
        results: results of the calls that are the answer.
        corrections: user messages that explain the problems.
        error: the error that ends the run, or None.
    """

    taken: bool = False
    is_attempt: bool = True
    results: Sequence[ToolOutcome] = ()
    corrections: Sequence[Message] = ()
    error: InterlinguaError | None = None


class OutputSteps:
    """The attempts of one run at a typed answer.

    Args:
        plan: how the model is asked for the answer.
        retries: number of further attempts after an answer that does not fit the type.

    Attributes:
        is_taken: True once an answer was accepted.
        value: the value of the accepted answer.
    """

    def __init__(self, plan: OutputPlan[Any], retries: int) -> None:
        self.is_taken = False
        self.value: Any = None
        self._plan = plan
        self._attempts = plan.attempts([user("-")], retries)
        self._lead = len(self._attempts.messages)  # the loop keeps the history, not the attempts
        self.begin()

    def begin(self) -> None:
        """Start a new answer of the model, whose events are passed to `feed`."""
        self.feed = self._plan.partials().feed

    def read(self, answer: Message, own: Sequence[ToolUseBlock], *, blocked: bool) -> OutputReply:
        """Read an answer.

        Args:
            answer: the model's answer.
            own: the calls that are the typed answer; other calls are ignored.
            blocked: True if other calls failed or wait, so that the answer is too early.
        """
        if blocked:
            return OutputReply(is_attempt=False, results=_results(own, (), _BLOCKED, failed=True))
        content = [block for block in answer.content if not isinstance(block, ToolUseBlock) or block in own]
        alone = attrs.evolve(answer, content=tuple(content))
        try:
            found = self._attempts.take(alone, ())
        except InterlinguaError as error:
            return OutputReply(results=_results(own, (), _ENDED, failed=True), error=error)
        if found is not None:
            self.is_taken, self.value = True, found.value
            return OutputReply(taken=True, results=_results(own, found.messages, "", failed=False))
        said = [message for message in self._attempts.messages[self._lead :] if message is not alone]
        corrections = [message for message in said if message.role is Role.USER]
        return OutputReply(results=_results(own, said, _ENDED, failed=True), corrections=corrections)


def _results(own: Sequence[ToolUseBlock], said: Sequence[Message], text: str, *, failed: bool) -> list[ToolOutcome]:
    """Return outcomes of the calls with the words of the results in `said`, or with `text` if a call has no result."""
    words = {result.tool_use_id: _text_of(result) for message in said for result in message.tool_results}
    now = datetime.now(UTC)
    return [
        outcome_of_output(call, ToolOutput(content=words.get(call.id, text), is_error=failed), limit=1_000_000, at=now)
        for call in own
    ]


def _text_of(result: ToolResultBlock) -> str:
    return "".join(block.text for block in result.content if isinstance(block, TextBlock))
