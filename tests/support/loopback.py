"""An HTTP server on this machine for one test: a function answers each request."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = Callable[[BaseHTTPRequestHandler, bytes], None]


def send_bytes(handler: BaseHTTPRequestHandler, status: int, kind: str, data: bytes, **headers: str) -> None:
    """Send a whole answer."""
    handler.send_response(status)
    for name, value in {"content-type": kind, "content-length": str(len(data)), **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(data)


class _Server(ThreadingHTTPServer):
    request_queue_size = 64


@contextmanager
def loopback(answer: Answer) -> Iterator[str]:
    """Serve on a free port; yield the URL.

    Args:
        answer: takes the handler of a GET or POST request and the request's body, and writes the response.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            answer(self, self.rfile.read(int(self.headers.get("content-length", 0))))

        def log_message(self, *_arguments: object) -> None:
            pass

    server = _Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
