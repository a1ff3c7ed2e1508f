"""Requests by httpx: directly by an httpx transport, or by the caller's httpx client."""

from __future__ import annotations

import socket
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from inspect import iscoroutinefunction
from typing import Any, NoReturn, cast

import httpx

from interlingua._http.joining import AsyncJoiningBackend, JoiningBackend, ReadLimit
from interlingua.errors import CallerError
from interlingua.transport import HttpRequest, TimeLimits, bad_header, connection_failed, transport_closed, unsendable


class _Base:
    """Building requests, and the errors of httpx, for both transports.

    Without proxies, our own client's transport is called directly, without the client around it: that takes a third of
    the time. Tools that watch or replay httpx do so at its transports, and see these requests like any other.
    """

    def __init__(self, client: Any, new_client: Any, backend: Any) -> None:
        self._owns = client is None
        self._client = _join_chunks(new_client, backend) if client is None else client
        # which of the client's transports sends depends on the address if there are proxies
        proxies = any(getattr(self._client, "_mounts", {"": True}).values())
        self._direct: Any = getattr(self._client, "_transport", None) if self._owns and not proxies else None
        self._last: tuple[str, Mapping[str, str], Any] = ("", {}, None)

    def _build(self, request: HttpRequest, limits: TimeLimits) -> httpx.Request:
        if getattr(self._client, "is_closed", False):
            raise transport_closed()
        extensions = None
        if limits.timeout is not None:
            connect, first = limits.connect, limits.first_byte
            end = time.monotonic() + (first or 0.0)
            read = None if first is None else ReadLimit(lambda: end - time.monotonic())
            extensions = {"timeout": {"connect": connect, "pool": connect, "write": first, "read": read}}
        method, url, headers, body = request.method, request.url, request.headers, request.body or None
        if self._direct is None:
            made = self._client.build_request(method, url, content=body, headers=headers, extensions=extensions)
            return cast("httpx.Request", made)
        # httpx takes eight times as long to build a request, and most have the address and headers of the last one
        address, before, like = self._last
        if url != address or headers != before or like is None:
            like = self._client.build_request("GET", url, headers=headers)
            self._last = (url, headers, like)
        stream = None if body is None else httpx.ByteStream(body)
        built = httpx.Request(method, like.url, headers=like.headers, stream=stream, extensions=extensions)
        if body is not None:
            built.headers["content-length"] = str(len(body))
            built.read()
        return built


class _BaseReply:
    def __init__(self, response: Any, limits: TimeLimits, request: httpx.Request) -> None:
        self._response, self._limits, self._request = response, limits, request
        read = getattr(response, "is_stream_consumed", False)  # by a hook of the caller's client, which decompressed it
        stream = httpx.ByteStream(response.content) if read else response.stream
        self._stream, response.stream = stream, None  # a cycle would keep the request until a collection
        self.status: int = response.status_code
        # httpx's mapping decodes all headers again for each name
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers.raw}
        self.headers: Mapping[str, str] = headers | {"content-encoding": "identity"} if read else headers

    def _begin(self) -> Any:
        """Return the body as it was sent; httpx reads the limits again when it begins."""
        limits = self._limits
        if limits.timeout is not None:
            shortened = None if limits.timeout.total is None else ReadLimit(lambda: limits.between_chunks or 0.0)
            self._request.extensions["timeout"]["read"] = shortened or limits.between_chunks
        return self._stream

    def abort(self) -> None:
        """Shut the connection down, if no other request shares it."""
        extensions = self._response.extensions
        own = extensions.get("http_version", b"").startswith(b"HTTP/1.")
        if own and (stream := extensions.get("network_stream")) and (raw := stream.get_extra_info("socket")):
            with suppress(OSError):
                raw.shutdown(socket.SHUT_RDWR)


class HttpxReply(_BaseReply):
    """A reply of `HttpxTransport`."""

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._begin()
        except Exception as error:
            _raise_typed(error, self._limits)

    def close(self) -> None:
        """Release the connection."""
        self._stream.close()


class HttpxTransport(_Base):
    """Sends by the caller's httpx client, which stays open, or by a new one."""

    def __init__(self, client: Any = None) -> None:
        super().__init__(client, httpx.Client, JoiningBackend())

    def open(self, request: HttpRequest, limits: TimeLimits) -> HttpxReply:
        """Send a request; return when the headers have arrived."""
        try:
            built = self._build(request, limits)
            if self._direct is None or built.url.userinfo:
                return HttpxReply(self._client.send(built, stream=True, follow_redirects=False), limits, built)
            return HttpxReply(self._direct.handle_request(built), limits, built)
        except Exception as error:
            _raise_typed(error, limits, request.url)

    def close(self) -> None:
        """Close the connections, unless the client is the caller's."""
        if self._owns:
            self._client.close()


