"""The asynchronous transport: one httpx client per running event loop, or the one the user passes.

Never retries and never reads a body's meaning.
The asynchronous client comes in, through `interlingua.transport`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from interlingua.transport.answer import Head, check_kind, own_limits, url_type
from interlingua.transport.failures import failure
from interlingua.transport.outgoing import Outgoing
from interlingua.transport.timeout import Limits


class AsyncAnswer(Head):
    """An answer whose body has yet to be read."""

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives; errors as in the blocking transport."""
        limits = self._limits
        try:
            self.begin()
            body = self.plain_stream
            if body is None:
                body = self._response.aiter_bytes()
            async for chunk in body:
                yield chunk
                if limits.deadline is not None:
                    limits.left()
        except Exception as error:
            known = failure(error, limits, in_body=True)
            if known is None or known is error:
                raise
            raise known from error

    async def read(self) -> bytes:
        """Return the whole body."""
        return b"".join([chunk async for chunk in self.chunks()])

    async def close(self) -> None:
        """Give the connection back, or close it when the body was not read to its end."""
        await self._response.aclose()


class AsyncTransport:
    """Opens answers; a loop's connections are closed with that loop, so one client serves many (case 30).

    Args:
        http_client: used as it is, and left open; None makes one per loop.
    """

    def __init__(self, http_client: Any = None) -> None:
        self._given = http_client
        if http_client is not None:
            check_kind(http_client, blocking=False)
        self.own_limits = http_client is not None and own_limits(http_client)
        self._lock = Lock()
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncGenerator[Any, None]] = WeakKeyDictionary()
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, Any] = WeakKeyDictionary()
        self._urls: dict[str, Any] = {}

    async def _client(self) -> Any:
        if self._given is not None:
            return self._given
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            keeper = _keep(_new_client())
            client = await anext(keeper)
            with self._lock:
                # a client holds its loop by its sockets: without this the weak key would never go
                for old in [old for old in self._loops if old.is_closed()]:
                    del self._loops[old], self._clients[old]
                self._loops[loop], self._clients[loop] = keeper, client
        return client

    async def open(self, request: Outgoing, limits: Limits) -> AsyncAnswer:
        """Send, and return when the answer's headers are there; errors as in the blocking transport."""
        timeouts = limits.for_headers()
        http = await self._client()
        try:
            url = self._urls.get(request.url) or self._urls.setdefault(request.url, url_type(http)(request.url))
            built = http.build_request(
                request.method,
                url,
                content=request.body or None,
                headers=request.headers,
                extensions=None if timeouts is None else {"timeout": timeouts},
            )
            return AsyncAnswer(await http.send(built, stream=True), limits)
        except Exception as error:
            known = failure(error, limits, in_body=False, url=request.url)
            if known is None or known is error:
                raise
            raise known from (None if type(known).__name__ == "CallerError" else error)

    async def close(self) -> None:
        """Close the running loop's client, if it was made here; other loops close theirs when they end."""
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


def _new_client() -> Any:
    from interlingua.transport.direct import new_client  # noqa: PLC0415  httpx costs more than all of core

    return new_client(blocking=False)
