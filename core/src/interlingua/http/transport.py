"""Send requests and read answers; the only module that imports httpx."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from inspect import iscoroutinefunction
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.request import getproxies
from weakref import WeakKeyDictionary

import httpx

from interlingua.errors import (
    APIConnectionError,
    AuthenticationError,
    CallerError,
    InterlinguaError,
    MalformedResponseError,
)
from interlingua.http.limits import Deadline, error_for_failure, error_for_no_client
from interlingua.plugins.wire import Outgoing, WireResponse
from interlingua.response.framing import EVENT_LIMIT

if TYPE_CHECKING:
    from interlingua.plugins.wire import Connection, WireRequest

_log = logging.getLogger("interlingua")

# a client whose timeouts are all httpx's default was given none: five seconds would cut most answers off
_LIBRARY_DEFAULT = {5.0}

# no pool limit: a caller's threads decide how many requests run at once
_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=None)
_ACCEPT = {"accept-encoding": "gzip, deflate"}  # what can be decompressed piece by piece
_COMPRESSED = frozenset(("gzip", "x-gzip", "deflate"))
_PIECE = 256 * 1024
_CHUNK_SIZE = re.compile(rb"\r\n(0*[1-9A-Fa-f][0-9A-Fa-f]{0,7})\r\n")  # after the end of the chunk before


def outgoing(connection: Connection, request: WireRequest, headers: Mapping[str, str], secret: Any = None) -> Outgoing:
    """Make the HTTP request; later sources of a header win: connection, wire, caller, auth, signature. Lists add up.

    Args:
        connection: where to, and the signer.
        request: what.
        headers: the caller's own.
        secret: what the connection's credentials gave.

    Raises:
        AuthenticationError: the connection's code failed.
        CallerError: the URL cannot be sent.
    """
    try:
        merged = {"content-type": "application/json"}
        for source in (connection.headers, request.headers, headers, connection.auth(request)):
            for name, value in source.items():
                lower = name.lower()
                merged[lower] = _joined(merged.get(lower), value) if lower in connection.joined else value
        url = connection.base_url + request.path if connection.url is None else connection.url(request)
        made = Outgoing(request.method, url, merged, request.body, datetime.now(UTC))
        if connection.sign is not None:
            made = made._replace(url=str(httpx.URL(url)))  # as it is sent: what is signed must be that
            merged.update({name.lower(): value for name, value in connection.sign(made, secret).items()})
    except InterlinguaError:
        raise
    except httpx.InvalidURL as error:
        raise error_for_failure(error, Deadline(None), in_body=False, url=url) from None
    except Exception as error:
        raise secret_failure("signing the request", error) from None
    if _log.isEnabledFor(logging.DEBUG):
        place = made.url.partition("?")[0]  # a query may hold a key
        _log.debug("%s %s, %d bytes", made.method, place, len(made.body))
    return made


def secret_failure(what: str, error: Exception) -> AuthenticationError:
    """Return the error for code that holds a secret, without the cause's text: that may hold the secret too."""
    return AuthenticationError(f"{what} failed with {type(error).__name__}", retryable=False)


def no_key(connection: Connection, provider: str) -> AuthenticationError:
    """Return the error of a connection without the key it needs: it names the variables that hold one."""
    names = [name for name in connection.env if "KEY" in name or "TOKEN" in name] or connection.env
    where = " or ".join(names) or "the environment"
    return AuthenticationError(f"no key: set {where}, or give api_key=", provider=provider, retryable=False)


def _joined(known: str | None, more: str) -> str:
    """Join comma-separated lists, each item once, without spaces."""
    items = [item.strip() for item in f"{known or ''},{more}".split(",")]
    return ",".join(dict.fromkeys(item for item in items if item))


def check_client(http_client: Any, transport: Any, *, blocking: bool) -> bool:
    """Look at the HTTP client or the name of a transport that a caller gave; true: somebody chose its time limits.

    Raises:
        CallerError: it is neither, both are given, or the client is of the other kind.
    """
    if transport is not None and (http_client is not None or not isinstance(transport, str)):
        raise CallerError("transport= is a name, such as 'httpx', and http_client= a client: give one of them")
    if http_client is None:
        return False
    send = getattr(http_client, "send", None)
    if not callable(send) or not hasattr(http_client, "build_request"):
        raise CallerError("http_client= takes an httpx client, or one that is made like it")
    if blocking and iscoroutinefunction(send):
        raise CallerError("Client takes a blocking HTTP client, such as httpx.Client; AsyncClient takes this one")
    if not blocking and isinstance(http_client, AbstractContextManager) and not iscoroutinefunction(send):
        raise CallerError(
            "AsyncClient takes an asynchronous HTTP client such as httpx.AsyncClient; Client takes this one"
        )
    timeout: Any = getattr(http_client, "timeout", None)
    return hasattr(timeout, "as_dict") and set(timeout.as_dict().values()) != _LIBRARY_DEFAULT


