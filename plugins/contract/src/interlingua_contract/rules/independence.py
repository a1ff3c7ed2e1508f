"""Rules that a hook's result depends on its arguments alone: not on earlier calls, on threads, or on other users."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial

from interlingua_contract.guard import odd_settings, read_settings, restore_settings, watch_side_effects
from interlingua_contract.hook_calls import HookCall, describe, hook_calls
from interlingua_contract.rule import RuleFinding, around_difference, rule
from interlingua_contract.subject import Subject

_MOST = 5
"""Findings after which a rule stops."""
_CHANGES = 0.02
"""Part of the called functions at which threads change places."""
_LONGEST_TURN = 0.02
"""Seconds after which a thread runs on, whether the other one has come to its next function or not."""


@rule(
    "C91",
    "Every hook returns the same for the same arguments, whatever was written, read or failed before it.",
    source="hooks to_wire, stream_response and connection",
    fix="""Keep nothing in the plugin or in a module that one call leaves for another: no buffer of a stream, no last
    error, no state of thinking, no key or address of a user, no counter. If results are kept for speed, their key
    needs everything that they depend on, and what is returned must be a new object that does not change later.""",
)
def results_depend_on_arguments_alone(subject: Subject) -> Iterator[RuleFinding]:
    """Calls of every hook for two users in four orders; their results, compared again at the end."""
    calls = hook_calls(subject)
    expected: dict[str, str] = {}
    returned: list[tuple[str, str, object]] = []
    for one in calls:
        expected[one.name] = one.result()
    yield from _unlike(calls, expected)
    found = 0
    for how, order in _orders(calls, subject.seed):
        for one in order:
            got = one.result()
            if got != expected[one.name]:
                yield _finding(one.name, f"{how} it is another", expected[one.name], got)
                found += 1
                if found == _MOST:
                    return
    for one in calls:
        with suppress(Exception):  # failures were compared above
            value = one.make()
            returned.append((one.name, describe(value), value))
    for name, before, value in returned:
        if (now := describe(value)) != before:
            yield _finding(name, "after later calls the returned object is another", before, now)
            return


def _unlike(calls: Sequence[HookCall], results: dict[str, str]) -> Iterator[RuleFinding]:
    """Compare calls that ask for different things: an equal result was kept from the first call."""
    seen: dict[tuple[str, str], str] = {}
    alike: dict[str, str] = {}
    for one in calls:
        result = results[one.name]
        if one.alike and (first := alike.setdefault(one.alike, result)) != result:
            yield _finding(one.name, "beside another caller's it is another", first, result)
        if not one.apart or result.startswith(("CapabilityError", "nothing")):
            continue
        other = seen.setdefault((one.apart, result), one.name)
        if other != one.name:
            yield RuleFinding(f"another call has the same result, {other}: {result[:120]}", one.name)


def _finding(name: str, why: str, expected: str, got: str) -> RuleFinding:
    return RuleFinding(why, name, **around_difference(expected, got))


def _orders(calls: Sequence[HookCall], seed: int) -> Iterator[tuple[str, list[HookCall]]]:
    yield "called again in the same order", list(calls)
    yield "called in the reverse order", list(reversed(calls))
    mixed = list(calls)
    chance = random.Random(seed)  # noqa: S311  no secret
    for _ in range(3):  # few calls show what another one left behind
        chance.shuffle(mixed)
        yield "called in another order", list(mixed)
    yield "called twice in a row", [one for one in mixed for _ in range(2)]


@rule(
    "C92",
    "Every hook returns the same in two threads at once.",
    source="hooks to_wire and stream_response",
    fix="""A client may be used by several threads. Use local variables, not attributes of the plugin or globals, even
    for a short time, and change no process-wide setting, such as the locale, the decimal context or the seed of
    `random`.""",
)
def threads_do_not_meet(subject: Subject) -> Iterator[RuleFinding]:
    """Calls of every hook in two threads that change places often: when Python lets them, and where this rule does."""
    calls = hook_calls(subject)
    expected = {one.name: one.result() for one in calls}
    wrong: list[RuleFinding] = []

    def run(order: Sequence[HookCall]) -> None:
        for one in order:
            if (got := one.result()) != expected[one.name]:
                wrong.append(_finding(one.name, "with another thread at work it is another", expected[one.name], got))

    half = len(calls) // 2
    shifted = [*calls[1:], calls[0]]  # neighbours are calls of the same hook
    shuffled = list(calls)
    random.Random(subject.seed).shuffle(shuffled)  # noqa: S311  no secret
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for other in (list(reversed(calls)), [*calls[half:], *calls[:half]], shifted, shuffled):
            _run_in_threads(partial(run, order) for order in (calls, other))
    finally:
        sys.setswitchinterval(before)
    turns = _Turns(subject.seed)
    _run_in_threads(partial(turns.run, me, partial(run, order)) for me, order in enumerate((calls, shifted)))
    yield from wrong[:_MOST]


def _run_in_threads(tasks: Iterable[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=task) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class _Turns:
    """Two threads of which one runs at a time, until it calls one of some functions; then the other one runs.

    So the two meet within a hook, on a busy machine too, where Python might let each run to its end.
    """

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)  # noqa: S311  no secret
        self._may_run = (threading.Event(), threading.Event())
        self._left = [True, True]

    def run(self, me: int, task: Callable[[], None]) -> None:
        sys.setprofile(partial(self._change_places, me))
        try:
            task()
        finally:
            sys.setprofile(None)
            self._left[me] = False
            self._may_run[1 - me].set()

    def _change_places(self, me: int, _frame: object, kind: str, _argument: object) -> None:
        if kind != "call" or self._chance.random() > _CHANGES or not self._left[1 - me]:
            return
        self._may_run[me].clear()
        self._may_run[1 - me].set()
        self._may_run[me].wait(_LONGEST_TURN)  # the other one may need a lock that is held here


@rule(
    "C100",
    "No hook changes settings of the process: the environment, the locale, the time zone, chance, limits, warnings.",
    source="hooks to_wire and connection",
    fix="""Do not change process-wide settings: other code of the application depends on them. Make a separate
    `random.Random` or `decimal.Context`, parse dates with `email.utils`, and pass limits as arguments.""",
)
def settings_are_left_alone(subject: Subject) -> Iterator[RuleFinding]:
    """The settings of the process before and after each call of every hook; changed ones are restored."""
    calls = hook_calls(subject)
    with odd_settings():
        for one in calls:
            before = read_settings()
            one.result()
            if changed := restore_settings(before):
                yield RuleFinding(f"it changes {', '.join(changed)}", one.name)
                return


@rule(
    "C93",
    "No hook uses the clock, randomness, the environment, files or the process, in errors, signatures and counts too.",
    source="hooks connection, from_wire_error and auxiliary_request",
    fix="""Take the time from `RequestContext.clock`, `ServeContext.clock` and `HttpRequest.time`, ids from the context,
    and the environment from `settings.environ`. An age or an expiry is core's to compute.""",
)
def every_hook_is_pure(subject: Subject) -> Iterator[RuleFinding]:
    """Calls of every hook, watched; each was made before, so that modules are loaded and files are read."""
    found = 0
    for one in hook_calls(subject):
        one.result()
        with watch_side_effects() as seen:
            one.result()
        if seen:
            yield RuleFinding(f"it uses {', '.join(sorted(seen))}", one.name)
            found += 1
            if found == _MOST:
                return
