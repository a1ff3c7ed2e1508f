"""What a run wants next, and how it ended.

Never decides either (`run` does) and never does what is wanted (the loop does). Both come in, and applications for the
reasons why a run stopped.
"""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from typing import TypeAlias

import attrs

from interlingua.types.blocks import ToolUseBlock
from interlingua.types.messages import Message


class StopCause(StrEnum):
    """Why a run ended."""

    DONE = "done"
    """The model has answered."""
    TERMINATED = "terminated"
    """A tool's result said so."""
    TURN_LIMIT = "turn_limit"
    BUDGET = "budget"
    """The money is spent, or what an answer cost is not known."""
    CANCELLED = "cancelled"


@attrs.frozen(kw_only=True)
class Stopped:
    """How a run ended.

    Attributes:
        cause: why.
        message: the last answer.
        turns: how many answers there were.
        spent_usd: what they cost together, those of known cost.
    """

    cause: StopCause
    message: Message
    turns: int
    spent_usd: Decimal


@attrs.frozen
class Ask:
    """Wants the model's next answer."""


@attrs.frozen
class Compact:
    """Wants the context looked at, before the model is asked again."""


@attrs.frozen
class Calls:
    """Wants these calls run, and their reports handed to `take`."""

    calls: tuple[ToolUseBlock, ...]


Want: TypeAlias = Ask | Compact | Calls
