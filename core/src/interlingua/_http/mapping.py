"""Many requests of one call: several workers take them in order, and keep each answer or failure."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Sized
from decimal import Decimal
from typing import Any

import attrs

from interlingua._http.transports import IO
from interlingua.errors import CallerError, InterlinguaError

_WIDTH = 24  # characters of the bar
_EVERY = 0.1  # seconds between two updates of the line


@attrs.frozen(kw_only=True)
class MapProgress:
    """How far a call of `map` is.

    Attributes:
        done: requests that have ended, the failed ones included.
        failed: those that have failed.
        total: all requests; None if their number is not known in advance.
        cost_usd: known cost of the answers in USD.
        seconds: since the first request.
    """

    done: int = 0
    failed: int = 0
    total: int | None = None
    cost_usd: Decimal = Decimal(0)
    seconds: float = 0.0

    def __str__(self) -> str:
        """Return it as a line for people."""
        bar, of = "", f"{self.done} done"
        if self.total:
            bar, of = f"[{'#' * (_WIDTH * self.done // self.total):.<{_WIDTH}}] ", f"{self.done}/{self.total}"
        failed = f", {self.failed} failed" if self.failed else ""
        cost = f", {self.cost_usd:.4f} USD" if self.cost_usd else ""
        return f"{bar}{of}{failed}{cost}, {self.done / max(self.seconds, 0.001):.1f}/s"


class _Line:
    """Writes progress on one line of stderr; if that is not a terminal, only the last state."""

    def __init__(self) -> None:
        self._written = 0.0

    def __call__(self, progress: MapProgress) -> None:
        now, last = time.monotonic(), progress.done == progress.total
        if (now - self._written >= _EVERY and sys.stderr.isatty()) or last:
            self._written = now
            sys.stderr.write((f"\r{progress}\033[K" if sys.stderr.isatty() else str(progress)) + "\n" * last)
            sys.stderr.flush()


async def map_requests(
    io: IO,
    requests: Iterable[Any],
    send: Callable[[Any], Awaitable[Any]],
    concurrency: int,
    progress: bool | Callable[[MapProgress], object],
) -> list[Any]:
    """Send all requests, `concurrency` at once, and return the answers and errors in the order of the requests.

    Raises:
        CallerError: `concurrency` is not a number from 1, or `requests` is one request.
    """
    if isinstance(requests, str) or not isinstance(requests, Iterable):
        raise CallerError(f"map takes a list of requests, not {type(requests).__name__}; send takes one")
    if isinstance(concurrency, bool) or not isinstance(concurrency, int) or concurrency < 1:
        raise CallerError(f"concurrency must be a whole number from 1, not {concurrency!r}")
    total = len(requests) if isinstance(requests, Sized) else None
    show: Any = _Line() if progress is True else progress or None
    lock, began, left = threading.Lock(), time.monotonic(), enumerate(requests)
    found: dict[int, Any] = {}
    broken: list[BaseException] = []
    state = MapProgress(total=total)

    async def work() -> None:
        nonlocal state
        while not broken:
            with lock:
                index, request = next(left, (None, None))
            if index is None:
                return
            try:
                answer = await send(request)
            except InterlinguaError as error:
                answer = error
            except Exception as error:
                broken.append(error)
                return
            with lock:
                found[index] = answer
                cost = getattr(getattr(answer, "usage", None), "cost_usd", None)
                state = attrs.evolve(
                    state,
                    done=state.done + 1,
                    failed=state.failed + isinstance(answer, InterlinguaError),
                    cost_usd=state.cost_usd + (cost or 0),
                    seconds=time.monotonic() - began,
                )
                if show is not None:
                    show(state)

    try:
        await io.run_together(work, concurrency if total is None else max(min(concurrency, total), 1))
    except BaseException as error:
        broken.append(error)
        raise
    if broken:
        raise broken[0]
    return [found[index] for index in range(len(found))]
