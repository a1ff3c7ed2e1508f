"""What the answers of both transports share: their heads, and breaking off from outside.

Never reads a body.
The two transports come in.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from inspect import iscoroutinefunction
from typing import Any

from interlingua.errors import CallerError
from interlingua.transport.timeout import Limits

# a client whose timeouts are all httpx's default was given none: five seconds would cut most answers off
_LIBRARY_DEFAULT = {5.0}
_LF = b"\n"


def own_limits(http_client: Any) -> bool:
    """True when the user's HTTP client has time limits that somebody chose."""
    timeout = getattr(http_client, "timeout", None)
    return timeout is not None and hasattr(timeout, "as_dict") and set(timeout.as_dict().values()) != _LIBRARY_DEFAULT


def url_type(http_client: Any) -> Any:
    """Return the URL class of an HTTP client, which it takes without reading the text again."""
    return type(getattr(http_client, "base_url", ""))


def check_kind(http_client: Any, *, blocking: bool) -> None:
    """Look at an HTTP client that a caller gave.

    Raises:
        CallerError: it is none, or one of the other kind.
    """
    send = getattr(http_client, "send", None)
    if not callable(send) or not hasattr(http_client, "build_request"):
        raise CallerError("http_client= takes an httpx client, or one that is made like it")
    if blocking and iscoroutinefunction(send):
        raise CallerError("Client takes a blocking HTTP client, such as httpx.Client; AsyncClient takes this one")
    if not blocking and isinstance(http_client, AbstractContextManager) and not iscoroutinefunction(send):
        raise CallerError(
            "AsyncClient takes an asynchronous HTTP client such as httpx.AsyncClient; Client takes this one"
        )


def _decoded(pairs: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    """Decode all headers at once, for the library's mapping decodes them all again for each name; none has a LF."""
    if not pairs:
        return {}
    names, values = (_LF.join(part).decode("latin-1") for part in zip(*pairs, strict=True))
    return dict(zip(names.lower().split("\n"), values.split("\n"), strict=True))


class Head:
    """Status and headers of an answer whose body has yet to be read."""

    def __init__(self, response: Any, limits: Limits) -> None:
        self._response = response
        self._limits = limits
        self.status: int = response.status_code
        self.headers = _decoded(response.headers.raw)

    @property
    def plain_stream(self) -> Any:
        """The body's own stream where nothing has to be unpacked: one layer less per chunk than `iter_raw`, or None."""
        return None if "content-encoding" in self.headers else getattr(self._response, "stream", None)

    def begin(self) -> None:
        """Let the limits of the body take over from those of the headers; the body reads them when it begins."""
        limit = self._limits.for_body()
        if limit is not None:
            timeouts = self._response.request.extensions.get("timeout")
            if timeouts is not None:
                timeouts["read"] = limit

    def break_off(self) -> None:
        """Wake a read that waits in another thread or task: the connection is shut, where it is ours alone."""
        extensions = self._response.extensions
        if extensions.get("http_version") not in (b"HTTP/1.1", b"HTTP/1.0"):
            return
        stream = extensions.get("network_stream")
        raw = stream.get_extra_info("socket") if stream is not None else None
        if raw is not None:
            with suppress(OSError):
                raw.shutdown(socket.SHUT_RDWR)
