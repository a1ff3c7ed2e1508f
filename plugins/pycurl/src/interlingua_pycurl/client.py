"""HTTP clients over libcurl, with what core's transport uses of httpx's clients."""

from __future__ import annotations

import os
import re
import socket
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from urllib.parse import urlsplit
from urllib.request import getproxies

import certifi
import pycurl

from interlingua_pycurl.transfer import Failure, Transfer

_PROXY_SCHEMES = frozenset({"http", "https", "socks4", "socks4a", "socks5", "socks5h"})
_IDLE = 64
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_DEFAULTS = {
    pycurl.NOSIGNAL: 1,
    pycurl.UPLOAD_BUFFERSIZE: 16 * 1024,  # each transfer has one: 64 KiB by default
    pycurl.HTTP_VERSION: pycurl.CURL_HTTP_VERSION_1_1,
    pycurl.PROTOCOLS: pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS,
    pycurl.PATH_AS_IS: 1,
}
_NOT_SENT = frozenset({pycurl.E_URL_MALFORMAT, pycurl.URL})


class ConnectTimeout(TimeoutError):
    """No connection within its limit."""


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
    """What both clients share: transfers that wait for their next request."""

    base_url = ""

    def __init__(self) -> None:
        self._idle: list[Transfer] = []
        self._closed = False
        self._proxies = _read_proxies()
        self._options = {**_DEFAULTS, **_read_certificates()}

    def build_request(
        self, method: str, url: str, *, content: bytes | None, headers: Mapping[str, str], extensions: Any
    ) -> Request:
        """Return a request; `extensions` holds the limits, as httpx has them."""
        return Request(method, url, content, headers, extensions or {"timeout": {}})

    def _begin(self, request: Request) -> Transfer:
        if self._closed:
            raise RuntimeError("the client is closed")
        scheme = request.url.partition(":")[0].lower()
        if scheme not in ("http", "https"):
            raise InvalidURL("it begins with neither http: nor https:")
        connect = request.extensions["timeout"].get("connect")
        options: dict[int, Any] = {
            **self._options,
            pycurl.URL: request.url,
            pycurl.HTTPHEADER: _write_headers(request.headers),
            pycurl.PROXY: self._proxies.get(scheme) or self._proxies.get("all", ""),
            pycurl.NOPROXY: self._proxies.get("no", ""),
            pycurl.CONNECTTIMEOUT_MS: 0 if connect is None else max(int(connect * 1000), 1),
        }
        if request.content is not None or request.method in ("POST", "PUT", "PATCH"):
            options[pycurl.POSTFIELDS] = request.content or b""
        options[pycurl.CUSTOMREQUEST] = request.method
        try:
            transfer = self._idle.pop()
        except IndexError:
            transfer = Transfer()
        try:
            transfer.begin(options)
        except Failure as failure:
            transfer.close()
            _raise(failure)
        return transfer

    def _give_back(self, transfer: Transfer) -> None:
        if transfer.end() and not self._closed and len(self._idle) < _IDLE:
            self._idle.append(transfer)
        else:
            transfer.close()

    def _close(self) -> None:
        self._closed = True
        while self._idle:
            self._idle.pop().close()


class BlockingClient(_Client):
    """A blocking client; threads may share it."""

    def send(self, request: Request, *, stream: bool) -> BlockingResponse:
        """Send, and return when the answer's headers are there."""
        transfer = self._begin(request)
        try:
            head = transfer.read_head_blocking(request.extensions["timeout"].get("read"))
        except BaseException as error:
            self._give_back(transfer)
            _raise(error)
        return BlockingResponse(self, request, transfer, head)

    def close(self) -> None:
        """Close the connections."""
        self._close()


class AsyncClient(_Client):
    """An asynchronous client."""

    async def send(self, request: Request, *, stream: bool) -> AsyncResponse:
        """As `BlockingClient.send`."""
        transfer = self._begin(request)
        try:
            head = await transfer.read_head(request.extensions["timeout"].get("read"))
        except BaseException as error:
            self._give_back(transfer)
            _raise(error)
        return AsyncResponse(self, request, transfer, head)

    async def aclose(self) -> None:
        """As `BlockingClient.close`."""
        self._close()


