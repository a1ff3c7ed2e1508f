"""Fetch images by URL, for services that take images but no URLs."""

from __future__ import annotations

from datetime import UTC, datetime

from interlingua._http.body import ACCEPTED, ReplyBody
from interlingua._http.io import IO
from interlingua._request.media import SIZE_LIMIT, Fetched
from interlingua._response.finalize import FAILED
from interlingua.errors import CallerError
from interlingua.transport import HttpRequest, TimeLimits, Timeout


async def fetch_image(url: str, io: IO, timeout: Timeout | None, max_bytes: int) -> Fetched:
    """Return the bytes of an image and the media type that its server claims.

    Raises:
        CallerError: the server refuses it, or it is too large.
        APIConnectionError: it cannot be reached.
    """
    limits = TimeLimits(timeout)
    request = HttpRequest("GET", url, {"accept-encoding": ACCEPTED}, b"", datetime.now(UTC))
    response = await ReplyBody(await io.open(request, limits), limits, max_bytes).read()
    if response.status >= FAILED:
        raise CallerError(f"the image {url} cannot be fetched: HTTP {response.status}")
    if len(response.body) > SIZE_LIMIT:
        raise CallerError(f"the image {url} is larger than {SIZE_LIMIT} bytes")
    return Fetched(response.body, response.headers.get("content-type", "").partition(";")[0])
