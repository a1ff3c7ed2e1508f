"""Files of many requests: each is sent once, and an interrupted run can be resumed at any point."""
# ruff: noqa: F403  for type checkers alone

from __future__ import annotations

from typing import TYPE_CHECKING

from interlingua.plugins import lazy_names

# Module -> the names that are imported from it when first used.
_NAMES = {
    "answers": "read_answers",
    "batches": "Batch BatchRun UncertainBatchError",
    "runner": "BulkReport arun run",
    "sizing": "Estimate SizingPlan estimate",
}

if TYPE_CHECKING:
    from interlingua_bulk.answers import *
    from interlingua_bulk.batches import *
    from interlingua_bulk.runner import *
    from interlingua_bulk.sizing import *
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__, _NAMES)
