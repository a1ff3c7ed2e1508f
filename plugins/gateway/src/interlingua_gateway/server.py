"""Serve the application on a port: heads of requests with limits, a clean end, and another configuration on SIGHUP."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

import click
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from interlingua.errors import CallerError
from interlingua_gateway.services import NO_FULL_COLLECTION

_HEAD_BYTES = 64 * 1024  # most bytes of a request's line and headers
_HEAD_SECONDS = 15.0  # most seconds for them
_SWITCH = 0.0005  # seconds after which a thread with a large request lets the event loop run, several times a request


def open_listener(host: str, port: int) -> socket.socket:
    """Listen on an address, and print it.

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
    name = f"[{host}]" if ":" in host else host
    click.echo(f"serving on http://{name}:{listener.getsockname()[1]}; stop with Ctrl-C", err=True)
    return listener


def serve(app: Any, listener: socket.socket, *, drain: float, reload: Callable[[], None] | None = None) -> None:
    """Serve until SIGINT or SIGTERM, and write the gateway's log to stderr.

    Args:
        app: an ASGI application.
        listener: the socket on which connections arrive.
        drain: seconds that open answers have to finish at the end.
        reload: is called on SIGHUP, if the system has it.
    """
    _show_log()
    signal.signal(signal.SIGTERM, lambda *_: None)  # uvicorn stops cleanly, then raises it again: exit 143
    if reload is not None and hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, lambda *_: reload())
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, ws="none", http=LimitedHttpProtocol,
        timeout_graceful_shutdown=round(drain),
    )  # fmt: skip
    gc.collect()
    gc.freeze()  # the garbage collector need not search what is loaded: that takes 0.1 s, in which no request proceeds
    gc.set_threshold(*gc.get_threshold()[:2], NO_FULL_COLLECTION)  # `Services.keep_up` makes full ones
    sys.setswitchinterval(_SWITCH)
    uvicorn.Server(config).run(sockets=[listener])


def _show_log() -> None:
    """Write the gateway's log to stderr from INFO on, unless INTERLINGUA_LOG or a program configures the log."""
    log = logging.getLogger("interlingua.gateway")
    if os.environ.get("INTERLINGUA_LOG") or log.handlers or logging.getLogger().handlers:
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False  # the command line prints warnings itself


class LimitedHttpProtocol(HttpToolsProtocol):
    """uvicorn's protocol with limits on the bytes and the time of a request's head, which uvicorn does not have."""

    _reading_head = True
    _head_bytes = 0
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin with the first head."""
        super().connection_made(transport)
        self._start_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the time for the head."""
        self._end_head()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read what has arrived; refuse a head that is too large."""
        super().data_received(data)
        if self._reading_head:
            self._head_bytes += len(data)
            if self._head_bytes > _HEAD_BYTES:
                self._refuse(b"431 Request Header Fields Too Large")

    def on_message_begin(self) -> None:
        """Begin with the head of the next request."""
        super().on_message_begin()
        self._start_head()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header, unless all are too large together."""
        super().on_header(name, value)
        if sum(len(name) + len(value) for name, value in self.headers) + len(self.url) > _HEAD_BYTES:
            self._refuse(b"431 Request Header Fields Too Large")

    def on_headers_complete(self) -> None:
        """Go on with the request."""
        self._end_head()
        if not self.transport.is_closing():
            super().on_headers_complete()

    def _start_head(self) -> None:
        self._end_head()
        self._reading_head, self._head_bytes = True, 0
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
