"""Compaction: keeping what a model is sent inside its window, and building that from what is stored.

Never rewrites history and never sends by itself. Sessions and applications come in, by this door only.
What it decides is stored as session-only entries (seed 001), so every machine builds the same context.
"""

from __future__ import annotations

from interlingua_sessions.compaction.compaction import Compaction, CompactionPolicy
from interlingua_sessions.compaction.context import build_context
from interlingua_sessions.compaction.layout import PRUNING
from interlingua_sessions.compaction.pruning import ToolPruning
from interlingua_sessions.compaction.summary import INSTRUCTION, Summary

__all__ = [
    "INSTRUCTION",
    "PRUNING",
    "Compaction",
    "CompactionPolicy",
    "Summary",
    "ToolPruning",
    "build_context",
]
