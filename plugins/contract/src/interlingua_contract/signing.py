"""The secret headers of a request, signed at a fixed time and without the network."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from datetime import UTC, datetime
from inspect import isawaitable
from typing import Any

from interlingua.plugins import Connection, HttpRequest, WireRequest
from interlingua_contract.guard import NetworkUsed

CLOCK = datetime(2026, 11, 21, tzinfo=UTC)
"""The time at which requests are signed here."""


def read_credentials(made: Connection) -> Any:
    """Return the secret that `sign` needs; None without one, and if it is exchanged at the service.

    `credentials` may ask the service for it, and no one answers here.
    """
    if made.sign is None or made.credentials is None:
        return None
    try:
        secret = made.credentials(None)
        return asyncio.run(_wait_for(secret)) if isawaitable(secret) else secret
    except Exception as error:
        if _asked_the_network(error):
            return None
        raise


def secret_headers(made: Connection, request: WireRequest, secret: Any) -> dict[str, str] | None:
    """Return the secret headers of a request at a fixed time; a signature shows no key, and changes with it.

    None if `sign` needs a secret that is not known here. A key that is exchanged is secret in the request that does so.
    """
    headers = dict(made.auth(request))
    if made.sign is None:
        return headers
    if secret is None and made.key_exchange is not None:
        asked = made.key_exchange.request(CLOCK)
        return {**headers, **asked.headers, "body": asked.body.decode()}
    if secret is None and made.credentials is not None:
        return None
    url = made.base_url + request.path if made.url is None else made.url(request)
    outgoing = HttpRequest(request.method, url, dict(request.headers), request.body, CLOCK)
    return headers | dict(made.sign(outgoing, secret))


def _asked_the_network(error: BaseException | None) -> bool:
    """Return True if an error, or one that led to it, is the closed network's."""
    while error is not None:
        if isinstance(error, NetworkUsed):
            return True
        error = error.__cause__ or error.__context__
    return False


async def _wait_for(secret: Awaitable[Any]) -> Any:
    return await secret
