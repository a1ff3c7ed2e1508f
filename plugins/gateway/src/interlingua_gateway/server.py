"""Serve the application on a port: heads of requests with limits, a clean end, and another configuration on SIGHUP.

Requests with a large body are passed to a second process.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import click
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from interlingua.errors import CallerError
from interlingua_gateway.large_requests import LargeRequests, is_large, received
from interlingua_gateway.report import printable
from interlingua_gateway.services import NO_FULL_COLLECTION

_HEAD_BYTES = 64 * 1024  # most bytes of a request's line and headers
_HEAD_SECONDS = 15.0  # most seconds for them
_JOINED = 64 * 1024  # most bytes that are copied to write them with a head
_SWITCH = 0.0005  # seconds after which a thread with a large request lets the event loop run, several times a request


def open_listener(host: str, port: int) -> socket.socket:
    """Listen on an address.

    Args:
        host: the address to listen on.
        port: the port; 0 takes a free one.

    Raises:
        CallerError: the address is in use, or this machine does not have it.
    """
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=2048)
        # connections inherit it; asyncio sets it for its own listeners only, and without it the second part of an
        # answer waits until the caller has acknowledged the first one, often 40 ms
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError as error:
        raise CallerError(f"cannot listen on {host}:{port}: {error.strerror}; choose another --port") from error
    return listener


def print_address(listener: socket.socket) -> None:
    """Print the address of a listener."""
    host, port = listener.getsockname()[:2]
    name = f"[{host}]" if ":" in host else host
    click.echo(f"serving on http://{name}:{port}; stop with Ctrl-C", err=True)


def serve(
    app: Any,
    listener: socket.socket,
    *,
    drain: float,
    reload: Callable[[], None] | None = None,
    large: LargeRequests | None = None,
    is_worker: bool = False,
) -> None:
    """Serve until SIGINT or SIGTERM, and write the gateway's log to stderr.

    Args:
        app: an ASGI application.
        listener: the socket on which connections arrive.
        drain: seconds that open answers have to finish at the end.
        reload: is called on SIGHUP, if the system has it.
        large: the process for large requests; None answers them here.
        is_worker: the address is printed already; else once signals are handled.
    """
    server = _Server(_configure(app, partial(LimitedHttpProtocol, large=large), drain), large)
    _handle_signals(server, reload)
    if not is_worker:
        print_address(listener)
    _tune()
    server.run(sockets=[listener])


def serve_passed(app: Any, channel: socket.socket, *, drain: float, reload: Callable[[], None] | None = None) -> None:
    """Serve the connections that the first process passes, one request on each, until it ends.

    Args:
        app: an ASGI application.
        channel: the socket over which they are passed.
        drain: seconds that open answers have to finish at the end.
        reload: is called on SIGHUP, if the system has it.
    """
    server = _PassedServer(_configure(app, LimitedHttpProtocol, drain), channel)
    _handle_signals(server, reload)
    _tune()
    server.run()


def _handle_signals(server: uvicorn.Server, reload: Callable[[], None] | None) -> None:
    # one that comes before uvicorn handles it ends the server, too; uvicorn raises it again after the clean end
    signal.signal(signal.SIGTERM, server.handle_exit)
    if reload is not None and hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, lambda *_: reload())


def _configure(app: Any, protocol: Any, drain: float) -> uvicorn.Config:
    _show_log()
    return uvicorn.Config(
        app, log_level="warning", access_log=False, ws="none", http=protocol, timeout_graceful_shutdown=round(drain)
    )


def _tune() -> None:
    gc.collect()
    gc.freeze()  # the garbage collector need not search what is loaded: that takes 0.1 s, in which no request proceeds
    gc.set_threshold(*gc.get_threshold()[:2], NO_FULL_COLLECTION)  # `Services.keep_up` makes full ones
    sys.setswitchinterval(_SWITCH)


class _Server(uvicorn.Server):
    """uvicorn's server; the process for large requests ends with it."""

    def __init__(self, config: uvicorn.Config, large: LargeRequests | None) -> None:
        super().__init__(config)
        self._large = large

    def handle_exit(self, sig: int, frame: Any) -> None:
        if self._large is not None:
            self._large.stop()
        super().handle_exit(sig, frame)


class _PassedServer(uvicorn.Server):
    """uvicorn's server on connections that another process has accepted."""

    def __init__(self, config: uvicorn.Config, channel: socket.socket) -> None:
        super().__init__(config)
        self._channel = channel

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=[])
        threading.Thread(target=self._receive, args=(asyncio.get_running_loop(),), daemon=True).start()

    def _receive(self, loop: asyncio.AbstractEventLoop) -> None:
        for connection, read in received(self._channel):
            made = partial(
                PassedHttpProtocol, read, config=self.config, server_state=self.server_state,
                app_state=self.lifespan.state, _loop=loop,
            )  # fmt: skip
            asyncio.run_coroutine_threadsafe(loop.connect_accepted_socket(made, connection), loop)
        self.should_exit = True


