"""A server on this machine that answers in bytes as given: whole, late, cut, reset, or without end."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

import attrs

RESET = "reset"
"""A step: break the connection off with a TCP reset; without it a script ends in an orderly close."""

Step = bytes | float | str
Script = Iterable[Step] | Callable[[], Iterable[Step]]


def head(*headers: str, status: str = "200 OK", kind: str = "text/event-stream") -> bytes:
    """Return a status line and headers; without a length, the body ends with the connection."""
    lines = [f"HTTP/1.1 {status}", f"content-type: {kind}", "connection: close", *headers]
    return "\r\n".join([*lines, "", ""]).encode()


@attrs.define
class FaultServer:
    """Where it is, and what it was asked: the bytes of each request."""

    url: str
    requests: list[bytes] = attrs.field(factory=list)


@contextmanager
def faulty(*scripts: Script) -> Iterator[FaultServer]:
    """Run a server for one test; each connection gets the next script, the last one again and again.

    Args:
        scripts: steps, or a function that gives them anew: bytes to send, seconds to wait, or `RESET`.
    """
    listener = socket.create_server(("127.0.0.1", 0), backlog=32)
    server = FaultServer(f"http://127.0.0.1:{listener.getsockname()[1]}")
    left: list[Script] = list(scripts)
    open_connections: list[socket.socket] = []

    def answer(connection: socket.socket, script: Script) -> None:
        with suppress(OSError), connection:
            server.requests.append(_read_request(connection))
            for step in script() if callable(script) else script:
                if isinstance(step, bytes):
                    connection.sendall(step)
                elif isinstance(step, float):
                    time.sleep(step)
                else:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    return
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):  # unread bytes would make the close a reset
                pass

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            open_connections.append(connection)
            script = left.pop(0) if len(left) > 1 else left[0]
            threading.Thread(target=answer, args=(connection, script), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield server
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for connection in open_connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def _read_request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return data
        data += more
    before, _, body = data.partition(b"\r\n\r\n")
    lengths: Sequence[bytes] = [line for line in before.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    left = int(lengths[0].partition(b":")[2]) - len(body) if lengths else 0
    while left > 0:
        more = connection.recv(65536)
        if not more:
            break
        data, left = data + more, left - len(more)
    return data