class AsyncHttpxReply(_BaseReply):
    """A reply of `AsyncHttpxTransport`."""

    # not a generator, because the event loop would have to close an unfinished one
    def __aiter__(self) -> AsyncHttpxReply:
        self._next: Callable[[], Awaitable[bytes]] = aiter(self._begin()).__anext__
        return self

    async def __anext__(self) -> bytes:
        try:
            return await self._next()
        except StopAsyncIteration:
            raise
        except Exception as error:
            _raise_typed(error, self._limits)

    async def aclose(self) -> None:
        """Release the connection."""
        await self._stream.aclose()


class AsyncHttpxTransport(_Base):
    """As `HttpxTransport`, on asyncio and trio; its connections belong to the event loop that opened them."""

    def __init__(self, client: Any = None) -> None:
        super().__init__(client, httpx.AsyncClient, AsyncJoiningBackend())

    async def open(self, request: HttpRequest, limits: TimeLimits) -> AsyncHttpxReply:
        """Send a request; return when the headers have arrived."""
        try:
            built = self._build(request, limits)
            if self._direct is None or built.url.userinfo:
                sent = await self._client.send(built, stream=True, follow_redirects=False)
            else:
                sent = await self._direct.handle_async_request(built)
            return AsyncHttpxReply(sent, limits, built)
        except Exception as error:
            _raise_typed(error, limits, request.url)

    async def aclose(self) -> None:
        """Close the connections, unless the client is the caller's."""
        if self._owns:
            await self._client.aclose()


def new_transport(*, blocking: bool, client: Any = None) -> HttpxTransport | AsyncHttpxTransport:
    """Create a transport, as an entry point of the group `interlingua.transports` does; `client` is the caller's."""
    if client is not None:
        send = getattr(client, "send", None)
        if not callable(send) or not hasattr(client, "build_request"):
            raise CallerError("http_client= must be an httpx client or have its interface")
        if blocking and iscoroutinefunction(send):
            raise CallerError("Client takes a blocking HTTP client, such as httpx.Client; AsyncClient takes this one")
        if not blocking and isinstance(client, AbstractContextManager) and not iscoroutinefunction(send):
            raise CallerError("AsyncClient takes an async client such as httpx.AsyncClient; Client takes this one")
    return HttpxTransport(client) if blocking else AsyncHttpxTransport(client)


def _join_chunks(new_client: Any, backend: Any) -> Any:
    """Return a new httpx client whose transports, those of proxies included, read by a network backend.

    httpx has no argument for one. If it renames these attributes, deltas are read one by one, and a test fails.
    """
    # No pool limit: the caller's threads or tasks decide how many requests run at once.
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=5.0)
    client = new_client(verify=httpx.create_ssl_context(), limits=limits)
    for transport in (getattr(client, "_transport", None), *getattr(client, "_mounts", {}).values()):
        pool: Any = getattr(transport, "_pool", None)
        if hasattr(pool, "_network_backend"):
            pool._network_backend = backend
    return client


def _raise_typed(error: Exception, limits: TimeLimits, url: str | None = None) -> NoReturn:
    """Raise the typed error for an exception of httpx, others unchanged; `url` is None after the headers."""
    if isinstance(error, (httpx.TimeoutException, TimeoutError)):
        phases: Any = {httpx.PoolTimeout: "pool", httpx.ConnectTimeout: "connect"}
        raise limits.timed_out(phases.get(type(error), "between_chunks" if url is None else "first_byte")) from error
    if isinstance(error, httpx.StreamError):
        raise CallerError("a hook of http_client= has consumed the answer: let it call response.read(), or aread()")
    # without their causes, which may quote a secret that the caller wrote
    if isinstance(error, (httpx.InvalidURL, httpx.UnsupportedProtocol)):
        raise unsendable(url or "", error) from None
    if isinstance(error, (httpx.LocalProtocolError, UnicodeEncodeError)):
        raise bad_header() from None
    if isinstance(error, (httpx.HTTPError, OSError)):
        raise connection_failed(error, url, connected=not isinstance(error, httpx.ConnectError)) from error
    raise error
