"""A request ready to leave: the adapter's bytes, the connection's URL, and the auth headers, added here and only here.

Never logs a header's value and never changes the body.
The transports and the client may come in.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from interlingua.errors import Authentication

if TYPE_CHECKING:  # a client is made without them
    from interlingua.wire import Connection, WireRequest

_log = logging.getLogger("interlingua")


class Outgoing(NamedTuple):
    """One HTTP request. `headers` hold secrets: the representation leaves them out."""

    method: str
    url: str
    headers: dict[str, str]
    body: bytes

    def __repr__(self) -> str:
        return f"<Outgoing {self.method} {self.url}, {len(self.body)} bytes>"


def outgoing(connection: Connection, request: WireRequest, headers: Mapping[str, str]) -> Outgoing:
    """Make the HTTP request; later sources of a header win: connection, wire, caller, auth. Lists add up.

    Args:
        connection: where to, and the signer.
        request: what; a signer sees it as it is.
        headers: the caller's own.
    """
    merged = {"content-type": "application/json"}
    for source in (connection.headers, request.headers, headers, connection.auth(request)):
        for name, value in source.items():
            lower = name.lower()
            merged[lower] = _joined(merged.get(lower), value) if lower in connection.joined else value
    made = Outgoing(request.method, connection.base_url + request.path, merged, request.body)
    if _log.isEnabledFor(logging.DEBUG):
        path = request.path.partition("?")[0]  # a query may hold a key
        _log.debug("%s %s%s, %d bytes", made.method, connection.base_url, path, len(made.body))
    return made


def no_key(connection: Connection, provider: str) -> Authentication:
    """Return the error of a connection without the key it needs: it names the variables that hold one."""
    names = [name for name in connection.env if "KEY" in name or "TOKEN" in name] or connection.env
    where = " or ".join(names) or "the environment"
    return Authentication(f"no key: set {where}, or give api_key=", provider=provider, retryable=False)


def _joined(known: str | None, more: str) -> str:
    """Join comma-separated lists, each item once, without spaces."""
    items = [item.strip() for item in f"{known or ''},{more}".split(",")]
    return ",".join(dict.fromkeys(item for item in items if item))
