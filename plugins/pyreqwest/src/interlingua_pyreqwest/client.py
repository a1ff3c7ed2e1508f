"""HTTP clients over pyreqwest, with what core's transport uses of httpx's clients."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, NoReturn
from urllib.parse import urlsplit
from urllib.request import getproxies

from pyreqwest.client import Client, ClientBuilder
from pyreqwest.exceptions import BuilderError, ClientClosedError, ConnectTimeoutError, PoolTimeoutError, PyreqwestError
from pyreqwest.exceptions import RequestTimeoutError as PyreqwestTimeoutError

from interlingua_pyreqwest.waiting import AsyncWait, BlockingWait

_ACCEPT = {"accept-encoding": "gzip, deflate"}  # core decompresses, within its limit
_PROXY_SCHEMES = frozenset({"http", "https", "socks4", "socks4a", "socks5", "socks5h"})
_IDLE = 64
_CLOSING = 1.0  # seconds


class ConnectTimeout(TimeoutError):
    """No connection within its limit."""


class PoolTimeout(TimeoutError):
    """No connection came free."""


class InvalidURL(ValueError):
    """The URL cannot be sent to."""


class LocalProtocolError(ValueError):
    """A header or a method cannot be sent."""


def new_client(*, blocking: bool) -> BlockingClient | AsyncClient:
    """Make an HTTP client; for the entry-point group `interlingua.transports`.

    Raises:
        ValueError: the environment names a proxy that cannot be used.
        OSError: or a file of certificates that cannot be read.
    """
    return BlockingClient() if blocking else AsyncClient()


class Request(NamedTuple):
    """A request as core's transport builds it."""

    method: str
    url: str
    content: bytes | None
    headers: Mapping[str, str]
    extensions: Mapping[str, Any]


class Headers(NamedTuple):
    """Response headers, as httpx has them."""

    raw: list[tuple[bytes, bytes]]


class _Client:
    """What both clients share.

    A client of pyreqwest has one limit for connecting; there is one for each limit that requests have.
    """

    base_url = ""

    def __init__(self) -> None:
        self._clients: dict[float | None, Client] = {}
        self._closed = False
        self._roots = _read_certificates()
        _check_proxies()
        self._client(None)

    def build_request(
        self, method: str, url: str, *, content: bytes | None, headers: Mapping[str, str], extensions: Any
    ) -> Request:
        """Return a request; `extensions` holds the limits, as httpx has them."""
        return Request(method, url, content, {**_ACCEPT, **headers}, extensions or {"timeout": {}})

    def _client(self, connect: float | None) -> Client:
        if self._closed:
            raise RuntimeError("the client is closed")
        found = self._clients.get(connect)
        if found is None:
            builder = ClientBuilder().follow_redirects(False).referer(False).pool_max_idle_per_host(_IDLE)
            builder = builder.gzip(False).deflate(False).brotli(False).zstd(False)
            for certificate in self._roots:
                builder = builder.add_root_certificate_pem(certificate)
            if connect is not None:
                builder = builder.connect_timeout(timedelta(seconds=connect))
            found = self._clients[connect] = builder.build()
        return found

    def _open(self, request: Request) -> tuple[Any, float | None]:
        """Return what opens an answer, and the seconds that may take."""
        limits = request.extensions["timeout"]
        connect, read = limits.get("connect"), limits.get("read")
        if connect is not None and read is not None and connect >= read:
            connect = None  # whichever is shorter ends the wait
        client = self._client(connect)
        try:
            builder = client.request(request.method, request.url)
        except (PyreqwestError, ValueError) as error:
            raise InvalidURL(str(error)) from None
        try:
            builder = builder.headers(request.headers)
        except (PyreqwestError, ValueError) as error:
            raise LocalProtocolError(type(error).__name__) from None
        if request.content is not None:
            builder = builder.body_bytes(request.content)
        return builder.streamed_read_buffer_limit(0).build_streamed(), read  # it reads 64 KiB ahead otherwise


class BlockingClient(_Client):
    """A blocking client; threads may share it."""

    def send(self, request: Request, *, stream: bool) -> BlockingResponse:
        """Send, and return when the answer's headers are there."""
        wait = BlockingWait()
        opening, limit = self._open(request)
        try:
            return BlockingResponse(request, opening, wait.run(opening.__aenter__(), limit), wait)
        except PyreqwestError as error:
            _raise(error)

    def close(self) -> None:
        """Close the connections."""
        self._closed = True
        for client in self._clients.values():
            with suppress(PyreqwestError, TimeoutError):
                BlockingWait().run(client.close(), _CLOSING)
        self._clients.clear()


