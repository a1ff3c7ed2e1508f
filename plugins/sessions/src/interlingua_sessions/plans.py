"""The input of a turn, which is stored, and the plan of a step, which is sent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import attrs

from interlingua import CapabilityError, InterlinguaError
from interlingua.types import Message, ToolDefinition
from interlingua_sessions.routing.policy import NoRouteError, SwapRefusedError
from interlingua_sessions.routing.router import RouteDecision

_QUESTION_PATH = re.compile(r"messages\[(\d+)\]\.content")


class TurnInput(NamedTuple):
    """The messages that a turn will store, the context that its model will be sent, and the decision on the model.

    If no model can answer, `decision` is the router's error.
    """

    opening: Message | None
    question: list[Message]
    context: Sequence[Message]
    decision: RouteDecision | SwapRefusedError | NoRouteError

    @property
    def model(self) -> str:
        """Canonical id of the chosen model, or of the first that cannot answer; empty without candidates."""
        if isinstance(self.decision, RouteDecision):
            return self.decision.model
        return self.decision.refused[0].model if self.decision.refused else ""

    def decided(self) -> RouteDecision:
        """Return the decision, or raise the router's error."""
        if not isinstance(self.decision, RouteDecision):
            raise self.decision
        return self.decision

    @contextmanager
    def checking(self) -> Iterator[None]:
        """Raise what building the request says about a block of the question; other errors are raised by the step."""
        try:
            yield
        except CapabilityError as error:
            found = _QUESTION_PATH.match(error.path or "")
            if found is not None and int(found[1]) >= len(self.context) - len(self.question):
                raise
        except InterlinguaError:
            pass


@attrs.frozen(kw_only=True)
class TurnPlan:
    """One step, ready to be sent: `client.send(plan.messages, **plan.arguments)`."""

    messages: Sequence[Message]
    decision: RouteDecision
    tools: Sequence[ToolDefinition]
    options: Mapping[str, Any]
    fallbacks: Mapping[str, RouteDecision] = attrs.field(factory=dict)  # by model: the decision if it answers instead

    @property
    def arguments(self) -> dict[str, Any]:
        """All arguments but the messages."""
        decision = self.decision
        models = [decision.model, *self.fallbacks] if self.fallbacks else decision.model
        return {"model": models, "tools": self.tools, "routing": decision.record, **self.options}

    @property
    def preview(self) -> dict[str, Any]:
        """The arguments of `client.build_request`."""
        return {"messages": self.messages, "model": self.decision.model, "tools": self.tools, **self.options}
