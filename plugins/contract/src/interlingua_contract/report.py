"""Run rules over a provider, with the network closed, and report each result and what the provider supports."""

from __future__ import annotations

import multiprocessing
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Literal, get_args

import attrs

import interlingua
from interlingua.errors import InterlinguaError
from interlingua.plugins import CONTRACT_VERSION
from interlingua_contract.guard import no_network, silence_log
from interlingua_contract.rule import RULES, ContractRule, NotApplicable, RuleFinding
from interlingua_contract.rules import ALL
from interlingua_contract.rules.evidence import Support, support_table
from interlingua_contract.rules.installation import UNWRITTEN
from interlingua_contract.subject import Subject

Outcome = Literal["pass", "fail", "skip", "deviates"]
"""`skip`: the rule had nothing to check, see `reason`; `deviates`: broken as the quirks declare."""


@attrs.frozen(kw_only=True)
class RuleResult:
    """The result of one rule."""

    rule: ContractRule
    outcome: Outcome
    findings: tuple[RuleFinding, ...] = ()
    reason: str = ""
    seconds: float = 0.0


@attrs.frozen(kw_only=True)
class ContractReport:
    """The results of all rules, and what the provider supports.

    Attributes:
        provider: provider key.
        distribution: its distribution; empty if it is not installed.
        version: version of the distribution.
        results: results of the rules.
        support: what the provider supports, by evidence.
        plugin_contract_version: the contract that the plugin states.
    """

    provider: str
    distribution: str
    version: str
    results: tuple[RuleResult, ...]
    support: tuple[Support, ...] = ()
    plugin_contract_version: int = 1

    @property
    def failed(self) -> tuple[RuleResult, ...]:
        """Results that fail the run."""
        return tuple(result for result in self.results if result.outcome == "fail")

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON values, as `report.schema.json` beside this module describes them."""
        counts = Counter(result.outcome for result in self.results)
        return {
            "report_version": 1,
            "provider": self.provider,
            "distribution": self.distribution,
            "version": self.version,
            "plugin_contract_version": self.plugin_contract_version,
            "interlingua_version": interlingua.__version__,
            "contract_version": CONTRACT_VERSION,
            "passed": not self.failed,
            "counts": {name: counts[name] for name in get_args(Outcome)},
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


_BADGE = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="{left}: {right}">
<rect width="{width}" height="20" rx="3" fill="#555"/>
<rect x="{at}" width="{rest}" height="20" rx="3" fill="{fill}"/>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">
<text x="6" y="14" textLength="{left_width}">{left}</text>
<text x="{right_at}" y="14" textLength="{right_width}">{right}</text>
</g>
</svg>
"""


def draw_badge(report: ContractReport) -> str:
    """Return an SVG image for a README: the contract's version, and how many of the rules that apply are kept."""
    kept = sum(result.outcome == "pass" for result in report.results)
    applied = sum(result.outcome != "skip" for result in report.results)
    left, right = f"interlingua contract {CONTRACT_VERSION}", f"{kept} of {applied} rules"
    left_width, right_width = round(len(left) * 6.2), round(len(right) * 6.2)  # pixels, of Verdana at 11
    at = left_width + 12
    return _BADGE.format(
        width=at + right_width + 12,
        at=at,
        rest=right_width + 12,
        right_at=at + 6,
        fill="#c33" if report.failed else "#2a7d2a",
        left=left,
        right=right,
        left_width=left_width,
        right_width=right_width,
    )


MOST_FINDINGS = 20
"""Most findings of one rule in a report; more would not help."""


def check(subject: Subject, rule: ContractRule, most: int = MOST_FINDINGS) -> RuleResult:
    """Run one rule and return its result, with at most `most` findings.

    A rule that only met unwritten functions is skipped with that reason; C00 lists them all.
    """
    started = time.monotonic()
    findings: list[RuleFinding] = []
    reason = ""
    with no_network(), silence_log():
        try:
            findings.extend(islice(rule.check(subject), most))
        except NotApplicable as nothing:
            reason = str(nothing)
        except Exception as error:  # a hook may fail in any way, and the other rules still run
            findings.append(RuleFinding(f"the check itself failed with {type(error).__name__}: {error}"))
    met = _find_met(subject, findings) if rule.number != UNWRITTEN else []
    if met:
        findings = [finding for finding in findings if not any(text in finding.why for text in met)]
        reason = f"{met[0]} ({UNWRITTEN} lists all)"
    outcome: Outcome = "fail" if findings else "skip" if reason else "pass"
    if findings:
        reason = ""
    if findings and rule.needs and not subject.informed:
        outcome, findings = "skip", []
        reason = f"this needs facts that no code shows (quirks: {', '.join(rule.needs)}): name the folder of cassettes"
    rows = subject.quirks.deviations.get(rule.number)
    if rows is not None and not met:
        outcome, reason, findings = _excuse(rule, rows, findings)
    spent = time.monotonic() - started
    return RuleResult(rule=rule, outcome=outcome, findings=tuple(findings), reason=reason, seconds=spent)


