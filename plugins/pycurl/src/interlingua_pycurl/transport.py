"""Transports over libcurl, for `Client(transport="pycurl")`."""

from __future__ import annotations

import os
import re
import socket
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit
from urllib.request import getproxies

import certifi
import pycurl

from interlingua.transport import (
    HttpRequest,
    TimeLimits,
    bad_header,
    connection_failed,
    transport_closed,
    unsendable,
)
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
_NOT_CONNECTED = frozenset({pycurl.E_COULDNT_RESOLVE_PROXY, pycurl.E_COULDNT_RESOLVE_HOST, pycurl.E_COULDNT_CONNECT})


def new_transport(*, blocking: bool) -> CurlTransport | AsyncCurlTransport:
    """Create a transport; for the entry point group `interlingua.transports`.

    Raises:
        ValueError: the environment names a proxy that cannot be used.
        OSError: a file of certificates cannot be read.
    """
    return CurlTransport() if blocking else AsyncCurlTransport()


class _Base:
    """Shared code of both transports: transfers that are kept for the next request."""

    def __init__(self) -> None:
        self._idle: list[Transfer] = []
        self._closed = False
        self._proxies = _read_proxies()
        self._options = {**_DEFAULTS, **_read_certificates()}

    def _begin(self, request: HttpRequest, limits: TimeLimits) -> Transfer:
        if self._closed:
            raise transport_closed()
        scheme = request.url.partition(":")[0].lower()
        if scheme not in ("http", "https"):
            raise unsendable(request.url, "it begins with neither http: nor https:")
        connect = limits.connect
        options: dict[int, Any] = {
            **self._options,
            pycurl.URL: request.url,
            pycurl.HTTPHEADER: _write_headers(request.headers),
            pycurl.PROXY: self._proxies.get(scheme) or self._proxies.get("all", ""),
            pycurl.NOPROXY: self._proxies.get("no", ""),
            pycurl.CONNECTTIMEOUT_MS: 0 if connect is None else max(int(connect * 1000), 1),
        }
        if request.body or request.method in ("POST", "PUT", "PATCH"):
            options[pycurl.POSTFIELDS] = request.body
        options[pycurl.CUSTOMREQUEST] = request.method
        try:
            transfer = self._idle.pop()
        except IndexError:
            transfer = Transfer()
        try:
            transfer.begin(options)
        except Failure as failure:
            transfer.close()
            _raise_typed(failure, limits, request.url)
        return transfer

    def _release(self, transfer: Transfer) -> None:
        if transfer.end() and not self._closed and len(self._idle) < _IDLE:
            self._idle.append(transfer)
        else:
            transfer.close()

    def _close(self) -> None:
        self._closed = True
        while self._idle:
            self._idle.pop().close()


class CurlTransport(_Base):
    """A `Transport` over libcurl; threads may share it."""

    def open(self, request: HttpRequest, limits: TimeLimits) -> CurlReply:
        """Send a request; return when the headers have arrived."""
        transfer = self._begin(request, limits)
        try:
            head = transfer.read_head_blocking(limits.first_byte)
        except BaseException as error:
            self._release(transfer)
            _raise_typed(error, limits, request.url)
        return CurlReply(self, limits, transfer, head)

    def close(self) -> None:
        """Close the connections."""
        self._close()


class AsyncCurlTransport(_Base):
    """An `AsyncTransport` over libcurl, on asyncio and trio."""

    async def open(self, request: HttpRequest, limits: TimeLimits) -> AsyncCurlReply:
        """Send a request; return when the headers have arrived."""
        transfer = self._begin(request, limits)
        try:
            head = await transfer.read_head(limits.first_byte)
        except BaseException as error:
            self._release(transfer)
            _raise_typed(error, limits, request.url)
        return AsyncCurlReply(self, limits, transfer, head)

    async def aclose(self) -> None:
        """Close the connections."""
        self._close()


class _BaseReply:
    def __init__(self, transport: _Base, limits: TimeLimits, transfer: Transfer, head: list[bytes]) -> None:
        fields = (line.partition(b":") for line in head[1:])
        self.status = int(head[0].split(None, 2)[1])
        self.headers: Mapping[str, str] = {
            name.strip().decode("latin-1").lower(): value.strip().decode("latin-1") for name, _, value in fields
        }
        self._transport, self._limits = transport, limits
        self._transfer: Transfer | None = transfer
        number = transfer.socket_number()
        # a copy, because libcurl may close the socket at any time and another may get its number
        self._socket = socket.fromfd(number, socket.AF_INET, socket.SOCK_STREAM) if number >= 0 else None

    def abort(self) -> None:
        """Shut the connection down, which wakes a read."""
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def _release(self) -> None:
        transfer, self._transfer = self._transfer, None
        if transfer is not None:
            self._transport._release(transfer)
            if self._socket is not None:
                self._socket.close()


class CurlReply(_BaseReply):
    """A reply of `CurlTransport`."""

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        data = None
        try:
            if self._transfer is not None:
                data = self._transfer.read_blocking(self._limits.between_chunks)
        except (Failure, OSError) as error:
            _raise_typed(error, self._limits)
        if data is None:
            raise StopIteration
        return data

    def close(self) -> None:
        """Release the connection."""
        self._release()


class AsyncCurlReply(_BaseReply):
    """A reply of `AsyncCurlTransport`."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        data = None
        try:
            if self._transfer is not None:
                data = await self._transfer.read(self._limits.between_chunks)
        except (Failure, OSError) as error:
            _raise_typed(error, self._limits)
        if data is None:
            raise StopAsyncIteration
        return data

    async def aclose(self) -> None:
        """Release the connection."""
        self._release()


def _raise_typed(error: BaseException, limits: TimeLimits, url: str | None = None) -> NoReturn:
    """Raise the typed error for a failure of libcurl; any other exception unchanged.

    Args:
        error: the exception.
        limits: time limits of the call.
        url: address of the request, if no headers had arrived yet.
    """
    if isinstance(error, TimeoutError):
        raise limits.timed_out("between_chunks" if url is None else "first_byte") from error
    if isinstance(error, OSError):
        raise connection_failed(error, url) from error
    if not isinstance(error, Failure):
        raise error
    if error.number in _NOT_SENT:
        raise unsendable(url or "", error) from None
    if error.number == pycurl.E_OPERATION_TIMEDOUT:  # no other limit is libcurl's
        raise limits.timed_out("connect") from error
    connected = error.number not in _NOT_CONNECTED
    raise connection_failed(ConnectionError(str(error)), url, connected=connected) from error


def _write_headers(headers: Mapping[str, str]) -> list[bytes]:
    """Return the lines to send; libcurl would send line breaks unchanged."""
    lines = [b"Expect:"]  # without it, libcurl waits for an interim reply
    for name, value in headers.items():
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise bad_header()
        lines.append((f"{name}: {value}" if value.strip() else f"{name};").encode("latin-1"))
    return lines


def _read_proxies() -> dict[str, str]:
    """Return the proxies of the environment, and under `no` the hosts that bypass them."""
    proxies = getproxies()
    for name, address in proxies.items():
        if name in ("http", "https", "all") and urlsplit(address).scheme not in _PROXY_SCHEMES and "://" in address:
            raise ValueError(f"{name} names a proxy of an unknown kind")
    return proxies


def _read_certificates() -> dict[int, str | None]:
    """Return the location of trusted certificates: the environment's, the system's, or certifi's.

    A folder with an index is preferred to a file, because each connection would read the whole file.
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
