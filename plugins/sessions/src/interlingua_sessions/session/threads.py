"""Waiting for the store without holding up an event loop.

Never for a model: clients are asynchronous themselves. The asynchronous turn, its stream and its session come in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


async def in_thread(work: Callable[..., T], *given: Any) -> T:
    """Do something brief in a worker thread; a task that is cancelled meanwhile ends when it is done, not before.

    So what one task writes is written in its order, and nothing of it happens behind its back.
    """
    done = asyncio.ensure_future(asyncio.to_thread(work, *given))
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        while not done.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([done])
        if not done.cancelled():
            done.exception()  # or asyncio complains that nobody looked
        raise