class _Inflater:
    """Decompresses a body piece by piece: a small one may hold a thousand times its size."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self._zlib = zlib.decompressobj(zlib.MAX_WBITS | 32)  # gzip or zlib, as its first bytes say
        self._begun = False

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Yield what these bytes hold.

        Raises:
            APIConnectionError: they are not compressed as the headers say.
        """
        piece = b""
        while data or len(piece) == _PIECE:
            try:
                piece = self._zlib.decompress(data, _PIECE)
            except zlib.error as error:
                if self._begun or self._encoding != "deflate":
                    raise APIConnectionError(f"the body cannot be decompressed: {error}") from error
                self._zlib = zlib.decompressobj(-zlib.MAX_WBITS)  # some servers leave zlib's header out
            else:
                data = self._zlib.unconsumed_tail
                if piece:
                    yield piece
            self._begun = True


class ChunkReader:
    """Reads a chunked body in place of h11's reader: the chunks that have arrived whole are one piece.

    A service sends a model's delta as a chunk, and h11 and httpx spend more on each than all the rest that is done.
    """

    def __init__(self, reader: Any) -> None:
        self._read = reader  # reads the first chunk, one that is cut off, the last one, and what is no chunk
        self.read_eof = reader.read_eof

    def __call__(self, buffer: Any) -> Any:
        """Return what h11's reader returns, with the data of the further chunks that the buffer holds whole."""
        event = self._read(buffer)
        if not getattr(event, "chunk_end", False):
            return event
        data, at, pieces = bytes(buffer), 0, [event.data]
        while (size := _CHUNK_SIZE.match(data, at)) and (end := size.end() + int(size[1], 16)) <= len(data):
            pieces.append(data[size.end() : end])
            at = end
        if at:
            buffer.maybe_extract_at_most(at)
        return type(event)(data=b"".join(pieces))


class ResponseHead:
    """Status and headers of an answer whose body has yet to be read."""

    def __init__(self, response: Any, deadline: Deadline, limit: int) -> None:
        self._response = response
        self._deadline = deadline
        self._limit = limit
        self.status: int = response.status_code
        # the library's mapping decodes all headers again for each name
        self.headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers.raw}

    def begin_body(self) -> tuple[Any, _Inflater | None]:
        """Let the time limits of the body take over, which are read when it begins.

        Returns:
            The body's own stream and what decompresses it; None where only the HTTP client can read it.
        """
        limit = self._deadline.for_body()
        timeouts = self._response.request.extensions.get("timeout")
        if limit is not None and timeouts is not None:
            timeouts["read"] = limit
        encoding = self.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("identity", "", *_COMPRESSED):
            return None, None
        body: Any = getattr(self._response, "stream", None)
        h11 = body
        for name in ("_stream", "_httpcore_stream", "_stream", "_connection", "_h11_state"):  # as httpx has them
            h11 = getattr(h11, name, h11)
        reader = getattr(h11, "_reader", None)
        if type(reader).__name__ == "ChunkedReader":
            h11._reader = ChunkReader(reader)
        return body, _Inflater(encoding) if encoding in _COMPRESSED else None

    def too_large(self) -> MalformedResponseError:
        """Return the error of a whole body that is larger than the limit."""
        text = f"the body of the answer is larger than response_limit={self._limit} bytes"
        return MalformedResponseError(text, status=self.status)

    def break_off(self) -> None:
        """Wake a read that waits in another thread or task: the connection is shut, where it is ours alone."""
        extensions = self._response.extensions
        if extensions.get("http_version") not in (b"HTTP/1.1", b"HTTP/1.0"):
            return
        stream = extensions.get("network_stream")
        raw = stream.get_extra_info("socket") if stream is not None else None
        if raw is not None:
            with suppress(OSError):
                raw.shutdown(socket.SHUT_RDWR)


