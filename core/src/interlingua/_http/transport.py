"""Send requests and read answers; the only module that imports httpx."""

from __future__ import annotations

import logging
import re
import socket
import zlib
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from functools import partial
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.request import getproxies

import httpx

from interlingua._http.limits import Deadline, error_for_failure, error_for_no_client
from interlingua._plugins.connection import HttpRequest
from interlingua._plugins.wire import WireResponse
from interlingua._response.framing import EVENT_LIMIT
from interlingua.errors import (
    APIConnectionError,
    AuthenticationError,
    CallerError,
    InterlinguaError,
    MalformedResponseError,
)

if TYPE_CHECKING:
    from interlingua._plugins.connection import Connection
    from interlingua._plugins.wire import WireRequest

_T = TypeVar("_T")
_log = logging.getLogger("interlingua")

# a client whose timeouts are all httpx's default was given none: five seconds would cut most answers off
_LIBRARY_DEFAULT = {5.0}

# no pool limit: a caller's threads decide how many requests run at once
_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=None)
_ACCEPT = {"accept-encoding": "gzip, deflate"}  # what can be decompressed piece by piece
_COMPRESSED = frozenset(("gzip", "x-gzip", "deflate"))
_PIECE = 256 * 1024
_AT_ONCE = 16 * 1024  # bytes whose events are in memory at once
_CHUNK_SIZE = re.compile(rb"\r\n(0*[1-9A-Fa-f][0-9A-Fa-f]{0,7})\r\n")  # after the end of the chunk before


def outgoing(
    connection: Connection, request: WireRequest, headers: Mapping[str, str], secret: Any = None
) -> HttpRequest:
    """Make the HTTP request; later sources of a header win: connection, wire, caller, auth, signature. Lists add up."""
    try:
        merged = {"content-type": "application/json"}
        for source in (connection.headers, request.headers, headers, connection.auth(request)):
            for name, value in source.items():
                lower = name.lower()
                merged[lower] = _joined(merged.get(lower), value) if lower in connection.list_headers else value
        url = connection.base_url + request.path if connection.url is None else connection.url(request)
        made = HttpRequest(request.method, url, merged, request.body, datetime.now(UTC))
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
    names = [name for name in connection.env_vars if "KEY" in name or "TOKEN" in name] or connection.env_vars
    where = " or ".join(names) or "the environment"
    return AuthenticationError(f"no key: set {where}, or give api_key=", provider=provider, retryable=False)


def _joined(known: str | None, more: str) -> str:
    """Join comma-separated lists, each item once, without spaces."""
    items = [item.strip() for item in f"{known or ''},{more}".split(",")]
    return ",".join(dict.fromkeys(item for item in items if item))


def check_client(http_client: Any, transport: Any, *, blocking: bool) -> bool:
    """Check the HTTP client or the name of a transport that a caller gave; true: somebody chose its time limits."""
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


class _Decompressor:
    """Decompresses a body piece by piece: a small one may hold a thousand times its size."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self._zlib = zlib.decompressobj(zlib.MAX_WBITS | 32)  # gzip or zlib, as its first bytes say
        self._begun = False

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Yield what these bytes hold."""
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
    """Reads a chunked body in place of h11's reader: the chunks that have arrived whole are taken at once.

    A service sends a model's delta as a chunk, and h11 and httpx spend more on each than all the rest that is done.
    """

    def __init__(self, reader: Any) -> None:
        self.rest: deque[bytes] = deque()  # what follows the data of the last event, in pieces
        self._read = reader  # reads the first chunk, one that is cut off, the last one, and what is no chunk
        self.read_eof = reader.read_eof

    def __call__(self, buffer: Any) -> Any:
        """Return what h11's reader returns; data goes on with the further chunks that the buffer holds whole."""
        event = self._read(buffer)
        if not getattr(event, "chunk_end", False):
            return event
        data, at, pieces = bytes(buffer), 0, [event.data]
        while (size := _CHUNK_SIZE.match(data, at)) and (end := size.end() + int(size[1], 16)) <= len(data):
            pieces.append(data[size.end() : end])
            at = end
        if at:
            buffer.maybe_extract_at_most(at)
        joined = b"".join(pieces)
        self.rest.extend(joined[at : at + _AT_ONCE] for at in range(_AT_ONCE, len(joined), _AT_ONCE))
        return type(event)(data=joined[:_AT_ONCE])


