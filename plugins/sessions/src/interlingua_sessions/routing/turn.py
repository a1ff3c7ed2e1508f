"""What routing may know of one turn, and what others may propose for it: patterns, and a planner's delegation.

Never the session itself and never anything that could be changed. The chain, rules, pattern stores and the session
come in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import attrs

from interlingua.types.messages import Message, Role
from interlingua.types.tools import ToolDefinition
from interlingua_sessions.routing.needs import Needs, needs_of


@attrs.frozen(kw_only=True)
class Turn:
    """One turn about to be answered.

    Attributes:
        session_id: of the session.
        messages: what would be sent, the user's new message last.
        tools: what the model would be offered.
        options: what else is asked, by name of the option.
        override: the model named for this message alone.
        delegation: the model a planner asks for.
    """

    session_id: str
    messages: Sequence[Message]
    tools: Sequence[ToolDefinition] = ()
    options: Mapping[str, Any] = attrs.field(factory=dict)
    override: str | None = None
    delegation: Delegation | None = None

    @cached_property
    def text(self) -> str:
        """The user's last text."""
        return next((one.text_content() for one in reversed(self.messages) if one.role is Role.USER), "")

    @cached_property
    def needs(self) -> Needs:
        """What a model must be capable of to answer."""
        return needs_of(self.messages, self.tools, structured=self.options.get("response_schema") is not None)


@attrs.frozen(kw_only=True)
class Recommendation:
    """What a pattern store recommends: a model, how sure it is (0 to 1), and why."""

    model: str
    confidence: float
    reason: str = "the pattern store recommends it"


PatternStore: TypeAlias = Callable[[Turn], Recommendation | None]


@attrs.frozen(kw_only=True)
class Delegation:
    """A planner's request that a model of its choice does this turn."""

    model: str
    reason: str = "the planner delegates to it"