class _Response:
    """What both answers share: the parts of httpx's responses that core reads."""

    stream: Any

    def __init__(self, client: _Client, request: Request, transfer: Transfer, head: list[bytes]) -> None:
        version, status = head[0].split(None, 2)[:2]
        fields = (line.partition(b":") for line in head[1:])
        self.request = request
        self.status_code = int(status)
        self.headers = Headers([(name.strip(), value.strip()) for name, _, value in fields])
        self.extensions = {"http_version": version, "network_stream": self}
        self.stream = self
        self._client = client
        self._transfer: Transfer | None = transfer
        number = transfer.socket_number()
        # a copy: the socket itself is closed by libcurl when it likes, and its number taken by another
        self._socket = socket.fromfd(number, socket.AF_INET, socket.SOCK_STREAM) if number >= 0 else None

    def get_extra_info(self, _name: str) -> socket.socket | None:
        """As a network stream of httpx: the socket, which `abort` of core shuts down."""
        return self._socket

    def _give_back(self) -> None:
        transfer, self._transfer = self._transfer, None
        if transfer is not None:
            self._client._give_back(transfer)
            if self._socket is not None:
                self._socket.close()


class BlockingResponse(_Response):
    """A streamed answer."""

    def __iter__(self) -> Iterator[bytes]:
        limit = self.request.extensions["timeout"].get("read")
        try:
            while self._transfer is not None and (data := self._transfer.read_blocking(limit)) is not None:
                yield data
        except Failure as failure:
            _raise(failure)

    def iter_bytes(self) -> Iterator[bytes]:
        """Yield the body; what core cannot decompress stays as it is."""
        return iter(self)

    def close(self) -> None:
        """Give the connection back, or close it when the body was not read to its end."""
        self._give_back()


class AsyncResponse(_Response):
    """A streamed answer."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        limit = self.request.extensions["timeout"].get("read")
        try:
            while self._transfer is not None and (data := await self._transfer.read(limit)) is not None:
                yield data
        except Failure as failure:
            _raise(failure)

    def aiter_bytes(self) -> AsyncIterator[bytes]:
        """As `BlockingResponse.iter_bytes`."""
        return aiter(self)

    async def aclose(self) -> None:
        """As `BlockingResponse.close`."""
        self._give_back()


def _raise(error: BaseException) -> NoReturn:
    """Raise what core knows by its name and class."""
    if not isinstance(error, Failure):
        raise error
    text = str(error)
    if error.number in _NOT_SENT:
        raise InvalidURL(text) from None
    if error.number == pycurl.E_OPERATION_TIMEDOUT:  # no other limit is libcurl's
        raise ConnectTimeout(text) from None
    raise ConnectionError(text) from None


def _write_headers(headers: Mapping[str, str]) -> list[bytes]:
    """Return the lines to send; libcurl would send line breaks as they are."""
    lines = [b"Expect:", b"Accept-Encoding: gzip, deflate"]  # core decompresses, within its limit
    for name, value in headers.items():
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise LocalProtocolError(name)
        if name.lower() == "accept-encoding":
            del lines[1]
        lines.append((f"{name}: {value}" if value.strip() else f"{name};").encode("latin-1"))
    return lines


def _read_proxies() -> dict[str, str]:
    """Return the proxies of the environment, and under `no` the hosts that go around them."""
    proxies = getproxies()
    for name, address in proxies.items():
        if name in ("http", "https", "all") and urlsplit(address).scheme not in _PROXY_SCHEMES and "://" in address:
            raise ValueError(f"{name} names a proxy of an unknown kind")
    return proxies


def _read_certificates() -> dict[int, str | None]:
    """Return where the certificates are that are trusted: as the environment says, the system's, or certifi's.

    A folder with an index is preferred to a file, for each connection would read the whole file.
    """
    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if file or folder:
        if file:
            Path(file).read_bytes()
        return {pycurl.CAINFO: file, pycurl.CAPATH: folder}
    system = ssl.get_default_verify_paths().capath
    with suppress(OSError):
        if system and any(path.name.endswith(".0") for path in Path(system).iterdir()):
            return {pycurl.CAINFO: None, pycurl.CAPATH: system}
    return {pycurl.CAINFO: certifi.where(), pycurl.CAPATH: None}
