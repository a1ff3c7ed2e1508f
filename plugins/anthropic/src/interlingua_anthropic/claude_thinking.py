"""Thinking of Claude's models: options, the turn in progress, budgets and efforts; the same on every host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import attrs

from interlingua.errors import CapabilityError
from interlingua.plugins import FrozenDict, Loss, budget_as_effort, nearest_effort, option_loss
from interlingua.types import Message, RedactedThinkingBlock, RequestOptions, Role, ThinkingBlock, ToolChoice

THINKING = (ThinkingBlock, RedactedThinkingBlock)
BEGUN_WITHOUT = (
    "the turn in progress begins without thinking, and in the middle of a turn none may begin; the next turn can think"
)
_BEGUN_WITH = "the turn in progress began with thinking and continues with it; thinking=False leaves it out"
MIN_BUDGET = 1024
_LEAST_TOP_P = 0.95  # while the model thinks
EFFORTS = ("low", "medium", "high", "xhigh", "max")
_BUDGETS = {"low": 2048, "medium": 8192, "high": 16384, "xhigh": 32000, "max": 32000}
_ANY_THINKING = ("adaptive", "disabled", "enabled")
BINDING_BETA = "thinking-binding-controls-2026-08-01"
DROPPING = {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}
_ASSISTANT = Role.ASSISTANT  # an enum's member is found by a slow call before Python 3.12


class ThinkingPlan(NamedTuple):
    """The parts of a request about thinking.

    Attributes:
        thinking: the object `thinking`; None if it is not sent.
        effort: the effort; None if it is not sent.
        bare: places of the messages to send without thinking.
    """

    thinking: dict[str, Any] | None
    effort: str | None
    bare: Sequence[int] = ()

    def thinks(self, facts: FrozenDict) -> bool:
        """Return whether the model thinks, with the object or by default."""
        if self.thinking is not None:
            return bool(self.thinking["type"] != "disabled")
        return facts.get("thinking_omitted") in ("always", "on")


def is_taken_while_thinking(option: str, value: float) -> bool:
    """Return whether a sampling parameter is accepted while the model thinks (WIRE.md, Versions)."""
    return (option == "temperature" and value == 1) or (option == "top_p" and _LEAST_TOP_P <= value <= 1)


def is_forced(options: RequestOptions) -> bool:
    """Return True if the request requires a call."""
    return isinstance(options.tool_choice, ToolChoice) or options.tool_choice == "required"


def plan_thinking(
    messages: Sequence[Message],
    options: RequestOptions,
    facts: FrozenDict,
    max_tokens: int | None,
    losses: list[Loss],
) -> ThinkingPlan:
    """Decide on thinking for a request (WIRE.md, Thinking).

    Args:
        messages: the projected conversation.
        options: the request's options.
        facts: the facts about the model in the host's catalogue.
        max_tokens: the limit that the request has; None if it has none.
        losses: receives the losses.

    Raises:
        CapabilityError: `max_tokens` is below the smallest budget.
    """
    thinking, effort = to_wire_thinking(options, facts, max_tokens, losses)
    if thinking is None and facts.get("thinking_omitted") != "off":
        return ThinkingPlan(None, effort)
    if thinking is not None and thinking["type"] not in ("enabled", "disabled"):
        return ThinkingPlan(thinking, effort)
    turn = turn_in_progress(messages)
    if thinking is None:
        thinking, bare = _as_begun(messages, turn, options, facts, max_tokens, losses)
        return ThinkingPlan(thinking, effort, bare)
    if thinking["type"] == "enabled":
        if is_forced(options):
            losses.append(option_loss("thinking", "dropped", "a forced tool choice is refused together with it"))
        elif turn and type(messages[turn[0]].content[0]) not in THINKING:
            asked = [name for name in ("thinking", "thinking_budget", "effort") if getattr(options, name) is not None]
            losses.append(option_loss(asked[0], "dropped", BEGUN_WITHOUT))
        else:
            return ThinkingPlan(thinking, effort)
        thinking = None
    return ThinkingPlan(thinking, effort, turn)


def _as_begun(
    messages: Sequence[Message],
    turn: Sequence[int],
    options: RequestOptions,
    facts: FrozenDict,
    max_tokens: int | None,
    losses: list[Loss],
) -> tuple[dict[str, Any] | None, Sequence[int]]:
    """Return the `thinking` of a continued turn if the caller sets none, and the messages that lose their thinking."""
    if not any(type(block) in THINKING for at in turn for block in messages[at].content):
        return None, ()
    thinking = None
    if max_tokens is None or max_tokens > MIN_BUDGET:
        thinking, _ = to_wire_thinking(attrs.evolve(options, thinking=True), facts, max_tokens, [])
    adaptive = thinking is not None and thinking["type"] == "adaptive"
    if not adaptive and type(messages[turn[0]].content[0]) not in THINKING:
        return None, ()
    if thinking is None or (not adaptive and is_forced(options)):
        return None, turn
    losses.append(option_loss("thinking", "rewritten", _BEGUN_WITH))
    return thinking, ()


def to_wire_thinking(
    options: RequestOptions, facts: FrozenDict, max_tokens: int | None, losses: list[Loss]
) -> tuple[dict[str, Any] | None, str | None]:
    """Return (`thinking`, `effort`), each None if it is not sent.

    Raises:
        CapabilityError: `max_tokens` is below the smallest budget.
    """
    accepted = tuple(facts.get("thinking", _ANY_THINKING))
    wants = options.thinking or options.thinking_budget is not None
    if "adaptive" in accepted and "enabled" not in accepted and options.thinking is not False:
        options = budget_as_effort(options, losses)
    effort: str | None = options.effort
    if effort is not None and effort != "none":
        effort = nearest_effort(effort, [name for name in EFFORTS if facts.get(f"effort_{name}", True)], losses)
    if options.thinking is False or effort == "none":
        if options.thinking_budget is not None:
            losses.append(option_loss("thinking_budget", "dropped", "thinking is switched off"))
        return _off(None if effort == "none" else effort, accepted, facts, losses)
    if facts.get("effort_beside_budget"):
        return (_budgeted(options, effort, max_tokens, losses) if wants else None), effort
    if "adaptive" not in accepted:
        if not wants and effort is None:
            return None, None
        if "enabled" not in accepted:
            losses.append(option_loss("thinking", "dropped", "this model does not think"))
            return None, None
        return _budgeted(options, effort, max_tokens, losses), None
    if options.thinking_budget is not None and "enabled" in accepted:
        return _budgeted(options, effort, max_tokens, losses), effort
    return ({"type": "adaptive", "display": "summarized"} if wants else None), effort


def _off(
    effort: str | None, accepted: tuple[str, ...], facts: FrozenDict, losses: list[Loss]
) -> tuple[dict[str, Any] | None, str | None]:
    if "disabled" in accepted:
        if effort is not None and "adaptive" not in accepted:
            losses.append(option_loss("effort", "dropped", "this model has an effort only where it thinks"))
            return {"type": "disabled"}, None
        most = facts.get("thinking_disabled_max_effort")
        if effort is not None and most is not None:
            effort = nearest_effort(effort, EFFORTS[: EFFORTS.index(most) + 1], losses)
        return {"type": "disabled"}, effort
    if "between_tools" in accepted:
        losses.append(option_loss("thinking", "rewritten", "this model's least is short notes between tool calls"))
        return {"type": "between_tools"}, effort
    losses.append(option_loss("thinking", "dropped", "this model always thinks; sent with low effort instead"))
    return None, effort or "low"


def _budgeted(
    options: RequestOptions, effort: str | None, max_tokens: int | None, losses: list[Loss]
) -> dict[str, Any]:
    if max_tokens is not None and max_tokens <= MIN_BUDGET:
        raise CapabilityError(
            f"max_tokens={max_tokens} leaves no tokens for thinking; set it above {MIN_BUDGET}",
            path="options.max_tokens",
        )
    wanted = options.thinking_budget
    if wanted is None:  # half of the answer at most, or nothing would be left for the text
        budget = _BUDGETS[effort or "medium"]
        budget = budget if max_tokens is None else max(min(budget, max_tokens // 2), MIN_BUDGET)
    else:
        budget = max(wanted if max_tokens is None else min(wanted, max_tokens - 1), MIN_BUDGET)
        if budget != wanted:
            reason = f"a budget is at least {MIN_BUDGET} and below max_tokens; sent as {budget}"
            losses.append(option_loss("thinking_budget", "rewritten", reason))
    return {"type": "enabled", "budget_tokens": budget}


def turn_in_progress(messages: Sequence[Message]) -> list[int]:
    """Return the places of the assistant messages that the next answer continues; empty if the user began a turn.

    Calls and their results do not end a turn.
    """
    places: list[int] = []
    asked = answered = False  # the user spoke, results came: behind the assistant message to be seen next
    for at in range(len(messages) - 1, -1, -1):
        role = messages[at].role
        if role is _ASSISTANT:
            if asked and not answered:
                break
            places.insert(0, at)
            asked = answered = False
        elif role is Role.TOOL:
            answered = True
        elif role is Role.USER:
            asked = True
    return places
