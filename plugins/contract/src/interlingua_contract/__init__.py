"""The contract suite: what an author of a provider plugin runs to know that it is right (`interlingua[contract]`).

Never knows a provider: it sees the hooks through core's façade, and recorded traffic. Test files of plugins come in,
the command `check`, and nothing that is shipped to run in production.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interlingua_contract.eventlaw import broken_laws
    from interlingua_contract.quirks import Quirks
    from interlingua_contract.report import Report, Result
    from interlingua_contract.rule import Finding, Rule
    from interlingua_contract.runner import check, run
    from interlingua_contract.subject import Subject
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
    "run",
]


_LATER = {
    "Finding": "rule",
    "ProviderContract": "suite",
    "Quirks": "quirks",
    "Report": "report",
    "Result": "report",
    "Rule": "rule",
    "Subject": "subject",
    "broken_laws": "eventlaw",
    "check": "runner",
    "run": "runner",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    globals()[name] = value
    return value
