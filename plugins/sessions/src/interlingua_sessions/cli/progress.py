"""How far long work on a store has got, as a bar for a person.

Never printed where nobody looks: standard error that is no terminal stays silent. The commands come in.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from interlingua_sessions.store import Store

_WORTH_A_BAR = 1000
"""Messages that are done before anybody could read a bar."""


@contextmanager
def shown(what: str, total: int) -> Iterator[Callable[[int], None] | None]:
    """Show a bar while this lasts; yields what is told of every step, or None where no bar is shown.

    Args:
        what: is done.
        total: of its steps.
    """
    if not _seen():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415  only for a person
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda steps: bar.advance(task, steps)


@contextmanager
def over_messages(what: str, store: Store, session_id: str | None) -> Iterator[Callable[[int], None] | None]:
    """Show a bar over the messages of a session, or of all; as `shown`, and none for a few messages."""
    sessions = [session_id] if session_id is not None else [one.id for one in store.sessions()]
    total = sum(map(store.count_messages, sessions)) if _seen() else 0
    if total < _WORTH_A_BAR:
        yield None
        return
    with shown(what, total) as told:
        yield told


def _seen() -> bool:
    return sys.stderr.isatty()
