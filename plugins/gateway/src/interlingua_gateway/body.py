"""Read the body of a request within limits, write that of an answer, and notice a caller who leaves."""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, TypeAlias

from interlingua.errors import CallerError

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
FINISH = 60.0
"""Most seconds for an answer whose caller has left, until what it costs is known."""
_BODY_PAUSE = 60.0  # most seconds between two parts of a body
_PIECE = 1 << 16  # bytes of a body that are searched at once: other threads run in between
_WRITTEN = 1 << 20  # most bytes of an answer that are written at once: the transport copies them
_NO_BACKSLASH = re.compile(rb"[^\\]")


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
    body = io.BytesIO()  # its value is not a copy, which would hold up the event loop
    while True:
        try:
            async with asyncio.timeout(_BODY_PAUSE):
                event = await receive()
        except TimeoutError:
            raise CallerError(f"no part of the body arrived for {_BODY_PAUSE:g} seconds") from None
        if event["type"] == "http.disconnect":
            raise CallerError("the caller closed the connection")
        body.write(event.get("body", b""))
        if body.tell() > limit:
            raise BodyTooLargeError(f"the body has more than {limit} bytes, the limit of this gateway")
        if not event.get("more_body"):
            return body.getvalue()


async def write_body(send: Send, data: bytes, *, more: bool = False) -> None:
    """Write the body of an answer, or a part of it.

    Args:
        send: the ASGI function.
        data: what is written.
        more: True if another part follows.
    """
    for at in range(0, len(data) or 1, _WRITTEN):
        part, rest = data[at : at + _WRITTEN], at + _WRITTEN < len(data)
        await send({"type": "http.response.body", "body": part, "more_body": more or rest})


async def wait_until_gone(receive: Receive) -> None:
    """Wait until the caller has left; the body must have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass


def check_values(body: bytes, limit: int) -> None:
    """Refuse JSON of very many values: each takes the memory and the time of a hundred bytes of text.

    Args:
        body: a body, which should be JSON.
        limit: most members of all objects and items of all arrays.

    Raises:
        BodyTooLargeError: the body has more.
    """
    signs = b",", b"[", b"{"
    if sum(map(body.count, signs)) <= limit:  # those in strings, too
        return
    count, inside, at = 0, 0, 0  # `inside` is 1 within a string
    while at < len(body):
        found = _NO_BACKSLASH.search(body, at + _PIECE)
        end = len(body) if found is None else found.end()  # it does not divide an escape
        parts = body[at:end].replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        outside = b"".join(parts[inside::2])
        count += sum(map(outside.count, signs))
        if count > limit:
            raise BodyTooLargeError(f"a request may have {limit} values here: members of objects and items of arrays")
        inside ^= len(parts) - 1 & 1
        at = end
