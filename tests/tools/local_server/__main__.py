"""`python -m tests.tools.local_server`: print the URL and serve until Ctrl-C."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from .server import MODEL, LocalServer


def main() -> int:
    """Serve until Ctrl-C; the exit status is the server's, or 0 after Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.local_server", description=main.__doc__)
    parser.add_argument("--port", type=int, default=0, help="port to listen on (default: a free one)")
    parser.add_argument("--context", type=int, default=2048, help="context window in tokens")
    parser.add_argument("--api-key", help="answer 401 to any other key")
    parser.add_argument("--cache", action="store_true", help="reuse prompt prefixes (cached tokens, less repeatable)")
    parser.add_argument("--router", action="store_true", help=f"refuse any model name but {MODEL}")
    parser.add_argument("--log", type=Path, help="file for the server's own output")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # leave the block below
    server = LocalServer(
        port=given.port,
        context=given.context,
        api_key=given.api_key,
        cache=given.cache,
        router=given.router,
        log=given.log,
    )
    try:
        with server:
            print(server.url, flush=True)
            return server.wait()
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    raise SystemExit(main())
