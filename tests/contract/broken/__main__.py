"""Print the kill matrix: each broken adapter, the rule that must catch it in every run, and which others do.

`python -m tests.contract.broken [--seeds 3] [--named] [--only WORD]`; exit code 1 when a mutant gets past its rule, or
when an unbroken provider is caught. The named rule sees everything; the others see a sample of cassettes and models.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from typing import Any

import attrs

from interlingua_contract.report import check
from interlingua_contract.rules import ALL
from interlingua_contract.subject import Subject
from tests.contract.broken import SHELF
from tests.contract.broken.machine import Handed, real, real_serving, subject_of

RULES = {rule.number: rule for rule in ALL}

_NOT_SAMPLED = ("C48", "C49", "C50", "C51", "C58", "C68")
"""Rules on distributions, on all cassettes, and those that start processes."""

UNBROKEN = (
    *(("anthropic", ""), ("openai", "chat"), ("openai", "responses")),
    *(("google", "generate"), ("google", "interactions"), ("ollama", ""), ("mistral", ""), ("cohere", "")),
)


def _sampled(subject: Subject) -> Subject:
    """Leave two models, and two cassettes of each form."""
    forms: dict[tuple[bool, bool], list[Any]] = {}
    for exchange in subject.exchanges:
        forms.setdefault((exchange.good, exchange.streamed), []).append(exchange)
    vars(subject)["exchanges"] = tuple(one for some in forms.values() for one in some[:2])
    vars(subject)["aims"] = subject.aims[:2]
    return subject


def _row(work: tuple[int, int, bool]) -> tuple[bool, list[str]]:
    """Run one mutant with one seed: the rule that it names, and the others with the first seed."""
    at, seed, named = work
    mutant = SHELF[at]
    killed = check(mutant.subject(seed), RULES[mutant.rule], 1).outcome == "fail"
    if named or mutant.alone or seed:
        return killed, []
    sample = _sampled(mutant.subject(0, 4))
    others = [rule for rule in ALL if rule.number not in (mutant.rule, *_NOT_SAMPLED)]
    return killed, [rule.number for rule in others if check(sample, rule, 1).outcome == "fail"]


def _unbroken(which: tuple[str, str]) -> tuple[str, list[str]]:
    """Run every rule on a provider with no defect in the same machine."""
    key, api = which
    subject = subject_of(key, Handed(real(key), real_serving(key)), api, examples=12)
    excuses = subject.quirks.unevidenced  # of one wire of several, those that it needs
    declared = [aim.capabilities for aim in subject.aims]
    needed = {name: why for name, why in excuses.items() if any(getattr(one, name) for one in declared)}
    subject.quirks = attrs.evolve(subject.quirks, unevidenced=needed)
    return f"{key} {api}".strip(), [rule.number for rule in ALL if check(subject, rule).outcome == "fail"]


def main() -> int:
    """Run the shelf."""
    parser = argparse.ArgumentParser(description="Print the kill matrix.")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--named", action="store_true", help="run only the rule that each row names")
    parser.add_argument("--only", default="", help="mutants with this in their name")
    parser.add_argument("--jobs", type=int, default=multiprocessing.cpu_count())
    asked = parser.parse_args()
    started, missed = time.monotonic(), 0
    chosen = [at for at, mutant in enumerate(SHELF) if asked.only in mutant.name]
    fork = multiprocessing.get_context("fork")
    with fork.Pool(asked.jobs) as pool:
        for name, failed in pool.imap(_unbroken, UNBROKEN if not asked.only else ()):
            missed += bool(failed)
            print(f"unbroken  {name:<60} {'fails ' + ' '.join(failed) if failed else 'fails nothing'}", flush=True)
    with fork.Pool(asked.jobs, maxtasksperchild=1) as pool:  # many mutants keep something from call to call
        rows = pool.imap(_row, [(at, seed, asked.named) for at in chosen for seed in range(asked.seeds)])
        for at in chosen:
            killed, others = zip(*(next(rows) for _ in range(asked.seeds)), strict=True)
            missed += not all(killed)
            marks = "".join("x" if one else "-" for one in killed)
            said = "killed" if all(killed) else "MISSED"
            print(f"{SHELF[at].rule} {marks} {said}  {SHELF[at].name:<60} {' '.join(others[0])}", flush=True)
    print(f"{len(chosen)} mutants, {asked.seeds} seeds, {missed} missed, {time.monotonic() - started:.0f} s")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
