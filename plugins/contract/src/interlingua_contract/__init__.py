"""The contract suite: it proves a provider plugin against its recordings (`pip install 'interlingua[contract]'`)."""
# ruff: noqa: I001  a list of names for type checkers

from __future__ import annotations

from typing import TYPE_CHECKING

from interlingua.plugins import lazy_names

# Module -> the names that are imported from it when first used.
_NAMES = {
    "event_law": "broken_laws",
    "report": "ContractReport RuleResult check run",
    "rule": "ContractRule RuleFinding",
    "subject": "Quirks Subject read_quirks",
    "suite": "ProviderContract",
}

if TYPE_CHECKING:
    # fmt: off
    from interlingua_contract.event_law import broken_laws as broken_laws
    from interlingua_contract.report import (
        ContractReport as ContractReport, RuleResult as RuleResult, check as check, run as run
    )
    from interlingua_contract.rule import ContractRule as ContractRule, RuleFinding as RuleFinding
    from interlingua_contract.subject import Quirks as Quirks, Subject as Subject, read_quirks as read_quirks
    from interlingua_contract.suite import ProviderContract as ProviderContract
    # fmt: on
    # fmt: on
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__, _NAMES)
