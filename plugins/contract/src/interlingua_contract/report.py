"""The report of a run: the result of each rule and the support table, as values and as JSON.

Never prints. The runner makes it; the command line and continuous integration come in.
"""

from __future__ import annotations

from typing import Any, Literal

import attrs

from interlingua.plugins.hookspecs import CONTRACT_VERSION
from interlingua_contract.rule import Finding, Rule
from interlingua_contract.rules.evidence import Support

Outcome = Literal["pass", "fail", "skip", "deviates"]


"""`skip`: there was nothing to look at, `reason` says what is missing; `deviates`: broken as the quirks declare."""


@attrs.frozen(kw_only=True)
class Result:
    """What became of one rule."""

    rule: Rule
    outcome: Outcome
    findings: tuple[Finding, ...] = ()
    reason: str = ""
    seconds: float = 0.0


@attrs.frozen(kw_only=True)
class Report:
    """What became of all rules, and what the provider supports."""

    provider: str
    distribution: str
    version: str
    results: tuple[Result, ...]
    support: tuple[Support, ...] = ()

    @property
    def failed(self) -> tuple[Result, ...]:
        """The results that fail the run."""
        return tuple(result for result in self.results if result.outcome == "fail")

    def as_json(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return {
            "provider": self.provider,
            "distribution": self.distribution,
            "version": self.version,
            "contract_version": CONTRACT_VERSION,
            "passed": not self.failed,
            "rules": [
                {
                    "rule": result.rule.number,
                    "name": result.rule.name,
                    "statement": result.rule.statement,
                    "outcome": result.outcome,
                    "reason": result.reason,
                    "findings": [attrs.asdict(finding) for finding in result.findings],
                    "seconds": round(result.seconds, 3),
                }
                for result in self.results
            ],
            "support": [attrs.asdict(row) for row in self.support],
        }
