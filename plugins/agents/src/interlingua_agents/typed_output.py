"""The typed answer of a run: read, taken or corrected, and shown while it arrives."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import attrs

from interlingua import InterlinguaError
from interlingua.output import OutputPlan
from interlingua.types import Message, Role, TextBlock, ToolResultBlock, ToolUseBlock
from interlingua_agents.calls import Answer, answer_from_output
from interlingua_agents.tools import ToolOutput

_BLOCKED = "not taken, for calls beside it failed or wait: give the answer after their results"
_ENDED = "not taken"


@attrs.frozen(kw_only=True)
class OutputReply:
    """What became of an answer that is meant as the typed one.

    Attributes:
        taken: whether it fits.
        is_attempt: False where it was not looked at.
        results: for the calls that are the answer.
        corrections: user messages that say what is wrong.
        error: what ends the run.
    """

    taken: bool = False
    is_attempt: bool = True
    results: Sequence[Answer] = ()
    corrections: Sequence[Message] = ()
    error: InterlinguaError | None = None


class OutputSteps:
    """The attempts of one run to have a typed answer.

    Args:
        plan: how it is asked for.
        retries: how often one that does not fit is asked for again.

    Attributes:
        is_taken: whether there is one.
        value: the one that was taken.
    """

    def __init__(self, plan: OutputPlan[Any], retries: int) -> None:
        self.is_taken = False
        self.value: Any = None
        self._plan = plan
        self._attempts = plan.attempts("-", retries)
        self._lead = len(self._attempts.messages)  # the history is the loop's, not theirs
        self.begin()

    def begin(self) -> None:
        """Expect a new answer of the model, whose events are given to `feed`."""
        self.feed = self._plan.partials().feed

    def read(self, answer: Message, own: Sequence[ToolUseBlock], *, blocked: bool) -> OutputReply:
        """Read an answer.

        Args:
            answer: the model's.
            own: the calls that are the typed answer; others are not looked at.
            blocked: whether calls beside it failed or wait, so that it is too early.
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


def _results(own: Sequence[ToolUseBlock], said: Sequence[Message], text: str, *, failed: bool) -> list[Answer]:
    """Return answers to the calls in the words of the results in `said`, in `text` where there are none."""
    words = {result.tool_use_id: _text_of(result) for message in said for result in message.tool_results}
    now = datetime.now(UTC)
    return [
        answer_from_output(call, ToolOutput(content=words.get(call.id, text), is_error=failed), limit=1_000_000, at=now)
        for call in own
    ]


def _text_of(result: ToolResultBlock) -> str:
    return "".join(block.text for block in result.content if isinstance(block, TextBlock))
