"""The report of a mutation run: the score by hook, kind of operation and part, and every survivor."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import attrs

from interlingua_contract.mutation.operations import operations_at
from interlingua_contract.mutation.run import MutationRun, Verdict, judge_all, sample_of
from interlingua_contract.mutation.tree import format_place

_PART_STEPS = 2


@attrs.frozen
class Score:
    """How many mutants were noticed.

    Attributes:
        killed: a rule noticed it.
        survived: no rule did.
        free: declared free.
    """

    killed: int = 0
    survived: int = 0
    free: int = 0

    @property
    def share(self) -> float:
        """The noticed part of those that are not free; 1 if all are."""
        judged = self.killed + self.survived
        return self.killed / judged if judged else 1.0

    def __str__(self) -> str:
        return f"{self.killed} of {self.killed + self.survived} ({self.share:.1%})"


def hook_of(verdict: Verdict) -> str:
    """Return the hook of a verdict's mutant."""
    return verdict.mutant.hook


def kind_of(verdict: Verdict) -> str:
    """Return the kind of its operation."""
    return operations_at(verdict.mutant.place)[verdict.mutant.operation].kind


def part_of(verdict: Verdict) -> str:
    """Return its hook with the first names of its place: `to_wire /body/messages`."""
    names = [step for step in verdict.mutant.place if not step.startswith("*")]
    return f"{verdict.mutant.hook} {format_place(tuple(names[:_PART_STEPS]))}"


def scores(verdicts: Iterable[Verdict], group: Callable[[Verdict], str]) -> dict[str, Score]:
    """Return the score of each group, in the order of the names."""
    found: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(("killed", "survived", "free"), 0))
    for verdict in verdicts:
        if verdict.fate != "unapplied":
            found[group(verdict)][verdict.fate] += 1
    return {name: Score(**counts) for name, counts in sorted(found.items())}


@attrs.frozen(kw_only=True)
class MutationReport:
    """The verdicts on one provider.

    Attributes:
        provider: its key.
        verdicts: verdict on every mutant that was tried.
        planned: number of mutants that there are.
        unreached: hooks that the plugin has and no rule calls.
        not_judging: numbers of rules that failed, were skipped or deviated without any mutant.
        seconds: duration of the run.
        seed: seed of the sample and of the conversations.
    """

    provider: str
    verdicts: tuple[Verdict, ...]
    planned: int
    unreached: tuple[str, ...]
    not_judging: tuple[str, ...]
    seconds: float
    seed: int

    @property
    def score(self) -> Score:
        """Of all verdicts."""
        return scores(self.verdicts, lambda _: "all").get("all", Score())

    @property
    def survivors(self) -> list[Verdict]:
        """Those that no rule noticed, by hook and place."""
        return sorted((each for each in self.verdicts if each.fate == "survived"), key=lambda each: str(each.mutant))

    def lines(self) -> list[str]:
        """Return the report for a terminal: survivors by part, then scores."""
        survivors, score = self.survivors, self.score
        lines = _survivor_lines(survivors)
        for title, group in (("hook", hook_of), ("kind of operation", kind_of)):
            found = scores(self.verdicts, group)
            width = max(map(len, (title, *found)))
            lines += ["", title.ljust(width), *(f"{name.ljust(width)}  {each}" for name, each in found.items())]
        lines.append("")
        if self.not_judging:
            lines.append(f"rules that cannot judge, as they do not pass unchanged: {', '.join(self.not_judging)}")
        if self.unreached:
            lines.append(f"hooks that no rule calls: {', '.join(self.unreached)}")
        tried = f"{len(self.verdicts)} of {self.planned} changes tried in {self.seconds:.0f} s (seed {self.seed})"
        free = f", {score.free} free" if score.free else ""
        lines.append(f"{self.provider}: {score} noticed, {len(survivors)} survived{free}; {tried}")
        return lines

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {
            "provider": self.provider,
            "seed": self.seed,
            "seconds": round(self.seconds, 1),
            "planned": self.planned,
            "tried": len(self.verdicts),
            **_as_json(self.score),
            "unreached_hooks": list(self.unreached),
            "rules_that_cannot_judge": list(self.not_judging),
            "by_hook": {name: _as_json(score) for name, score in scores(self.verdicts, hook_of).items()},
            "by_kind": {name: _as_json(score) for name, score in scores(self.verdicts, kind_of).items()},
            "by_part": {name: _as_json(score) for name, score in scores(self.verdicts, part_of).items()},
            "survivors": [
                {
                    "hook": each.mutant.hook,
                    "place": format_place(each.mutant.place),
                    "operation": each.mutant.operation,
                    "scene": each.scene,
                    "value": each.value,
                    "rules": list(each.rules),
                }
                for each in self.survivors
            ],
        }


def _as_json(score: Score) -> dict[str, Any]:
    return {**attrs.asdict(score), "score": round(score.share, 4)}


def _survivor_lines(verdicts: Sequence[Verdict]) -> list[str]:
    """Return a line for each place with its surviving operations, under a line for each part."""
    lines: list[str] = []
    parts: dict[str, dict[str, list[Verdict]]] = defaultdict(lambda: defaultdict(list))
    for verdict in verdicts:
        parts[part_of(verdict)][format_place(verdict.mutant.place)].append(verdict)
    for part, places in sorted(parts.items()):
        lines.append(f"{part}: {sum(map(len, places.values()))}")
        for place, found in sorted(places.items()):
            operations = ", ".join(sorted(each.mutant.operation for each in found))
            lines.append(f"  {place}: {operations}")
            lines.append(f"    {found[0].value}  seen in {found[0].scene}; not noticed by {' '.join(found[0].rules)}")
    return lines


def measure(
    run: MutationRun,
    *,
    sample: int | None = None,
    seconds: float | None = None,
    jobs: int | None = None,
    progress: Callable[[Verdict], None] = lambda _verdict: None,
) -> MutationReport:
    """Judge the mutants of a provider, with the network closed, and return the report.

    Args:
        run: what to judge; `discover` was not called yet.
        sample: number of mutants to judge, chosen by the seed.
        seconds: time for judging, in seconds.
        jobs: processes; None for one per core.
        progress: called with each verdict.
    """
    started = time.monotonic()
    run.discover()
    every = run.mutants()
    chosen = every if sample is None else sample_of(every, sample, run.seed)
    until = float("inf") if seconds is None else time.monotonic() + seconds
    verdicts = tuple(judge_all(run, chosen, jobs=jobs or os.cpu_count() or 1, until=until, progress=progress))
    return MutationReport(
        provider=run.key,
        verdicts=verdicts,
        planned=len(every),
        unreached=run.unreached(),
        not_judging=run.not_judging,
        seconds=time.monotonic() - started,
        seed=run.seed,
    )
