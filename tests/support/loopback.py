"""HTTP servers on this machine that run for a `with` block; in `loopback` a function answers each request."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Answer = Callable[[BaseHTTPRequestHandler, bytes], None]


def send_bytes(handler: BaseHTTPRequestHandler, status: int, kind: str, data: bytes, **headers: str) -> None:
    """Send a whole answer."""
    handler.send_response(status)
    for name, value in {"content-type": kind, "content-length": str(len(data)), **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(data)


class LoopbackHandler(BaseHTTPRequestHandler):
    """A handler that logs nothing."""

    def read_body(self) -> bytes:
        """Read the body of the request; without a length it is empty."""
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def log_message(self, *_arguments: object) -> None:
        """Log nothing."""


class LoopbackServer(ThreadingHTTPServer):
    """A server on a free port, which runs in a thread until its `with` block ends.

    Attributes:
        url: its address, without a path.
    """

    request_queue_size = 64

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_arguments: object) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print the error, unless the client broke the connection off."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def loopback(answer: Answer) -> Iterator[str]:
    """Serve on a free port; yield the URL.

    Args:
        answer: takes the handler of a GET or POST request and the request's body, and writes the response.
    """

    class Handler(LoopbackHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            answer(self, self.read_body())

    with LoopbackServer(Handler) as server:
        yield server.url
