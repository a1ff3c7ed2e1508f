"""One step of a turn, decided and ready to be sent.

Never sends and never decides. Turns make these; the blocking and the asynchronous turn hand them to their client.
What a client is given beside the messages stands here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from interlingua.types.messages import Message
from interlingua.types.tools import ToolDefinition
from interlingua_sessions.routing import Decision


@attrs.frozen(kw_only=True)
class Plan:
    """One step, ready to be sent: `client.send(plan.messages, **plan.arguments)`."""

    messages: Sequence[Message]
    decision: Decision
    tools: Sequence[ToolDefinition]
    options: Mapping[str, Any]

    @property
    def arguments(self) -> dict[str, Any]:
        """Everything besides the messages."""
        decision = self.decision
        return {"model": decision.model, "tools": self.tools, "routing": decision.record, **self.options}

    @property
    def preview(self) -> dict[str, Any]:
        """The arguments of `client.to_wire`."""
        return {"messages": self.messages, "model": self.decision.model, "tools": self.tools, **self.options}
