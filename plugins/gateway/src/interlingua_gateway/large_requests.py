"""Large requests in a second process: while it parses one of them, the event loop of the first answers the others.

The first process passes the connection, with the bytes that it has read; the second one answers one request on it. A
third one, which has neither threads nor connections, starts the second at the first large request, and again after a
crash.
"""

from __future__ import annotations

import logging
import mmap
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import get_context
from typing import Any

import click

from interlingua_gateway.workers import forget_metrics, fork

LARGE = 1 << 20
"""Bytes of a body from which on its request is for the second process."""
_LAST_SECONDS = 5.0  # seconds that the process has to end, in addition to those of its open answers
_SOON = 60.0  # seconds within which a process that crashes is replaced later each time
_LATEST = 30.0  # most seconds until then
_log = logging.getLogger("interlingua.gateway")


def is_large(headers: Sequence[tuple[bytes, bytes]]) -> bool:
    """Return True if a request has a large body, or one whose size it does not declare."""
    for name, value in headers:
        if name == b"content-length":
            return value.isdigit() and int(value[:20]) >= LARGE
        if name == b"transfer-encoding":
            return True
    return False


class LargeRequests:
    """The second process, as the first one uses it.

    Args:
        channel: the socket over which connections are passed.
        process: the process that starts it.
        waits: its first byte is 1 while a crashed process is not replaced yet; shared with the processes.
        drain: seconds that its open answers have to finish at the end.
    """

    def __init__(self, channel: socket.socket, process: Any, waits: mmap.mmap, drain: float) -> None:
        self._channel, self._process, self._waits, self._drain = channel, process, waits, drain
        self._passing = ThreadPoolExecutor(1, "pass-connection")  # the other process may be slow to read

    def is_ready(self) -> bool:
        """Return False if a request must be answered in this process: the other one crashed too often."""
        if self._channel.fileno() >= 0 and not self._process.is_alive():
            text = "the process that starts the one for large requests ended with %s; they are answered in the first"
            _log.error(text, self._process.exitcode)
            self._channel.close()
        return self._channel.fileno() >= 0 and not self._waits[0]

    def take(self, connection: socket.socket, read: bytes) -> None:
        """Pass a connection.

        Args:
            connection: it is closed here.
            read: the bytes that have been read of it.
        """
        self._passing.submit(self._send, connection, read)

    def _send(self, connection: socket.socket, read: bytes) -> None:
        if sys.platform == "win32":
            raise NotImplementedError  # there is no second process
        with connection:
            out, into = os.pipe()
            try:
                with os.fdopen(into, "wb") as rest:
                    try:
                        socket.send_fds(self._channel, [b"\0"], [connection.fileno(), out])
                    finally:
                        os.close(out)
                    rest.write(read)
            except OSError as error:
                _log.error("a large request was not passed to its process: %s", error)

    def read_config(self) -> None:
        """Have the process read the configuration again."""
        if sys.platform == "win32":
            raise NotImplementedError  # there is no second process
        self._signal(signal.SIGHUP)

    def stop(self) -> None:
        """Have the process finish its answers and end."""
        self._signal(signal.SIGTERM)

    def _signal(self, number: int) -> None:
        if self._process.is_alive():
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, number)

    def close(self) -> None:
        """End the process."""
        self.stop()
        self._passing.shutdown()
        self._channel.close()
        self._process.join(self._drain + _LAST_SECONDS)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


@contextmanager
def large_requests(start: Callable[[socket.socket, bool], None], drain: float) -> Iterator[LargeRequests | None]:
    """Run the second process; None on Windows and macOS. Enter it before there are threads and connections.

    Args:
        start: serves in the second process the connections of a channel, until it is closed; called when the first
            one comes. The flag tells to read the configuration again.
        drain: seconds that open answers have to finish at the end.
    """
    if sys.platform in ("win32", "darwin"):  # Windows cannot fork, and libraries of macOS fail after it
        yield None
        return
    channel, other = socket.socketpair()
    waits = mmap.mmap(-1, 1)
    process = get_context("fork").Process(target=_keep_running, args=(other, channel, waits, start), daemon=True)
    process.start()
    other.close()
    made = LargeRequests(channel, process, waits, drain)
    try:
        yield made
    finally:
        made.close()


def _keep_running(
    channel: socket.socket, other: socket.socket, waits: mmap.mmap, start: Callable[[socket.socket, bool], None]
) -> None:
    """Run the second process from the first large request on; after a crash, from the next one on.

    Connections that it has not taken wait in the channel for the process that replaces it.
    """
    if sys.platform == "win32":
        raise NotImplementedError  # there is no second process
    other.close()  # so that the end of the first process is the end of the channel
    child, stopping, changed, delay = 0, False, False, 0.0

    def forward(number: int, _frame: Any) -> None:
        nonlocal stopping, changed
        stopping, changed = stopping or number == signal.SIGTERM, changed or number == signal.SIGHUP
        if child:
            os.kill(child, number)
        elif stopping:
            sys.exit()

    def note(process: int) -> None:
        nonlocal child
        child = process

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process ends this one
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, forward)
    while channel.recv(1, socket.MSG_PEEK):
        started = time.monotonic()
        process = fork(partial(start, channel, changed), note)
        status = os.waitpid(process, 0)[1]
        child = 0
        forget_metrics(process)
        if stopping:
            return
        if code := os.waitstatus_to_exitcode(status):
            delay = min(2 * delay or 1.0, _LATEST) if time.monotonic() - started < _SOON else 0.0
            when = f" in {delay:g} s; until then, they are answered in the first process" if delay else ""
            click.echo(f"the process for large requests ended with {code} and is replaced{when}", err=True)
            waits[0] = 1
            time.sleep(delay)
            waits[0] = 0


def received(channel: socket.socket) -> Iterator[tuple[socket.socket, bytes]]:
    """Yield the connections that the first process passes, with the bytes that it has read, until it ends."""
    if sys.platform == "win32":
        raise NotImplementedError  # there is no second process
    while True:
        head, descriptors, _flags, _address = socket.recv_fds(channel, 1, 2)
        if not head:
            return
        connection, rest = descriptors
        with os.fdopen(rest, "rb") as read:
            yield socket.socket(fileno=connection), read.read()
