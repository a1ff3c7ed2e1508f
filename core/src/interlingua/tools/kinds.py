"""The two closed vocabularies of a tool: what it may do to the world, and how a user interface may show it.

Never decides what a kind permits: routing and confirmation prompts do that (seed 003 §4, ToolDefinition).
The tools room comes in, and through its front door everyone who declares or shows a tool.
"""

from __future__ import annotations

from enum import StrEnum


class SideEffects(StrEnum):
    """What running a tool may change; every tool declares it honestly (seed 003 §4)."""

    NONE = "none"
    """Pure read or computation."""
    READ = "read"
    """Reads the filesystem or the network."""
    WRITE = "write"
    """Writes the filesystem."""
    EXECUTE = "execute"
    """Runs a shell or arbitrary code."""
    NETWORK = "network"
    """Changes something over the network."""


class ToolKind(StrEnum):
    """An optional hint for user interfaces (seed 001, ToolCallContent.kind).

    The seed names no values; these are the tool kinds of the Agent Client Protocol (its schema, `ToolKind`) without
    `switch_mode`, which is about the editor, not about a tool. An editor speaking that protocol shows the right icon.
    """

    READ = "read"
    EDIT = "edit"
    DELETE = "delete"
    MOVE = "move"
    SEARCH = "search"
    EXECUTE = "execute"
    THINK = "think"
    FETCH = "fetch"
    OTHER = "other"
