"""Whether a tool may run: by its side effects (seed 003 §4.5), by its name, or as a person says.

Never asks anybody itself and never runs a tool. The batch comes in, and applications with a policy of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from interlingua.types.tools import SideEffects, ToolDefinition
from interlingua_sessions.tools.values import Permission

Policy: TypeAlias = Callable[[ToolDefinition], Permission]
"""Says of each tool whether it may run, may not, or somebody is to be asked."""

DEFAULT_PERMISSIONS: Mapping[SideEffects, Permission] = {
    SideEffects.NONE: Permission.ALLOW,
    SideEffects.READ: Permission.ALLOW,
    SideEffects.WRITE: Permission.ASK,
    SideEffects.EXECUTE: Permission.ASK,
    SideEffects.NETWORK: Permission.ASK,
}
"""What only looks may run; what changes something is asked for, and without anybody to ask it does not run."""


def by_side_effects(
    permissions: Mapping[SideEffects, Permission] | None = None, *, tools: Mapping[str, Permission] | None = None
) -> Policy:
    """Make a policy.

    Args:
        permissions: for some classes of side effects, instead of the default.
        tools: for single tools by name; these go first.
    """
    classes = {**DEFAULT_PERMISSIONS, **(permissions or {})}
    named = dict(tools or {})

    def decide(tool: ToolDefinition) -> Permission:
        return named.get(tool.name, classes[tool.side_effects])

    return decide