def _excuse(
    rule: ContractRule, rows: Mapping[str, str], findings: list[RuleFinding]
) -> tuple[Outcome, str, list[RuleFinding]]:
    """Take the declared findings out; what is left fails, and so does a declaration without a finding."""
    left = [finding for finding in findings if not any(words in str(finding) for words in rows)]
    left += [
        RuleFinding(f"quirks.deviations declares {words!r}, but there is no such finding: remove that", rule.number)
        for words in rows
        if not any(words in str(finding) for finding in findings)
    ]
    return ("fail", "", left) if left else ("deviates", "; ".join(rows.values()), findings)


def _find_met(subject: Subject, findings: list[RuleFinding]) -> list[str]:
    """Return the messages of unwritten functions that occur in the findings."""
    try:
        return [text for text in subject.unwritten if any(text in finding.why for finding in findings)]
    except InterlinguaError:  # a plugin that cannot be loaded: each rule reports it
        return []


_SLOWEST_FIRST = (
    "C58",
    "C01",
    "C62",
    "C02",
    "C52",
    "C05",
    "C04",
    "C60",
    "C08",
    "C14",
    "C33",
    "C65",
    "C61",
    "C03",
    "C66",
)
"""Numbers of the rules that take longest, for a run on several processors."""

_shared: Subject  # of a worker process, which inherits it


def run(
    subject: Subject,
    rules: Iterable[ContractRule] = ALL,
    progress: Callable[[RuleResult], None] = lambda _result: None,
    *,
    jobs: int = 1,
    quick_first: bool = False,
) -> ContractReport:
    """Run rules and return the report.

    Args:
        subject: the provider.
        rules: those to run.
        progress: called with each result as soon as it is known.
        jobs: processes; without `fork` there is one.
        quick_first: begin with the rules that take little time.

    Raises:
        InterlinguaError: the provider is not installed, or cannot be loaded.
    """
    shipped = subject.provider.distribution
    rules = list(rules)
    found = {}
    for result in _results(subject, _groups(rules, quick_first=quick_first, in_turn=jobs == 1), jobs):
        found[result.rule.number] = result
        progress(result)
    try:
        with no_network(), silence_log():
            support = tuple(support_table(subject))
    except (InterlinguaError, NotApplicable):
        support = ()
    return ContractReport(
        provider=subject.key,
        distribution=shipped.name,
        version=shipped.version,
        results=tuple(found[rule.number] for rule in rules),
        support=support,
        plugin_contract_version=subject.contract_version,
    )


def _groups(rules: list[ContractRule], *, quick_first: bool, in_turn: bool) -> list[list[str]]:
    """Return the numbers of the rules in the order to run them; those that share other processes are together."""
    numbers = [rule.number for rule in rules]
    if quick_first or not in_turn:
        ranks = {number: rank for rank, number in enumerate(_SLOWEST_FIRST)}
        numbers.sort(key=lambda number: -ranks.get(number, 99) if quick_first else ranks.get(number, 99))
    shared = [number for number in numbers if number in ("C58", "C68")]
    return [shared if number in shared else [number] for number in numbers if number not in shared[1:]]


def _results(subject: Subject, groups: list[list[str]], jobs: int) -> Iterator[RuleResult]:
    global _shared  # noqa: PLW0603  a forked process finds it there
    _shared = subject
    if jobs > 1 and "fork" in multiprocessing.get_all_start_methods():
        _ = subject.aims, subject.exchanges  # read once, before the processes part
        with multiprocessing.get_context("fork").Pool(jobs) as pool:
            for results in pool.imap_unordered(_check_group, groups):
                yield from results
    else:
        for group in groups:
            yield from _check_group(group)


def _check_group(numbers: list[str]) -> list[RuleResult]:
    return [check(_shared, RULES[number]) for number in numbers]
