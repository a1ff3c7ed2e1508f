"""Tools: a registry of callables with their definitions, and the loop that runs what a model calls.

Never a provider and never a wire; a session brings the model and the store. Sessions and applications come in, by this
door only.
"""

from __future__ import annotations

from interlingua_sessions.tools.context import ToolContext
from interlingua_sessions.tools.cutting import RESULT_LIMIT
from interlingua_sessions.tools.decorator import tool
from interlingua_sessions.tools.function import Tool, tool_of
from interlingua_sessions.tools.loop import AgentLoop
from interlingua_sessions.tools.policy import DEFAULT_PERMISSIONS, Policy, by_side_effects
from interlingua_sessions.tools.reports import Limits
from interlingua_sessions.tools.toolbox import Toolbox
from interlingua_sessions.tools.values import Confirmation, Permission, Phase, ToolFailure, ToolOutput
from interlingua_sessions.tools.wants import StopCause, Stopped

__all__ = [
    "DEFAULT_PERMISSIONS",
    "RESULT_LIMIT",
    "AgentLoop",
    "Confirmation",
    "Limits",
    "Permission",
    "Phase",
    "Policy",
    "StopCause",
    "Stopped",
    "Tool",
    "ToolContext",
    "ToolFailure",
    "ToolOutput",
    "Toolbox",
    "by_side_effects",
    "tool",
    "tool_of",
]
