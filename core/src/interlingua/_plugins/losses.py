"""The loss ledger: one row for each thing that a target did not receive unchanged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, get_args

import attrs

from interlingua.types.messages import Loss, Message, Role, Severity, Verdict
from interlingua.types.options import Effort, RequestOptions, ToolChoice
from interlingua.types.tools import ToolDefinition

_EFFORTS = get_args(Effort)


class BlockLoss(NamedTuple):
    """A loss of one block whose message has no place in the conversation yet.

    Attributes:
        block: index of the block in its message.
        block_type: the block's `type`.
        verdict: rewritten, dropped or blocked.
        reason: one sentence for people.
        severity: as in `Loss`; None for its default.
    """

    block: int
    block_type: str
    verdict: Verdict
    reason: str
    severity: Severity | None = None

    def at(self, index: int, message_id: str) -> Loss:
        """Return the row, given the index of the message in the conversation and its id."""
        place, block_type, verdict, reason, severity = self
        path = f"messages[{index}].content[{place}]"
        given: dict[str, Any] = {} if severity is None else {"severity": severity}
        return Loss(path=path, block_type=block_type, verdict=verdict, reason=reason, message_id=message_id, **given)


def placeholder_text(rows: Iterable[BlockLoss | Loss]) -> str:
    """Return the note to send for blocks of a user's message that cannot be sent: a user's turn never vanishes."""
    lines = [f"[{row.block_type} not sent: {row.reason}]" for row in rows if row.block_type != "text"]
    return "\n".join(lines) or "[empty message]"


def note_for(message: Message, block: int, rows: Sequence[BlockLoss]) -> str | None:
    """Return the note that replaces a user's block, by its index, which the last row drops; None if it does not."""
    if message.role is not Role.USER or not rows or rows[-1].block != block:
        return None
    row = rows[-1].at(0, message.id)
    return placeholder_text([row]) if row.verdict == "dropped" and row.severity == "content" else None


def option_loss(name: str, verdict: Verdict, reason: str) -> Loss:
    """Return the row of an option, named as in `RequestKwargs`."""
    return Loss(path=f"options.{name}", block_type="option", verdict=verdict, reason=reason)


def nearest_effort(wanted: str, accepted: Sequence[str], losses: list[Loss], option: str = "effort") -> str | None:
    """Return the effort to send: the wanted one, or the nearest one that the model accepts, with a row in `losses`.

    Of two equally near efforts the lower one is chosen. A model that cannot stop thinking gets its lowest effort
    instead of `none`; `none` never replaces another effort. None means that it accepts no effort at which it thinks.
    """
    if wanted in accepted:
        return wanted
    place = _EFFORTS.index(wanted)
    steps = [effort for effort in _EFFORTS[1:] if effort in accepted]
    found = min(steps, key=lambda effort: abs(_EFFORTS.index(effort) - place), default=None)
    verdict: Verdict = "dropped" if found is None else "rewritten"
    losses.append(option_loss(option, verdict, f"this model has no effort {wanted!r}; {found or 'nothing'} is sent"))
    return found


def budget_as_effort(options: RequestOptions, losses: list[Loss]) -> RequestOptions:
    """Return the options for a model that takes efforts only: a thinking budget becomes an effort, with a row.

    Up to 4,096 tokens are `low`, up to 16,384 `medium`, more are `high`. An effort in the options is kept.
    """
    budget, effort = options.thinking_budget, options.effort
    if budget is None:
        return options
    if effort is None and options.thinking is not False and budget > 0:
        effort = "low" if budget <= 4_096 else "medium" if budget <= 16_384 else "high"
        losses.append(option_loss("thinking_budget", "rewritten", f"this model takes an effort; {effort} is sent"))
    else:
        losses.append(option_loss("thinking_budget", "dropped", "this model takes an effort, not a budget"))
    return attrs.evolve(options, thinking_budget=None, effort=effort)


def message_loss(index: int, reason: str, message_id: str | None = None, *, block_type: str = "message") -> Loss:
    """Return the row of a message that is sent in another form, or with something prepended or appended."""
    path = f"messages[{index}]"
    return Loss(path=path, block_type=block_type, verdict="rewritten", reason=reason, message_id=message_id)


_DEMAND = "(Answer with a call of this tool, or of another that demands it, without any other text.)"


def demand_call(
    tools: Sequence[ToolDefinition], options: RequestOptions, losses: list[Loss], why: str
) -> Sequence[ToolDefinition]:
    """Return tools whose descriptions demand a call, a forced tool alone: for targets that cannot force one.

    `losses` receives a row about the option `tool_choice`, whose reason begins with `why`.
    """
    if isinstance(choice := options.tool_choice, ToolChoice):
        tools = [tool for tool in tools if tool.name == choice.name]
        reason = f"{why}; {choice.name!r} is the only tool sent, and its description demands the call"
    else:
        reason = f"{why}; the descriptions of the tools demand one"
    losses.append(option_loss("tool_choice", "rewritten", reason))
    return [attrs.evolve(tool, description=f"{tool.description} {_DEMAND}".strip()) for tool in tools]
