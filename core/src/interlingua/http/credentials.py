"""The secret of a connection: asked for once, kept, and asked for again when it was refused or runs out."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from inspect import isawaitable
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from interlingua.errors import AuthenticationError, InterlinguaError, ProviderError
from interlingua.http.transport import secret_failure
from interlingua.plugins.wire import Credentials

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
        """Return the secret; where this may not block, the source, which may, is called in a thread.

        Args:
            refused: the secret that the service refused, if any.
            error: how.
            blocking: it may block, and so never waits in an event loop.

        Raises:
            AuthenticationError: it cannot be had; or what the source raised of the library's errors.
        """
        if not self._lacks(refused):
            return self._secret
        if blocking:
            with self._lock, _typed_errors():
                if self._lacks(refused):
                    self._secret = _check(_wait(self._source(error)))
            return self._secret
        async with self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
            with _typed_errors():
                if self._lacks(refused):
                    made = await asyncio.to_thread(self._source, error)
                    self._secret = _check(await made if isawaitable(made) else made)
        return self._secret


@contextmanager
def _typed_errors() -> Iterator[None]:
    try:
        yield
    except InterlinguaError:
        raise
    except Exception as error:
        raise secret_failure("getting the credentials", error) from None


def _check(secret: Any) -> Any:
    if secret is None:
        raise AuthenticationError("the credentials gave no secret", retryable=False)
    return secret


def _wait(made: Any) -> Any:
    """Return a value, waited for in a thread with a loop of its own: the caller's may be running."""
    if not isawaitable(made):
        return made
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, _await(made)).result()


async def _await(made: Awaitable[Any]) -> Any:
    return await made
