"""Read the body of a request within limits of size and time."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, TypeAlias

from interlingua.errors import CallerError

Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
_BODY_PAUSE = 60.0  # most seconds between two parts of a body


class BodyTooLargeError(CallerError):
    """A request above a limit of the gateway: status 413."""


async def read_body(receive: Receive, headers: Mapping[str, str], limit: int) -> bytes:
    """Read the body of a request.

    Args:
        receive: the ASGI function.
        headers: the request's headers.
        limit: most bytes of the body.

    Raises:
        BodyTooLargeError: the body has more bytes.
        CallerError: no part of it arrived for a minute, or the caller closed the connection.
    """
    text = headers.get("content-length", "0")
    if text.isdecimal() and int(text) > limit:
        raise BodyTooLargeError(f"the body has {text} bytes; the limit of this gateway is {limit}")
    body = io.BytesIO()  # its value is no copy, which would hold up the event loop
    while True:
        try:
            event = await asyncio.wait_for(receive(), _BODY_PAUSE)
        except TimeoutError:
            raise CallerError(f"no part of the body arrived for {_BODY_PAUSE:g} seconds") from None
        if event["type"] == "http.disconnect":
            raise CallerError("the caller closed the connection")
        body.write(event.get("body", b""))
        if body.tell() > limit:
            raise BodyTooLargeError(f"the body has more than {limit} bytes, the limit of this gateway")
        if not event.get("more_body"):
            return body.getvalue()
