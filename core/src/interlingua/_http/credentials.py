"""The secret of a connection: asked for once, kept, and asked for again when it was refused or runs out."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from inspect import isawaitable
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from interlingua._http.transport import secret_failure
from interlingua._plugins.connection import Credentials
from interlingua.errors import AuthenticationError, InterlinguaError, ProviderError

_MARGIN = timedelta(minutes=1)
"""A secret that runs out within this time is replaced."""


class SecretStore:
    """Keeps the secret of one connection for all its exchanges; safe for several threads and event loops."""

    def __init__(self, source: Credentials) -> None:
        self._source = source
        self._secret: Any = None
        self._lock = Lock()
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    def _lacks(self, refused: Any) -> bool:
        """Return True when there is no secret, or it is the refused one, or it runs out soon."""
        expires = getattr(self._secret, "expires_at", None)
        stale = expires is not None and expires - datetime.now(UTC) < _MARGIN
        return stale or self._secret is None or self._secret is refused

    async def read(self, refused: Any, error: ProviderError | None, *, blocking: bool) -> Any:
        """Return the secret: another one where the service refused the one it had, with this error.

        Where this may not block an event loop, the source, which may, is called in a thread.
        """
        if self._lacks(refused) and blocking:
            with self._lock:
                if self._lacks(refused):
                    self._secret = await self._ask(error, blocking=True)
        elif self._lacks(refused):
            async with self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
                if self._lacks(refused):
                    self._secret = await self._ask(error, blocking=False)
        return self._secret

    async def _ask(self, refusal: ProviderError | None, *, blocking: bool) -> Any:
        try:
            made = self._source(refusal) if blocking else await asyncio.to_thread(self._source, refusal)
            if isawaitable(made):
                made = _wait(made) if blocking else await made
        except InterlinguaError:
            raise
        except Exception as error:
            raise secret_failure("getting the credentials", error) from None
        if made is None:
            raise AuthenticationError("the credentials gave no secret", retryable=False)
        return made


def _wait(made: Awaitable[Any]) -> Any:
    """Return what is awaited in a thread with a loop of its own: the caller's may be running."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, _await(made)).result()


async def _await(made: Awaitable[Any]) -> Any:
    return await made
