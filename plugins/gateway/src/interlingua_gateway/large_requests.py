"""Large requests in a second process: while it parses one of them, the event loop of the first answers the others.

The first process passes the connection, with the bytes that it has read; the second one answers one request on it.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from typing import Any

LARGE = 1 << 20
"""Bytes of a body from which on its request is for the second process."""
_SIZE = 4  # bytes of the number before what has been read of a connection
_LAST_SECONDS = 5.0  # seconds that the process has to end, in addition to those of its open answers
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
        process: the process.
        drain: seconds that its open answers have to finish at the end.
    """

    def __init__(self, channel: socket.socket, process: Any, drain: float) -> None:
        self._channel, self._process, self._drain = channel, process, drain
        self._passing = ThreadPoolExecutor(1, "pass-connection")  # the other process may be slow to read

    def is_ready(self) -> bool:
        """Return False if the process has crashed: its requests are answered in this one until a restart."""
        if self._channel.fileno() >= 0 and not self._process.is_alive():
            code = self._process.exitcode
            _log.error("the process for large requests ended with %s; they are answered in the first one now", code)
            self._channel.close()
        return self._channel.fileno() >= 0

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
            try:
                socket.send_fds(self._channel, [len(read).to_bytes(_SIZE)], [connection.fileno()])
                self._channel.sendall(read)
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
        self._passing.shutdown()
        self._channel.close()
        self.stop()
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
    process = get_context("fork").Process(target=_wait, args=(other, channel, start), daemon=True)
    process.start()
    other.close()
    made = LargeRequests(channel, process, drain)
    try:
        yield made
    finally:
        made.close()


def _wait(channel: socket.socket, other: socket.socket, start: Callable[[socket.socket, bool], None]) -> None:
    """Serve from the first large request on."""
    if sys.platform == "win32":
        raise NotImplementedError  # there is no second process
    other.close()  # so that the end of the first process is the end of the channel
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    changed: list[int] = []
    signal.signal(signal.SIGHUP, lambda number, _frame: changed.append(number))
    if channel.recv(1, socket.MSG_PEEK):
        start(channel, bool(changed))


def received(channel: socket.socket) -> Iterator[tuple[socket.socket, bytes]]:
    """Yield the connections that the first process passes, with the bytes that it has read, until it ends."""
    if sys.platform == "win32":
        raise NotImplementedError  # there is no second process
    while True:
        head, descriptors, _flags, _address = socket.recv_fds(channel, _SIZE, 1)
        if not head or not descriptors:
            return
        size = int.from_bytes(head)
        read = bytearray()
        while len(read) < size and (part := channel.recv(size - len(read))):
            read += part
        yield socket.socket(fileno=descriptors[0]), bytes(read)
