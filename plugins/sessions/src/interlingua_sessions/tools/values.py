"""What passes between a tool, the loop and whoever is asked: context, output, failure, confirmation, life cycle.

Never runs anything. Tools and applications come in, through the room's front door.
The words of the life cycle are seed 004's; the store keeps seed 003's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import StrEnum
from typing import Any

import attrs

from interlingua import InterlinguaError, SideEffects, ToolDefinition, ToolUseBlock
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


class ToolContext:
    """What a running tool may know and say, given to a parameter annotated with this class.

    Attributes:
        call: the call that is being answered.
    """

    def __init__(self, call: ToolUseBlock, update: Callable[[Any], None]) -> None:
        self.call = call
        self._update = update
        self._stopped = threading.Event()

    @property
    def cancelled(self) -> bool:
        """True once nobody waits for the result any more: return soon."""
        return self._stopped.is_set()

    def wait(self, seconds: float) -> bool:
        """Sleep in a blocking tool, but not past a cancellation; return True when cancelled."""
        return self._stopped.wait(seconds)

    def update(self, partial: Any) -> None:
        """Show listeners what there is so far; may be called from the tool's thread."""
        if not self.cancelled:
            self._update(partial)

    def stop(self) -> None:
        """Tell the tool that nobody waits."""
        self._stopped.set()


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