class _Builder:
    """Builds requests with a client's own headers; most requests have the headers and the URL of the one before."""

    def __init__(self, client_class: Any, transport_class: Any) -> None:
        self._transport = transport_class(limits=_LIMITS)
        self._client = client = client_class(transport=self._transport, headers=_ACCEPT)
        self.base_url = client.base_url
        self._own = dict(client.headers.items())
        self._last: tuple[Mapping[str, str], httpx.Headers] = ({}, client.headers)
        self._url: tuple[str, httpx.URL] = ("", client.base_url)

    def build_request(
        self, method: str, url: str, *, content: bytes | None, headers: Mapping[str, str], extensions: Any
    ) -> httpx.Request:
        """Build a request as a client without settings of its own does."""
        before, merged = self._last
        if headers != before:
            merged = httpx.Headers({**self._own, **headers})
            self._last = (headers, merged)
        known, parsed = self._url
        if url != known:
            parsed = httpx.URL(url)
            self._url = (url, parsed)
        return httpx.Request(method, parsed, content=content, headers=merged, extensions=extensions)


class DirectClient(_Builder):
    """A blocking client whose requests go to its transport at once.

    Tools that watch or replay httpx do so at its transports, and see these requests like any other.
    """

    def __init__(self) -> None:
        super().__init__(httpx.Client, httpx.HTTPTransport)
        self.close = self._client.close

    def send(self, request: httpx.Request, *, stream: bool) -> Any:
        """Send as `httpx.Client.send` does."""
        if self._client.is_closed or request.url.userinfo:
            return self._client.send(request, stream=stream)
        response = self._transport.handle_request(request)
        response.request = request
        return response


class AsyncDirectClient(_Builder):
    """An asynchronous client whose requests go to its transport at once; see `DirectClient`."""

    def __init__(self) -> None:
        super().__init__(httpx.AsyncClient, httpx.AsyncHTTPTransport)
        self.aclose = self._client.aclose

    async def send(self, request: httpx.Request, *, stream: bool) -> Any:
        """Send as `httpx.AsyncClient.send` does."""
        if self._client.is_closed or request.url.userinfo:
            return await self._client.send(request, stream=stream)
        response = await self._transport.handle_async_request(request)
        response.request = request
        return response


def new_client(name: str | None, *, blocking: bool) -> Any:
    """Make a client: httpx's, or of the transport of that name.

    Raises:
        CallerError: the environment names a proxy or a certificate that cannot be used, or there is no such transport.
    """
    if name not in (None, "httpx"):
        return _other_client(name, blocking=blocking)
    proxied = any(getproxies().get(name) for name in ("http", "https", "all"))
    try:
        if proxied:
            return (httpx.Client if blocking else httpx.AsyncClient)(limits=_LIMITS, headers=_ACCEPT)
        return DirectClient() if blocking else AsyncDirectClient()
    except Exception as error:
        raise error_for_no_client(error) from None


def _other_client(name: str, *, blocking: bool) -> Any:
    """Make a client of the transport that an installed distribution has by this name."""
    from importlib.metadata import entry_points  # noqa: PLC0415  httpx needs none

    found = entry_points(group="interlingua.transports")
    if name not in found.names:
        there = ", ".join(sorted({"httpx", *found.names}))
        raise CallerError(f"no transport {name!r}: pip install interlingua-{name}; there are: {there}")
    try:
        return found[name].load()(blocking=blocking)
    except Exception as error:
        raise error_for_no_client(error) from None


def _load_async_client(name: str | None) -> Any:
    import anyio  # noqa: PLC0415  only the asynchronous client needs it

    anyio.run(anyio.sleep, 0)  # loads what would be loaded in the event loop, with its first connection
    return new_client(name, blocking=False)


class Answer(ResponseHead):
    """An answer whose body has yet to be read."""

    def chunks(self) -> Iterator[bytes]:
        """Yield the body as it arrives.

        Raises:
            APITimeoutError: a limit was passed; the message names it.
            APIConnectionError: the connection broke.
        """
        deadline = self._deadline
        try:
            body, inflater = self.begin_body()
            if body is None:
                body, inflater = self._response.iter_bytes(), None
            if inflater is not None:
                body = chain.from_iterable(map(inflater.pieces, body))
            for chunk in body:
                yield chunk
                if deadline.deadline is not None:
                    deadline.left()
        except Exception as error:
            raise error_for_failure(error, deadline, in_body=True)  # noqa: B904  it has its cause

    def read(self) -> WireResponse:
        """Read the whole body, and give the connection back.

        Raises:
            MalformedResponseError: it is larger than the limit; or as `chunks`.
        """
        body = bytearray()
        try:
            for chunk in self.chunks():
                body += chunk
                if len(body) > self._limit:
                    raise self.too_large()
        finally:
            self.close()
        return WireResponse(status=self.status, headers=self.headers, body=bytes(body))

    def close(self) -> None:
        """Give the connection back, or close it when the body was not read to its end."""
        self._response.close()


