"""Rules that a hook's result depends on its arguments alone: not on earlier calls, on threads, or on other users."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress

from interlingua_contract.guard import odd_settings, read_settings, restore_settings, watch_side_effects
from interlingua_contract.hook_calls import HookCall, describe, hook_calls
from interlingua_contract.rule import RuleFinding, around_difference, rule
from interlingua_contract.subject import Subject

_MOST = 5
"""Findings after which a rule stops."""


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
    """Calls of every hook in two threads that change places often."""
    calls = hook_calls(subject)
    expected = {one.name: one.result() for one in calls}
    wrong: list[RuleFinding] = []

    def run(order: Sequence[HookCall]) -> None:
        for one in order:
            if (got := one.result()) != expected[one.name]:
                wrong.append(_finding(one.name, "with another thread at work it is another", expected[one.name], got))

    half = len(calls) // 2
    shuffled = list(calls)
    random.Random(subject.seed).shuffle(shuffled)  # noqa: S311  no secret
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        # neighbours are calls of the same hook, so that two of them meet even on a busy machine
        for other in (list(reversed(calls)), [*calls[half:], *calls[:half]], [*calls[1:], calls[0]], shuffled):
            threads = [threading.Thread(target=run, args=(order,)) for order in (calls, other)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    finally:
        sys.setswitchinterval(before)
    yield from wrong[:_MOST]


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
