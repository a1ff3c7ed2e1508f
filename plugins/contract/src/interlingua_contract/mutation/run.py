"""Run the rules against each mutant of a provider, in several processes, cheapest and likeliest rule first."""

from __future__ import annotations

import json
import multiprocessing
import random
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import attrs

from interlingua.errors import CallerError
from interlingua.plugins import Registry
from interlingua_cli.cassettes import RecordedExchange
from interlingua_contract.mutation.free import reason_of
from interlingua_contract.mutation.seam import Crossing, Mutant, Seam
from interlingua_contract.mutation.tree import Place, format_place
from interlingua_contract.recordings import read_answer
from interlingua_contract.report import check
from interlingua_contract.rule import ContractRule
from interlingua_contract.rules import ALL
from interlingua_contract.subject import Quirks, Subject

Fate = Literal["killed", "survived", "free", "unapplied"]

OTHER_PROCESSES = frozenset({"C48", "C49", "C50", "C58"})
"""Rules that check the distribution or start processes: a mutant of this process is not there."""

_COMPARING = frozenset({"C94", "C95", "C96", "C97", "C98", "C99"})
"""Rules that compare whole results: the likeliest to notice."""

_DERIVED = {
    "connection": frozenset({"aims", "exchanges", "apis", "connection"}),
    "capabilities": frozenset({"aims"}),
    "models": frozenset({"aims"}),
}
"""Attributes that a subject derives from a hook: a mutant of the hook needs a subject without them."""

_NEAR_AIMS = 2
"""Models that a mutant is first held against."""

_NEAR_REQUESTS = 4
"""Recorded requests, each with its answers, that a mutant is first held against."""

_SLOW = 10
"""A rule that takes this many times the median is left out at first."""

_VALUE = 120
"""Characters of a value that are shown."""

_KEPT = ("aims", "exchanges", "apis", "connection", "unwritten")


@attrs.frozen(kw_only=True)
class Verdict:
    """The verdict on one mutant.

    Attributes:
        mutant: the mutant.
        fate: `unapplied` if no result was changed by it.
        rule: number of the rule that noticed it, or "".
        scene: where its place was met first.
        value: what was there.
        reason: the reason why it is free.
        rules: numbers of the rules that did not notice it.
    """

    mutant: Mutant
    fate: Fate
    rule: str = ""
    scene: str = ""
    value: str = ""
    reason: str = ""
    rules: tuple[str, ...] = ()


