"""Clients that do not wait between attempts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import interlingua as il

_C = TypeVar("_C", il.Client, il.AsyncClient)


def without_waiting(client: _C, wait: Callable[[float], Any] = lambda _seconds: None) -> _C:
    """Call `wait` with the seconds of each wait instead of waiting; return the client."""

    async def sleep(seconds: float) -> None:
        wait(seconds)

    client._io.sleep = sleep  # type: ignore[method-assign]
    return client
