"""Refuse requests of web pages if no key protects the gateway.

A page of any site can make a browser send requests to this machine. They have the page's `Origin`, or a `Host` that
resolves to this machine (DNS rebinding), or a content type that browsers send without asking first.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from interlingua.errors import CallerError, PermissionDeniedError
from interlingua_gateway.config import GatewayConfig


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
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    host = headers.get("host")
    if host is not None and not is_loopback(name := _host_name(host)) and name not in config.hosts:
        raise PermissionDeniedError(f"the Host {host!a} is not this machine; the gateway's hosts may allow it")
    origin = headers.get("origin")
    if origin is not None and origin not in config.origins:
        raise PermissionDeniedError(f"the Origin {origin!a} is not allowed; the gateway's origins may list it")
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if scope["method"] == "POST" and kind != "application/json" and not kind.endswith("+json"):
        raise MediaTypeError("the content-type must be application/json")


def is_loopback(host: str) -> bool:
    """Return True for `localhost`, names below it, and loopback addresses."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _host_name(host: str) -> str:
    """Return the name or address in a `Host` header, without the port."""
    return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0].lower()