class MutationRun:
    """The mutants of one provider and the rules that may notice them.

    Args:
        key: provider key.
        cassettes: folder of its cassettes.
        registry: the registry that has the provider; it gets another plugin, so it is good for nothing else.
        quirks: as for `Subject`.
        examples: generated conversations per rule.
        seed: seed of their generation, and of a sample.
        rules: the rules to run.
        confirm: hold a survivor against every model, cassette and rule too. A run without that is several times as
            quick; some of its survivors would be noticed then.
    """

    def __init__(
        self,
        key: str,
        cassettes: Path | None = None,
        *,
        registry: Registry | None = None,
        quirks: Quirks | None = None,
        examples: int = 4,
        seed: int = 0,
        rules: Sequence[ContractRule] = ALL,
        confirm: bool = True,
    ) -> None:
        """Add the seam to the registry.

        Raises:
            CallerError: the registry has loaded the provider already, without the seam.
        """
        self._confirm = confirm
        self.key = key
        self.seed = seed
        self.seam = Seam()
        self._registry = registry or Registry()
        self._registry.add_plugin(self.seam, "the seam of interlingua check --mutate")
        self._plain = Subject(key, cassettes, quirks, registry=self._registry, examples=examples, seed=seed, shrink_s=0)
        if all(each.plugin is not self.seam for each in self._plain.provider._hook.to_wire.get_hookimpls()):
            raise CallerError(f"the registry has loaded {key!r} already; pass a new one")
        self.not_judging: tuple[str, ...] = ()
        self._rules = {rule.number: rule for rule in rules if rule.number not in OTHER_PROCESSES}
        self._seconds: dict[str, float] = {}
        self._need_all: set[str] = set()
        self._sound: dict[tuple[Any, ...], bool] = {}
        self._kills: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)

    def discover(self, progress: Callable[[str], None] = lambda _rule: None) -> None:
        """Run every rule once and record what crosses; rules that fail already cannot judge."""
        for name in _KEPT:
            getattr(self._plain, name)
        for at, exchange in enumerate(self._plain.exchanges):
            with self.seam.record(f"@{at}"):
                read_answer(self._plain, exchange)
        for number, rule in list(self._rules.items()):
            subject = self._subject(frozenset({"aims", "apis", "connection"}))
            with self.seam.record(number):
                result = check(subject, rule, 1)
            progress(number)
            self._seconds[number] = result.seconds
            if result.outcome != "pass":
                del self._rules[number]
                self.not_judging = (*self.not_judging, number)

    def crossings(self) -> list[Crossing]:
        """Return the places that a judging rule reaches."""
        return [seen for seen in self.seam.crossings.values() if seen.rules & self._rules.keys()]

    def mutants(self) -> list[Mutant]:
        """Return every mutant, in the order of places."""
        return [mutant for seen in self.crossings() for mutant in seen.mutants]

    def unreached(self) -> tuple[str, ...]:
        """Return the hooks that the plugin has and no rule calls."""
        reached = {hook for hook, _ in self.seam.crossings}
        hook = self._plain.provider._hook
        own = {
            name
            for name in vars(hook)
            if not name.startswith("_") and any(not each.wrapper for each in getattr(hook, name).get_hookimpls())
        }
        return tuple(sorted(own - reached - {"wire_rules", "prepare_request", "observe", "instrument"}))

    def judge(self, mutant: Mutant) -> Verdict:
        """Run the rules that may notice a mutant, until one does."""
        seen = self.seam.crossings[mutant.hook, mutant.place]
        verdict = Verdict(
            mutant=mutant, fate="unapplied", scene=seen.scene, value=seen.example(mutant.operation)[:_VALUE]
        )
        if (reason := reason_of(mutant)) is not None:
            return attrs.evolve(verdict, fate="free", reason=reason)
        order = self._order(mutant, seen.rules)
        changed = 0
        limit = _SLOW * statistics.median(self._seconds.values())
        once = not self._confirm or mutant.hook in _DERIVED
        for near in (True, False):  # first with what the place is in, then with everything
            for number in order:
                if near and not once and self._seconds[number] > limit:
                    continue  # it runs in the second round
                applied, failed = self._try(mutant, number, seen if near else None)
                changed += applied
                if failed:
                    for key in _keys(mutant):
                        self._kills[key][number] += 1
                    return attrs.evolve(verdict, fate="killed", rule=number)
            if once:
                break
        return attrs.evolve(verdict, fate="survived", rules=tuple(sorted(order))) if changed else verdict

    def _try(self, mutant: Mutant, number: str, near: Crossing | None) -> tuple[int, bool]:
        """Run one rule against a mutant; return how many results changed, and whether the rule noticed."""
        rule, derived = self._rules[number], _DERIVED.get(mutant.hook, frozenset())
        while True:
            subject = self._subject(derived, None if number in self._need_all else near)
            with self.seam.arm(mutant):
                failed = check(subject, rule, 1).outcome == "fail" and self.seam.applied > 0
            if not failed or near is None or derived or number in self._need_all:
                return self.seam.applied, failed
            part = (number, *map(id, (*subject.aims, *subject.exchanges)))
            if part not in self._sound:
                self._sound[part] = check(self._subject(derived, near), rule, 1).outcome == "pass"
            if self._sound[part]:
                return self.seam.applied, failed
            self._need_all.add(number)  # it fails for what was left out

    def _order(self, mutant: Mutant, rules: Iterable[str]) -> list[str]:
        """Return the rules, those first that noticed similar mutants, and of equal ones the quickest."""
        histories = [(weight, self._kills[key]) for weight, key in zip((8, 3, 1), _keys(mutant), strict=True)]
        totals = [(weight / sum(kills.values()), kills) for weight, kills in histories if kills]

        def rank(number: str) -> float:
            likely = (0.5 if number in _COMPARING else 0.02) + sum(weight * kills[number] for weight, kills in totals)
            return -likely / (self._seconds[number] + 0.005)

        return sorted((number for number in rules if number in self._rules), key=rank)

    def _subject(self, derived: frozenset[str], seen: Crossing | None = None) -> Subject:
        """Return a subject for one rule, with what the plain one has read except `derived`.

        `seen` leaves only some models and the exchanges in which its place is, with those of the same request.
        """
        plain = self._plain
        made = Subject(
            plain.key,
            plain.folder,
            plain.quirks,
            registry=self._registry,
            examples=plain.examples,
            seed=plain.seed,
            shrink_s=0,
        )
        vars(made)["provider"] = plain.new_provider()
        for name in _KEPT:
            if name not in derived or name == "unwritten":
                vars(made)[name] = vars(plain)[name]
        if seen is not None and not derived:
            near = tuple(aim for aim in plain.aims if aim.name in seen.aims)[:_NEAR_AIMS]
            vars(made)["aims"] = near or plain.aims
            vars(made)["exchanges"] = self._exchanges_with(seen) or plain.exchanges
        return made

    def _exchanges_with(self, seen: Crossing) -> tuple[RecordedExchange, ...]:
        """Return the exchanges in whose answers a place is, and those of the same requests."""
        every = self._plain.exchanges
        there = [_asked(exchange) for at, exchange in enumerate(every) if f"@{at}" in seen.rules]
        asked = list(dict.fromkeys(there))[:_NEAR_REQUESTS]
        return tuple(exchange for exchange in every if _asked(exchange) in asked)


