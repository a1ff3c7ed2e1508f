"""The verb that pairs calls with their results.

Never knows what a call looks like: paths say where its id stands, or its name on a wire without ids.
The table of verbs comes in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from interlingua_cli.lint.paths import Hit, Path, below, parse_path
from interlingua_cli.lint.rule import Check, Fault, Seen
from interlingua_cli.lint.verbs.table import shown, verb

_NEEDED = {"calls", "results"}


@verb("answered")
def answered(given: Any) -> Check:
    """In the list, every call has its result and every result its call.

    `calls` and `results` lead from an element to the ids. With `within`, the results stand in the elements right
    behind the call that pass this filter; without it anywhere behind the call. With `merges`, elements that hold calls
    and stand side by side count as one.
    """
    if not isinstance(given, dict) or not _NEEDED <= given.keys() <= _NEEDED | {"within", "merges"}:
        raise ValueError('expected {calls = "…", results = "…"} and perhaps within = "[…]" and merges = true')
    calls, results = parse_path(given["calls"]), parse_path(given["results"])
    within = parse_path(given["within"]) if "within" in given else None
    merges = bool(given.get("merges"))

    def check(hits: Sequence[Hit], _seen: Seen) -> Iterator[Fault]:
        for hit in hits:
            if isinstance(hit.value, list):
                for turn in _turns(hit, within, merges):
                    yield from _unpaired(turn, calls, results)

    return check


def _turns(hit: Hit, within: Path | None, merges: bool) -> Iterator[list[Hit]]:
    """Cut the list into turns: an element with all that pass `within` behind it; the whole list without it."""
    turn: list[Hit] = []
    for at, element in enumerate(hit.value):
        behind = within is None or within.found(element) or (merges and turn and not within.found(turn[-1].value))
        if turn and not behind:
            yield turn
            turn = []
        turn.append(Hit(below(hit.path, at), element))
    yield turn


def _unpaired(turn: Sequence[Hit], calls: Path, results: Path) -> Iterator[Fault]:
    """Yield results without a call before them, then calls without a result behind them."""
    waiting: Counter[str] = Counter()
    places: dict[str, str] = {}
    for element in turn:
        for result in _named(results, element):
            if not waiting[str(result.value)]:
                yield Fault(result.path, f"{shown(result.value)} answers no call")
            else:
                waiting[str(result.value)] -= 1
        for call in _named(calls, element):
            waiting[str(call.value)] += 1
            places[str(call.value)] = call.path
    for name in +waiting:
        yield Fault(places[name], f"{name!r} has no result")


def _named(path: Path, element: Hit) -> Iterator[Hit]:
    """Yield the ids of an element; calls that the service makes and answers by itself have none."""
    return (hit for hit in path.select(element.value, element.path) if hit.value is not None)
