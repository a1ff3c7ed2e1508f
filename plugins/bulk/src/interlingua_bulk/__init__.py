"""interlingua-bulk: files of many requests, sent once each and resumable at any kill.

Names load when first used (PEP 562).
"""
# ruff: noqa: F403  for type checkers alone

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

# Module -> the names that are imported from it when first used.
_NAMES = {
    "answers": "read_answers",
    "batches": "Batch BatchRun UncertainBatchError",
    "runner": "Report arun run",
    "sizing": "Estimate Plan estimate",
}

_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}

if TYPE_CHECKING:
    from interlingua_bulk.answers import *
    from interlingua_bulk.batches import *
    from interlingua_bulk.runner import *
    from interlingua_bulk.sizing import *
else:
    __all__ = list(_MODULES)

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