def _asked(exchange: RecordedExchange) -> str:
    """Return a request without what says that its answer is streamed."""
    body = exchange.request if isinstance(exchange.request, dict) else {}
    return json.dumps({name: value for name, value in body.items() if not name.startswith("stream")}, sort_keys=True)


def _keys(mutant: Mutant) -> tuple[tuple[str, ...], ...]:
    place = format_place(mutant.place)
    return (mutant.hook, place), (mutant.hook, mutant.operation), (mutant.hook,)


_current: tuple[MutationRun, float]  # of a worker process, which inherits it


def _judge_place(mutants: Sequence[Mutant]) -> list[Verdict]:
    """Judge the mutants of one place, at least one, until the time is over."""
    run, until = _current
    found: list[Verdict] = []
    for mutant in mutants:
        if found and time.monotonic() > until:
            break
        found.append(run.judge(mutant))
    return found


def judge_all(
    run: MutationRun,
    mutants: Sequence[Mutant],
    *,
    jobs: int = 1,
    until: float = float("inf"),
    progress: Callable[[Verdict], None] = lambda _verdict: None,
) -> Iterator[Verdict]:
    """Yield the verdict on each mutant, those of one place after each other.

    Args:
        run: after `discover`.
        mutants: those to judge.
        jobs: processes; without `fork` there is one.
        until: time of `time.monotonic` after which no further place is tried.
        progress: called with each verdict.
    """
    global _current  # noqa: PLW0603  a forked process finds it there
    _current = run, until
    groups: dict[tuple[str, Place], list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        groups[mutant.hook, mutant.place].append(mutant)
    work = list(groups.values())
    random.Random(run.seed).shuffle(work)  # noqa: S311  what is done within a time limit is a fair part
    if jobs > 1 and "fork" in multiprocessing.get_all_start_methods():
        with multiprocessing.get_context("fork").Pool(jobs) as pool:
            yield from _reported(pool.imap_unordered(_judge_place, work), until, progress)
    else:
        yield from _reported(map(_judge_place, work), until, progress)


def _reported(found: Iterable[list[Verdict]], until: float, progress: Callable[[Verdict], None]) -> Iterator[Verdict]:
    for verdicts in found:
        for verdict in verdicts:
            progress(verdict)
            yield verdict
        if time.monotonic() > until:
            return


def sample_of(mutants: Sequence[Mutant], most: int, seed: int) -> list[Mutant]:
    """Return a number of the mutants, chosen by the seed, in their order."""
    if most >= len(mutants):
        return list(mutants)
    chosen = set(random.Random(seed).sample(range(len(mutants)), most))  # noqa: S311  no secret
    return [mutant for at, mutant in enumerate(mutants) if at in chosen]