def _show_log() -> None:
    """Write the gateway's log to stderr from INFO on, unless INTERLINGUA_LOG or a program configures the log."""
    log = logging.getLogger("interlingua.gateway")
    if os.environ.get("INTERLINGUA_LOG") or log.handlers or logging.getLogger().handlers:
        return
    handler = logging.StreamHandler()
    handler.setFormatter(_LogFormatter("%(asctime)s %(levelname)s %(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False  # the command line prints warnings itself


class _LogFormatter(logging.Formatter):
    """Writes messages of services and callers without the characters that change what a terminal shows."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        return printable(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802
        return "\n".join(map(printable, super().formatException(ei).splitlines()))


class _OneWrite:
    """A transport that writes the head of an answer together with what follows at once: a write is a system call."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop, self._head = transport, loop, b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Write data, with the head that waits for it."""
        if data.startswith(b"HTTP/1.1 ") and not self._head:
            self._head = data
            self._loop.call_soon(self._write_head)
        elif self._head and len(data) <= _JOINED:
            head, self._head = self._head, b""
            self._transport.write(head + data)
        else:
            self._write_head()
            self._transport.write(data)

    def close(self) -> None:
        """Close the connection after what was written."""
        self._write_head()
        self._transport.close()

    def _write_head(self) -> None:
        if self._head:
            head, self._head = self._head, b""
            self._transport.write(head)


class LimitedHttpProtocol(HttpToolsProtocol):
    """uvicorn's protocol with limits on the bytes and the time of a request's head, which uvicorn does not have.

    Args:
        large: the process for large requests; None answers them here.
    """

    _reading_head = True
    _head_bytes = _header_bytes = 0  # received of a head that is not complete; names and values of its headers
    _head_timer: asyncio.TimerHandle | None = None
    _in_message = False
    _is_passed = False

    def __init__(self, *arguments: Any, large: LargeRequests | None = None, **given: Any) -> None:
        super().__init__(*arguments, **given)
        self._large, self._read = large, b""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin with the first head."""
        super().connection_made(_OneWrite(transport, self.loop))  # type: ignore[arg-type]
        self._limit_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the time for the head."""
        self._end_head()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read what has arrived; refuse a head that is too large, and pass a request with a large body."""
        if self._large is not None:
            if not self._in_message:
                self._read = data
            elif self._reading_head and self._read:
                self._read += data
            else:  # of a body
                self._read = b""
        super().data_received(data)
        if self._is_passed and self._large is not None:
            self._large.take(self.transport.get_extra_info("socket").dup(), self._read)
            self.transport.abort()  # the connection is open in the other process
        elif self._reading_head:
            self._head_bytes += len(data)
            if self._head_bytes > _HEAD_BYTES:
                self._refuse(b"431 Request Header Fields Too Large")
            elif self._head_timer is None:  # most heads arrive at once
                self._limit_head()

    def on_message_begin(self) -> None:
        """Begin with the head of the next request."""
        super().on_message_begin()
        self._in_message = self._reading_head = True
        self._head_bytes = self._header_bytes = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header, unless all are too large together."""
        super().on_header(name, value)
        self._header_bytes += len(name) + len(value)
        if self._header_bytes + len(self.url) > _HEAD_BYTES:
            self._refuse(b"431 Request Header Fields Too Large")

    def on_headers_complete(self) -> None:
        """Begin the request."""
        self._end_head()
        if self.transport.is_closing():
            return
        is_first = bool(self._read) and (self.cycle is None or self.cycle.response_complete)
        if self._large is not None and is_first and is_large(self.headers) and self._large.is_ready():
            self._is_passed = True
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Read a part of the body."""
        if not self._is_passed:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Note the end of the request."""
        self._in_message = False
        if not self._is_passed:
            super().on_message_complete()

    def _limit_head(self) -> None:
        self._head_timer = self.loop.call_later(_HEAD_SECONDS, self._refuse, b"408 Request Timeout")

    def _end_head(self) -> None:
        self._reading_head = False
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _refuse(self, status: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(b"HTTP/1.1 " + status + b"\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
            self.transport.close()


class PassedHttpProtocol(LimitedHttpProtocol):
    """The protocol of a connection that another process has accepted, for one request.

    Args:
        read: the bytes that the other process has read.
    """

    def __init__(self, read: bytes, **given: Any) -> None:
        super().__init__(**given)
        self._first = read

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin with what was read."""
        super().connection_made(transport)
        self.data_received(self._first)

    def on_headers_complete(self) -> None:
        """Begin the request, and close the connection after it: the caller's next request is for the first process."""
        super().on_headers_complete()
        if self.cycle is not None:
            self.cycle.keep_alive = False
