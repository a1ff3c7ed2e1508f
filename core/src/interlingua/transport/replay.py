"""An HTTP client that answers from memory: for demonstrations and tests that must not reach a network.

Never opens a socket.
The command line's demo and applications' tests come in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class Recorded(NamedTuple):
    """One answer: status, headers, whole body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def replaying_client(answer: Callable[[str, str, bytes], Recorded]) -> Any:
    """Return an httpx client whose every request is answered by `answer(method, path, body)`."""
    import httpx  # noqa: PLC0415  loaded when a client is made, as in the transports

    def handle(request: Any) -> Any:
        recorded = answer(request.method, request.url.path, request.read())
        return httpx.Response(recorded.status, headers=dict(recorded.headers), content=recorded.body)

    return httpx.Client(transport=httpx.MockTransport(handle))
