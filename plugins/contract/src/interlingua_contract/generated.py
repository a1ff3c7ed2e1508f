"""Runs one law over generated values and reports the first that breaks it, made as small as a few seconds allow.

Never lets Hypothesis decide how long a failing rule takes; the seed is the subject's.
The rules come in.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import attrs
from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st

from interlingua.types.messages import Message, Origin
from interlingua_contract.rule import Finding
from interlingua_contract.subject import Aim, Subject

ENOUGH = 3


"""So many failing aims tell all there is to tell; only the first one's example is made smaller."""


class Broken(AssertionError):
    """Raised inside a law when it does not hold; the message says what was expected."""


Law = Callable[[Aim, Any], None]


def holds(
    subject: Subject, law: Law, strategy: Callable[[Aim], st.SearchStrategy[Any]], share: int | None = None
) -> Iterator[Finding]:
    """Run a law on every aim, the examples shared out among them.

    Args:
        subject: whose aims.
        law: raises Broken; any other exception breaks it as well.
        strategy: what to draw for an aim.
        share: examples for each aim; by default its part of the subject's.
    """
    share = share or max(subject.examples // max(len(subject.aims), 1), 3)
    found = 0
    for aim in subject.aims:
        failed = _first_failure(subject, law, aim, strategy(aim), share)
        if failed is None:
            continue
        value, error = failed if found else _smaller(law, aim, *failed, subject.shrink_s)
        yield Finding(why=f"{_said(error)}; seen with {sketch(value)}", where=aim.name)
        found += 1
        if found == ENOUGH:
            return


def _first_failure(
    subject: Subject, law: Law, aim: Aim, strategy: st.SearchStrategy[Any], share: int
) -> tuple[Any, Exception] | None:
    failed: list[tuple[Any, Exception]] = []

    def once(value: Any) -> None:
        if not failed and (error := _broken(law, aim, value)) is not None:
            failed.append((value, error))

    relaxed = settings(
        max_examples=share,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )
    seed(subject.seed)(relaxed(given(strategy)(once)))()
    return failed[0] if failed else None


def own(subject: Subject, aim: Aim) -> Origin:
    """Return the origin of an aim's own answers."""
    return Origin(subject.key, aim.capabilities.api or aim.api, aim.model)


def _broken(law: Law, aim: Aim, value: Any) -> Exception | None:
    try:
        law(aim, value)
    except Exception as error:  # a law may be broken in any way
        return error
    return None


def _said(error: Exception) -> str:
    return str(error) if isinstance(error, Broken) else f"{type(error).__name__}: {error}"


def _smaller(law: Law, aim: Aim, value: Any, error: Exception, seconds: float) -> tuple[Any, Exception]:
    """Take messages and blocks out while the law stays broken in the same way."""
    until = time.monotonic() + seconds
    going = isinstance(value, list)
    while going:
        going = False
        for candidate in _candidates(value):
            if time.monotonic() > until:
                return value, error
            found = _broken(law, aim, candidate)
            if found is not None and type(found) is type(error):
                value, error, going = candidate, found, True
                break
    return value, error


def _candidates(value: list[Any]) -> Iterator[list[Any]]:
    for at in range(len(value)):
        yield value[:at] + value[at + 1 :]
    for at, message in enumerate(value):
        if isinstance(message, Message) and len(message.content) > 1:
            for place in range(len(message.content)):
                kept = message.content[:place] + message.content[place + 1 :]
                yield [*value[:at], attrs.evolve(message, content=kept), *value[at + 1 :]]


def sketch(value: Any) -> str:
    """Draw a conversation in one line: roles with the types of their blocks."""
    if not (isinstance(value, list) and value and all(isinstance(item, Message) for item in value)):
        return repr(value)[:300]
    lines = []
    for message in value:
        who = message.metadata.provider
        kinds = " ".join(block.type for block in message.content)
        lines.append(f"{message.role}{f'@{who}' if who else ''}[{kinds}]")
    return " ".join(lines)
