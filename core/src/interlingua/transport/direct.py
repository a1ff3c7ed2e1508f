"""httpx's transports without the work its clients do around them for each answer, which costs more than sending.

Never does without a client where it is wanted: for a proxy of the environment, or a name and password in the address.
Cookies are not kept and redirects not prepared: no API asks for either. The two transports come in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.request import getproxies

import httpx

from interlingua.transport.failures import unmade

# no pool limit: a caller's threads decide how many requests run at once
_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=64)


class _Builder:
    """Builds requests with a client's own headers; those of most requests are the last one's, and made once."""

    def __init__(self, client: httpx.Client | httpx.AsyncClient) -> None:
        self.base_url = client.base_url
        self._own = dict(client.headers.items())
        self._last: tuple[Mapping[str, str], httpx.Headers] = ({}, client.headers)

    def build_request(
        self, method: str, url: httpx.URL, *, content: bytes | None, headers: Mapping[str, str], extensions: Any
    ) -> httpx.Request:
        """Build as a client does, but for its settings: nobody but us set it up."""
        asked, merged = self._last
        if headers != asked:
            merged = httpx.Headers({**self._own, **headers})
            self._last = (headers, merged)
        return httpx.Request(method, url, content=content, headers=merged, extensions=extensions)


class Direct(_Builder):
    """A blocking client whose requests go to its transport at once.

    Tools that watch or replay httpx do so at its transports, and see these requests like any other.
    """

    def __init__(self) -> None:
        self._transport = httpx.HTTPTransport(limits=_LIMITS)
        self._client = httpx.Client(transport=self._transport)
        self.close = self._client.close
        super().__init__(self._client)

    def send(self, request: httpx.Request, *, stream: bool) -> httpx.Response:
        """Send as `httpx.Client.send` does."""
        if self._client.is_closed or request.url.userinfo:
            return self._client.send(request, stream=stream)
        response = self._transport.handle_request(request)
        response.request = request
        return response


class AsyncDirect(_Builder):
    """An asynchronous client whose requests go to its transport at once; see `Direct`."""

    def __init__(self) -> None:
        self._transport = httpx.AsyncHTTPTransport(limits=_LIMITS)
        self._client = httpx.AsyncClient(transport=self._transport)
        self.aclose = self._client.aclose
        super().__init__(self._client)

    async def send(self, request: httpx.Request, *, stream: bool) -> httpx.Response:
        """Send as `httpx.AsyncClient.send` does."""
        if self._client.is_closed or request.url.userinfo:
            return await self._client.send(request, stream=stream)
        response = await self._transport.handle_async_request(request)
        response.request = request
        return response


def new_client(*, blocking: bool) -> Any:
    """Make a client.

    Raises:
        CallerError: the environment names a proxy or a certificate that cannot be used.
    """
    proxied = any(getproxies().get(name) for name in ("http", "https", "all"))
    try:
        if proxied:
            return (httpx.Client if blocking else httpx.AsyncClient)(limits=_LIMITS)
        return Direct() if blocking else AsyncDirect()
    except Exception as error:
        raise unmade(error) from None
