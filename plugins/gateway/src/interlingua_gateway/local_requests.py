"""Refuse requests of web pages if no key protects the gateway.

A page of any site can make a browser send requests to this machine. They have the page's `Origin`, or a `Host` that
resolves to this machine (DNS rebinding), or a content type that browsers send without asking first.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from interlingua.errors import CallerError, PermissionDeniedError
from interlingua_gateway.config import GatewayConfig

_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^:\[\]@/]+))(?::\d*)?")


class MediaTypeError(CallerError):
    """A body that is not declared as JSON: status 415."""


def check_local_request(scope: Mapping[str, Any], config: GatewayConfig) -> None:
    """Let a request pass if it needs a key, or if it is of a program of this machine.

    Args:
        scope: the ASGI scope of the request.
        config: the gateway's settings.

    Raises:
        PermissionDeniedError: the `Host` is not this machine, or the `Origin` is not allowed.
        MediaTypeError: the body is not declared as JSON.
    """
    if config.auth != "none":
        return
    kind = ""
    for header, data in scope["headers"]:  # each value of a repeated header
        value = data.decode("latin-1")
        if header == b"host" and not is_loopback(name := _host_name(value)) and name not in config.hosts:
            raise PermissionDeniedError(f"the Host {value!a} is not this machine; the gateway's hosts may allow it")
        if header == b"origin" and value not in config.origins:
            raise PermissionDeniedError(f"the Origin {value!a} is not allowed; the gateway's origins may list it")
        if header == b"content-type":
            kind = value.partition(";")[0].strip().lower()
    if scope["method"] == "POST" and kind != "application/json" and not kind.endswith("+json"):
        raise MediaTypeError("the content-type must be application/json")


@lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Return True for `localhost`, names below it, and loopback addresses."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _host_name(host: str) -> str:
    """Return the name or address in a `Host` header, without the port; "" if it has another form."""
    found = _HOST.fullmatch(host.lower())
    return (found[1] or found[2]) if found else ""
