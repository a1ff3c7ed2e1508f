"""What a batch is told before it begins, and what it reports while it runs.

Never runs anything. The batch makes reports; the run, the drivers and the loop come in to read them.
Every call of a batch is `Taken` first and `Answered` last, whatever lies between.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, TypeAlias

import attrs

from interlingua.types.blocks import ToolUseBlock
from interlingua_sessions.tools.answers import Answer
from interlingua_sessions.tools.cutting import RESULT_LIMIT
from interlingua_sessions.tools.values import Confirmation


@attrs.frozen(kw_only=True)
class Limits:
    """What calls may take.

    Attributes:
        side_by_side: how many run at once.
        timeout: seconds of one call, unless its tool says otherwise; None for no limit.
        result: characters of a result that the model is sent, unless its tool says otherwise.
    """

    side_by_side: int = 8
    timeout: float | None = 120.0
    result: int = RESULT_LIMIT


@attrs.frozen
class Taken:
    """A call is taken up."""

    call: ToolUseBlock


@attrs.frozen
class Running:
    """Its tool runs from now on."""

    call: ToolUseBlock
    at: datetime


@attrs.frozen
class Progress:
    """Its tool reported something."""

    call: ToolUseBlock
    partial: Any


@attrs.frozen
class Misread:
    """Its input fits the schema, and not the function's types: only here is that seen."""

    call: ToolUseBlock
    message: str


@attrs.frozen
class Answered:
    """The call at this place of the batch has its answer; each has exactly one."""

    place: int
    answer: Answer


Report: TypeAlias = Taken | Running | Progress | Misread | Answered
Ask: TypeAlias = Callable[[Confirmation], Awaitable[bool]]
