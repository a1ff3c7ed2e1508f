"""What passes between a tool, the loop and whoever is asked: output, failure, confirmation, life cycle.

Never runs anything. Tools and applications come in, through the room's front door.
The words of the life cycle are seed 004's; the store keeps seed 003's.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import attrs

from interlingua import InterlinguaError
from interlingua.types.blocks import ToolUseBlock
from interlingua.types.tools import SideEffects, ToolDefinition
from interlingua_sessions.store import ToolCallStatus


class Phase(StrEnum):
    """How far a call got: seed 004's four words, and one for a call that was given up or not permitted."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def stored(self) -> ToolCallStatus:
        """The store's word for it (seed 003 §9); a running call is pending there, with its start time."""
        return _STORED[self]


_STORED = {
    Phase.PENDING: ToolCallStatus.PENDING,
    Phase.RUNNING: ToolCallStatus.PENDING,
    Phase.COMPLETED: ToolCallStatus.SUCCEEDED,
    Phase.FAILED: ToolCallStatus.FAILED,
    Phase.CANCELLED: ToolCallStatus.CANCELLED,
}


class ToolFailure(InterlinguaError):
    """Raise it in a tool to tell the model what went wrong in your own words; any other exception is told by name."""


@attrs.frozen(kw_only=True)
class ToolOutput:
    """What a tool returns when content alone does not say it all.

    Attributes:
        content: what the model reads: text, blocks, or anything that can be written as JSON.
        details: typed payload for the application; never sent to a model.
        metadata: internal tracking; never sent to a model.
        is_error: the tool failed, and the content says how.
        terminate: stop the loop after this result.
    """

    content: Any = ""
    details: Any = None
    metadata: Any = attrs.field(factory=dict)
    is_error: bool = False
    terminate: bool = False


class Permission(StrEnum):
    """What a policy says of a tool."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@attrs.frozen(kw_only=True)
class Confirmation:
    """The question put to a person before a tool runs."""

    tool: ToolDefinition
    call: ToolUseBlock

    @property
    def text(self) -> str:
        """The question in one line."""
        return f"Run {self.tool.name} ({_DOES[self.tool.side_effects]}) with {self.call.input_json}?"


_DOES = {
    SideEffects.NONE: "changes nothing",
    SideEffects.READ: "reads files or the network",
    SideEffects.WRITE: "writes files",
    SideEffects.EXECUTE: "runs code",
    SideEffects.NETWORK: "changes something over the network",
}
