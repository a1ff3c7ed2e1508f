"""Files of many requests: each is sent once, and an interrupted run can be resumed at any point."""
# ruff: noqa: I001  a list of names for type checkers

from __future__ import annotations

from typing import TYPE_CHECKING

from interlingua.plugins import lazy_names

# Module -> the names that are imported from it when first used.
_NAMES = {
    "answers": "read_answers",
    "batch_records": "Batch",
    "batches": "BatchRun UncertainBatchError",
    "runner": "BulkReport arun run",
    "sizing": "Estimate SizingPlan estimate",
    "tables": "RowTemplate read_table",
}

if TYPE_CHECKING:
    # fmt: off
    from interlingua_bulk.answers import read_answers as read_answers
    from interlingua_bulk.batch_records import Batch as Batch
    from interlingua_bulk.batches import BatchRun as BatchRun, UncertainBatchError as UncertainBatchError
    from interlingua_bulk.runner import BulkReport as BulkReport, arun as arun, run as run
    from interlingua_bulk.sizing import Estimate as Estimate, SizingPlan as SizingPlan, estimate as estimate
    from interlingua_bulk.tables import RowTemplate as RowTemplate, read_table as read_table
    # fmt: on
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__, _NAMES)