class DirectClient:
    """A client without settings whose requests go to its httpx transport at once.

    Tools that watch or replay httpx do so at its transports, and see these requests like any other.
    """

    def __init__(self, *, blocking: bool) -> None:
        self._blocking = blocking
        self._transport: Any = (httpx.HTTPTransport if blocking else httpx.AsyncHTTPTransport)(limits=_LIMITS)
        client: Any = httpx.Client if blocking else httpx.AsyncClient
        self._client: Any = client(transport=self._transport, headers=_ACCEPT)
        self._last: tuple[str, Mapping[str, str], httpx.Request] = ("", {}, self._client.build_request("GET", ""))
        self.close, self.aclose = getattr(self._client, "close", None), getattr(self._client, "aclose", None)

    def build_request(
        self, method: str, url: str, *, content: bytes | None, headers: Mapping[str, str], extensions: Any
    ) -> httpx.Request:
        """Build a request as httpx does, which takes eight times as long: most have address and headers of the last."""
        address, before, like = self._last
        if url != address or headers != before:
            like = self._client.build_request("GET", url, headers=headers)
            self._last = (url, headers, like)
        body = None if content is None else httpx.ByteStream(content)
        request = httpx.Request(method, like.url, headers=like.headers, stream=body, extensions=extensions)
        if content is not None:
            request.headers["content-length"] = str(len(content))
            request.read()
        return request

    def send(self, request: httpx.Request, *, stream: bool) -> Any:
        """Return the response, or where the client is asynchronous what it is awaited from, as httpx's clients do."""
        if self._client.is_closed or request.url.userinfo:
            return self._client.send(request, stream=stream)
        if self._blocking:
            return self._transport.handle_request(request)
        return self._transport.handle_async_request(request)


def new_client(name: str | None, *, blocking: bool) -> Any:
    """Make a client: httpx's, or of the transport of that name."""
    if name not in (None, "httpx"):
        return _other_client(name, blocking=blocking)
    proxied = any(getproxies().get(name) for name in ("http", "https", "all"))
    try:
        if proxied:
            return (httpx.Client if blocking else httpx.AsyncClient)(limits=_LIMITS, headers=_ACCEPT)
        return DirectClient(blocking=blocking)
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


