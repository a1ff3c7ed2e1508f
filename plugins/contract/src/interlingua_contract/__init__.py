"""The contract suite: what the author of a provider plugin runs to prove it (`interlingua[contract]`)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interlingua_contract.event_law import broken_laws
    from interlingua_contract.report import Report, Result, check, run
    from interlingua_contract.rule import Finding, Rule
    from interlingua_contract.subject import Quirks, Subject, read_quirks
    from interlingua_contract.suite import ProviderContract

__all__ = [
    "Finding",
    "ProviderContract",
    "Quirks",
    "Report",
    "Result",
    "Rule",
    "Subject",
    "broken_laws",
    "check",
    "read_quirks",
    "run",
]

# Where each name is defined: loaded when first used (PEP 562).
_MODULE_OF = {
    "Finding": "rule",
    "ProviderContract": "suite",
    "Quirks": "subject",
    "Report": "report",
    "Result": "report",
    "Rule": "rule",
    "Subject": "subject",
    "broken_laws": "event_law",
    "check": "report",
    "read_quirks": "subject",
    "run": "report",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value
