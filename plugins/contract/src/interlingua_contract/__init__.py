"""The contract suite: it proves a provider plugin against its recordings (`pip install 'interlingua[contract]'`)."""
# ruff: noqa: F403  for type checkers alone

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
    from interlingua_contract.event_law import *
    from interlingua_contract.report import *
    from interlingua_contract.rule import *
    from interlingua_contract.subject import *
    from interlingua_contract.suite import *
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__, _NAMES)
