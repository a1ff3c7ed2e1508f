"""The event loops of an asynchronous client; a blocking one does not load this module, for asyncio is large."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import anyio


class EventLoops:
    """Asynchronous HTTP clients, one per event loop, whose connections are closed with it."""

    sleep: Any = staticmethod(asyncio.sleep)
    to_thread: Any = staticmethod(asyncio.to_thread)

    def __init__(self, new_client: Callable[[], Any]) -> None:
        self._new_client = new_client
        self._lock = Lock()
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncGenerator[Any, None]] = WeakKeyDictionary()
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, Any] = WeakKeyDictionary()
        self._making: dict[asyncio.AbstractEventLoop, asyncio.Task[Any]] = {}

    async def client(self) -> Any:
        """Return this loop's HTTP client; it is made in a thread, for loading certificates takes long."""
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            if loop not in self._making:
                self._making[loop] = loop.create_task(self._make(loop))
            client = await asyncio.shield(self._making[loop])
        return client

    async def _make(self, loop: asyncio.AbstractEventLoop) -> Any:
        try:
            keeper = _keep(await asyncio.to_thread(self._load))
            client = await anext(keeper)
        finally:
            del self._making[loop]
        with self._lock:
            # a client holds its loop by its sockets: without this the weak key would never go
            for old in [old for old in self._loops if old.is_closed()]:
                del self._loops[old], self._clients[old]
            self._loops[loop], self._clients[loop] = keeper, client
        return client

    def _load(self) -> Any:
        anyio.run(anyio.sleep, 0)  # loads what would be loaded in the event loop, with its first connection
        return self._new_client()

    async def close_client(self) -> None:
        """Close the running loop's client."""
        loop = asyncio.get_running_loop()
        with self._lock:
            self._clients.pop(loop, None)
            keeper = self._loops.pop(loop, None)
        if keeper is not None:
            await keeper.aclose()


async def _keep(client: Any) -> AsyncGenerator[Any, None]:
    """Hold a client until its loop shuts its asynchronous generators down, as `asyncio.run` does at its end."""
    try:
        yield client
    finally:
        await client.aclose()