class AsyncClient(_Client):
    """An asynchronous client."""

    async def send(self, request: Request, *, stream: bool) -> AsyncResponse:
        """As `BlockingClient.send`."""
        wait = AsyncWait()
        opening, limit = self._open(request)
        try:
            return AsyncResponse(request, opening, await wait.run(opening.__aenter__(), limit), wait)
        except PyreqwestError as error:
            _raise(error)

    async def aclose(self) -> None:
        """As `BlockingClient.close`."""
        self._closed = True
        for client in self._clients.values():
            with suppress(PyreqwestError):
                await client.close()
        self._clients.clear()


class _Response:
    """What both answers share: the parts of httpx's responses that core reads.

    `break_off` of core asks for a socket and shuts it down; here that ends the wait of a read.
    """

    stream: Any
    _Wait: ClassVar[Any]

    def __init__(self, request: Request, opening: Any, response: Any, wait: Any) -> None:
        self.request = request
        self.status_code: int = response.status
        raw = [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in response.headers.items()]
        self.headers = Headers(raw)
        self.extensions = {"http_version": response.version.encode(), "network_stream": self}
        self.stream = self
        self._opening, self._read, self._wait = opening, response.body_reader.read_chunk, wait
        self._is_open = True

    def get_extra_info(self, _name: str) -> _Response:
        """As a network stream of httpx."""
        return self

    def shutdown(self, _how: int) -> None:
        """As a socket."""
        self._wait.break_off()


class BlockingResponse(_Response):
    """A streamed answer."""

    def __iter__(self) -> Iterator[bytes]:
        limit, read, run = self.request.extensions["timeout"].get("read"), self._read, self._wait.run
        try:
            while (chunk := run(read(), limit)) is not None:
                yield bytes(chunk)
        except PyreqwestError as error:
            _raise(error)

    def iter_bytes(self) -> Iterator[bytes]:
        """Yield the body; what core cannot decompress stays as it is."""
        return iter(self)

    def close(self) -> None:
        """Give the connection back, or close it when the body was not read to its end."""
        if self._is_open:
            self._is_open = False
            with suppress(PyreqwestError, TimeoutError):
                BlockingWait().run(self._opening.__aexit__(None, None, None), _CLOSING)


class AsyncResponse(_Response):
    """A streamed answer."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        limit, read, run = self.request.extensions["timeout"].get("read"), self._read, self._wait.run
        try:
            while (chunk := await run(read(), limit)) is not None:
                yield bytes(chunk)
        except PyreqwestError as error:
            _raise(error)

    def aiter_bytes(self) -> AsyncIterator[bytes]:
        """As `BlockingResponse.iter_bytes`."""
        return aiter(self)

    async def aclose(self) -> None:
        """As `BlockingResponse.close`."""
        if self._is_open:
            self._is_open = False
            with suppress(PyreqwestError):
                await self._opening.__aexit__(None, None, None)


def _raise(error: PyreqwestError) -> NoReturn:
    """Raise the error by a name and a class that core knows, with the innermost cause as its text."""
    causes = (getattr(error, "details", None) or {}).get("causes") or ()
    text = causes[-1]["message"] if causes else str(getattr(error, "message", error))
    if isinstance(error, ClientClosedError):
        raise RuntimeError("the client is closed") from None
    if isinstance(error, BuilderError) or "URL" in text:
        raise InvalidURL(text) from None
    if isinstance(error, PoolTimeoutError):
        raise PoolTimeout(text) from None
    if isinstance(error, ConnectTimeoutError):
        raise ConnectTimeout(text) from None
    if isinstance(error, PyreqwestTimeoutError):
        raise TimeoutError(text) from None
    raise ConnectionError(text) from None


def _check_proxies() -> None:
    """Look at the proxies of the environment: reqwest leaves out what it cannot use, and would go around it."""
    for name, address in getproxies().items():
        if name in ("http", "https", "all") and urlsplit(address).scheme not in _PROXY_SCHEMES and "://" in address:
            raise ValueError(f"{name} names a proxy of an unknown kind")


def _read_certificates() -> list[bytes]:
    """Return the certificates that SSL_CERT_FILE and SSL_CERT_DIR name, one by one."""
    paths = [Path(found)] if (found := os.environ.get("SSL_CERT_FILE")) else []
    if folder := os.environ.get("SSL_CERT_DIR"):
        paths += sorted(path for path in Path(folder).iterdir() if path.is_file())
    end = b"-----END CERTIFICATE-----"
    certificates = []
    for path in paths:
        for one in path.read_bytes().split(end)[:-1]:
            certificates.append(one[one.index(b"-----BEGIN") :] + end + b"\n")
    return certificates
