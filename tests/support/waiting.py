"""Wait for a condition: tests poll for what they need, and sleep a fixed time only when time itself is the subject."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

EVERY = 0.01  # seconds between two looks


def until(condition: Callable[[], Any], within: float = 10.0) -> Any:
    """Call a condition until its result is true and return the result.

    Args:
        condition: called again and again.
        within: seconds.

    Raises:
        TimeoutError: it was not true in that time.
    """
    end = time.monotonic() + within
    while not (found := condition()):
        if time.monotonic() > end:
            raise TimeoutError(f"not within {within} s: {condition}")
        time.sleep(EVERY)
    return found


async def until_async(condition: Callable[[], Any], within: float = 10.0) -> Any:
    """Do the same in an event loop, whose other tasks run on."""
    end = time.monotonic() + within
    while not (found := condition()):
        if time.monotonic() > end:
            raise TimeoutError(f"not within {within} s: {condition}")
        await asyncio.sleep(EVERY)
    return found