class SyncTransport:
    """Opens answers; safe for use from several threads, as httpx's client is.

    Args:
        http_client: used as it is, and left open; None makes one, which `close` closes.
        limit: bytes that a whole body may have, decompressed.
        transport: name of the transport that makes one; None is httpx.
    """

    def __init__(self, http_client: Any = None, limit: int = EVENT_LIMIT, transport: str | None = None) -> None:
        self.limit = limit
        self.own_limits = check_client(http_client, transport, blocking=True)
        self._own = http_client is None
        self._http = new_client(transport, blocking=True) if self._own else http_client

    def open(self, request: Outgoing, deadline: Deadline) -> Answer:
        """Send, and return when the answer's headers are there.

        Raises:
            APITimeoutError: a limit was passed; the message names it.
            APIConnectionError: no answer could be had.
            CallerError: the URL or a header cannot be sent.
        """
        timeouts = deadline.for_headers()
        try:
            extensions = None if timeouts is None else {"timeout": timeouts}
            method, url, body = request.method, request.url, request.body or None
            built = self._http.build_request(method, url, content=body, headers=request.headers, extensions=extensions)
            return Answer(self._http.send(built, stream=True), deadline, self.limit)
        except Exception as error:
            raise error_for_failure(error, deadline, in_body=False, url=request.url)  # noqa: B904  it has its cause

    def close(self) -> None:
        """Close the HTTP client, if it was made here."""
        if self._own:
            self._http.close()


class AsyncAnswer(ResponseHead):
    """An answer whose body has yet to be read."""

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives; errors as in the blocking transport."""
        deadline = self._deadline
        try:
            body, inflater = self.begin_body()
            if body is None:
                body, inflater = self._response.aiter_bytes(), None
            async for chunk in body:
                for piece in (chunk,) if inflater is None else inflater.pieces(chunk):
                    yield piece
                    deadline.left()
        except Exception as error:
            raise error_for_failure(error, deadline, in_body=True)  # noqa: B904  it has its cause

    async def read(self) -> WireResponse:
        """Read the whole body, and give the connection back; errors as in the blocking transport."""
        body = bytearray()
        try:
            async for chunk in self.chunks():
                body += chunk
                if len(body) > self._limit:
                    raise self.too_large()
        finally:
            await self.close()
        return WireResponse(status=self.status, headers=self.headers, body=bytes(body))

    async def close(self) -> None:
        """Give the connection back, or close it when the body was not read to its end."""
        await self._response.aclose()


class AsyncTransport:
    """Opens answers; a loop's connections are closed with that loop, so one client serves many.

    Args:
        http_client: used as it is, and left open; None makes one per loop.
        limit: bytes that a whole body may have, decompressed.
        transport: name of the transport that makes one; None is httpx.
    """

    def __init__(self, http_client: Any = None, limit: int = EVENT_LIMIT, transport: str | None = None) -> None:
        self.limit = limit
        self._name = transport
        self.own_limits = check_client(http_client, transport, blocking=False)
        self._given = http_client
        self._lock = Lock()
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncGenerator[Any, None]] = WeakKeyDictionary()
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, Any] = WeakKeyDictionary()
        self._making: dict[asyncio.AbstractEventLoop, asyncio.Task[Any]] = {}

    async def prepare(self) -> Any:
        """Return this loop's HTTP client; it is made in a thread, for loading certificates takes long.

        Raises:
            CallerError: as `new_client`.
        """
        if self._given is not None:
            return self._given
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            if loop not in self._making:
                self._making[loop] = loop.create_task(self._make(loop))
            client = await asyncio.shield(self._making[loop])
        return client

    async def _make(self, loop: asyncio.AbstractEventLoop) -> Any:
        try:
            keeper = _keep(await asyncio.to_thread(_load_async_client, self._name))
            client = await anext(keeper)
        finally:
            del self._making[loop]
        with self._lock:
            # a client holds its loop by its sockets: without this the weak key would never go
            for old in [old for old in self._loops if old.is_closed()]:
                del self._loops[old], self._clients[old]
            self._loops[loop], self._clients[loop] = keeper, client
        return client

    async def open(self, request: Outgoing, deadline: Deadline) -> AsyncAnswer:
        """Send, and return when the answer's headers are there; errors as in the blocking transport."""
        timeouts = deadline.for_headers()
        http = await self.prepare()
        try:
            extensions = None if timeouts is None else {"timeout": timeouts}
            method, url, body = request.method, request.url, request.body or None
            built = http.build_request(method, url, content=body, headers=request.headers, extensions=extensions)
            return AsyncAnswer(await http.send(built, stream=True), deadline, self.limit)
        except Exception as error:
            raise error_for_failure(error, deadline, in_body=False, url=request.url)  # noqa: B904  it has its cause

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