class Response:
    """An answer whose body has yet to be read; where its transport is blocking, nothing that is awaited here waits."""

    def __init__(self, response: Any, timeouts: Any, deadline: Deadline, transport: Transport) -> None:
        self._response, self._timeouts, self._deadline = response, timeouts, deadline
        self._blocking, self._limit = transport.blocking, transport.limit
        self._body: Any = None
        self._inflate: Callable[[bytes], Iterator[bytes]] | None = None
        self._pieces: Iterator[bytes] = iter(())
        self._arrived: deque[bytes] = deque()
        self.status: int = response.status_code
        # the library's mapping decodes all headers again for each name
        self.headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers.raw}

    def _begin_body(self) -> Any:
        """Return the iterator over the body; the time limits of the body take over now."""
        response, limit = self._response, self._deadline.for_body()
        if limit is not None and self._timeouts is not None:
            self._timeouts["read"] = limit
        encoding = self.headers.get("content-encoding", "identity").strip().lower()
        h11: Any = (body := getattr(response, "stream", None))
        if body is None or encoding not in ("identity", "", *_COMPRESSED):  # only the HTTP client can read it
            return response.iter_bytes() if self._blocking else response.aiter_bytes()
        if encoding in _COMPRESSED:
            self._inflate = _Decompressor(encoding).pieces
        for name in ("_stream", "_httpcore_stream", "_stream", "_connection", "_h11_state"):  # as httpx has them
            h11 = getattr(h11, name, h11)
        reader = getattr(h11, "_reader", None)
        if type(reader).__name__ == "ChunkedReader":
            h11._reader = ChunkReader(reader)
            self._arrived = h11._reader.rest
        return iter(body) if self._blocking else aiter(body)

    def __aiter__(self) -> Response:
        return self

    async def __anext__(self) -> bytes:
        """Return the next piece of the body as it arrives."""
        try:
            if self._body is None:
                self._body = self._begin_body()
            elif self._deadline.deadline is not None:
                self._deadline.left()
            while (piece := next(self._pieces, None)) is None:
                if self._arrived:
                    piece = self._arrived.popleft()
                else:
                    piece = next(self._body, None) if self._blocking else await anext(self._body, None)
                if piece is None or self._inflate is None:
                    break
                self._pieces = self._inflate(piece)
        except Exception as error:
            raise error_for_failure(error, self._deadline, in_body=True)  # noqa: B904  it has its cause
        if piece is None:
            raise StopAsyncIteration
        return piece

    async def read(self) -> WireResponse:
        """Read the whole body, and give the connection back."""
        body = bytearray()
        try:
            async for piece in self:
                body += piece
                if len(body) > self._limit:
                    text = f"the body of the answer is larger than max_response_bytes={self._limit} bytes"
                    raise MalformedResponseError(text, status=self.status)
        finally:
            await self.close()
        return WireResponse(status=self.status, headers=self.headers, body=bytes(body))

    async def close(self) -> None:
        """Give the connection back, or close it when the body was not read to its end."""
        if self._blocking:
            self._response.close()
        else:
            await self._response.aclose()

    def abort(self) -> None:
        """Wake a read that waits in another thread or task: the connection is shut, where it is ours alone."""
        extensions = self._response.extensions
        if extensions.get("http_version") not in (b"HTTP/1.1", b"HTTP/1.0"):
            return
        stream = extensions.get("network_stream")
        raw = stream.get_extra_info("socket") if stream is not None else None
        if raw is not None:
            with suppress(OSError):
                raw.shutdown(socket.SHUT_RDWR)


class Transport:
    """Opens answers, by the HTTP client that was given, or by its own (one for each event loop), which `close` closes.

    Safe for use from several threads and event loops. If `blocking`, its coroutines never wait (`run_without_waiting`).
    """

    def __init__(
        self, http_client: Any = None, limit: int = EVENT_LIMIT, transport: str | None = None, *, blocking: bool
    ) -> None:
        self.limit, self.blocking = limit, blocking
        self.own_limits = check_client(http_client, transport, blocking=blocking)
        self._given, self._http = http_client, http_client
        self.loops: Any = None
        if not blocking:
            from interlingua._http.loops import EventLoops  # noqa: PLC0415  asyncio is large, and a script needs none

            self.loops = EventLoops(partial(new_client, transport, blocking=False))
        elif http_client is None:
            self._http = new_client(transport, blocking=True)

    async def prepare(self) -> Any:
        """Return the HTTP client."""
        return await self.loops.client() if self._http is None else self._http

    async def open(self, request: HttpRequest, deadline: Deadline) -> Response:
        """Send, and return when the answer's headers are there; what fails is a typed error."""
        timeouts = deadline.for_headers()
        http = await self.prepare() if self._http is None else self._http
        try:
            extensions = None if timeouts is None else {"timeout": timeouts}
            method, url, body = request.method, request.url, request.body or None
            built = http.build_request(method, url, content=body, headers=request.headers, extensions=extensions)
            sent = http.send(built, stream=True)
            return Response(sent if self.blocking else await sent, timeouts, deadline, self)
        except Exception as error:
            raise error_for_failure(error, deadline, in_body=False, url=request.url)  # noqa: B904  it has its cause

    async def close(self) -> None:
        """Close the HTTP client that was made here, of the running loop; other loops close theirs when they end."""
        if self.loops is not None:
            await self.loops.close_client()
        elif self._given is None:
            self._http.close()


def run_without_waiting(work: Coroutine[Any, Any, _T]) -> _T:
    """Return what a coroutine over a blocking transport returns: nothing in it ever waits."""
    try:
        work.send(None)
    except StopIteration as done:
        value: _T = done.value
        return value
    raise AssertionError("a blocking transport waited")
