"""Errors as callers see them: in their API, without addresses of the services, and without the gateway's own keys."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

import attrs

from interlingua.errors import AuthenticationError, InterlinguaError, PermissionDeniedError, ServerError
from interlingua.plugins import WireResponse
from interlingua_gateway.body import BodyTooLargeError
from interlingua_gateway.kept import AnswerNotFoundError
from interlingua_gateway.local_requests import MediaTypeError
from interlingua_gateway.models import RoutedModel
from interlingua_gateway.services import Services
from interlingua_serving import ServeContext, ServedRoute, ServingPlugin

_ADDRESS = re.compile(
    r"""\b\w+://[^\s"'<>)\]]+"""  # a URL
    r"""|(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?(?![\w.])"""  # an IPv4 address
    r"""|\[[0-9a-fA-F:.]*:[0-9a-fA-F:.]*\](?::\d+)?"""  # an IPv6 address
    r"""|(?P<bare>(?<![\w:.])[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){2,7}(?:\.\d{1,3}){0,3}(?![\w:]))"""  # bare
    r"""|(?<![\w.-])(?:localhost|[\w-]+(?:\.[\w-]+)*\.(?:internal|local|lan|svc|cluster|corp|home\.arpa))(?::\d+)?(?![\w.-])"""
)
_INTERNAL = re.compile(r"[^.]*|[\d.:]+|.*\.(internal|local|lan|svc|corp|home\.arpa)", re.IGNORECASE)


class UpstreamKeyError(ServerError):
    """The gateway's key for a model's service is missing or rejected: status 503; a retry does not help."""


_STATUSES: dict[type[InterlinguaError], int] = {BodyTooLargeError: 413, MediaTypeError: 415, UpstreamKeyError: 503}


def write_error(
    plugin: ServingPlugin, error: InterlinguaError, context: ServeContext, route: ServedRoute
) -> WireResponse:
    """Write an error in the caller's API, with the id of its request, and when a client may try again.

    Args:
        plugin: the serving plugin of the API.
        error: the error, without addresses.
        context: the context of the request.
        route: its path.
    """
    response = plugin.to_wire_error(error, context)
    status = next((status for kind, status in _STATUSES.items() if isinstance(error, kind)), response.status)
    if isinstance(error, AnswerNotFoundError) and route.kind != "send":
        status = 404
    headers = {**response.headers, "x-interlingua-request-id": context.answer_id}
    headers["content-length"] = str(len(response.body))
    if isinstance(error, UpstreamKeyError):
        headers["x-should-retry"] = "false"  # some SDKs read it
    if (seconds := getattr(error, "retry_after", None)) is not None:
        headers["retry-after"] = str(max(1, round(seconds)))
    return attrs.evolve(response, status=status, headers=headers)


def error_for_caller(error: InterlinguaError, services: Services, request: str, model: RoutedModel) -> InterlinguaError:
    """Return an error for the caller; a missing or rejected key of the gateway is not the caller's error.

    Args:
        error: the failure of a request to a model.
        services: the gateway's services.
        request: the id of the request, for the log.
        model: the model that was asked.
    """
    if not isinstance(error, AuthenticationError | PermissionDeniedError):
        return error
    text = "the service of this model rejected the gateway's key"
    if error.provider and (names := services.missing_key(error.provider, model.deployment)):
        text = f"the gateway has no key for {error.provider}"
        if services.config.auth == "none":  # callers and operators are the same people
            text += f": set {names} in the gateway's environment"
    services.log.warning("request %s: %s", request, text)
    failure = UpstreamKeyError(text, provider=error.provider, status=503)
    failure.partial = error.partial
    return failure


def hide_addresses(error: InterlinguaError, service: str | None) -> InterlinguaError:
    """Remove addresses of machines from an error's message, and return the error.

    URLs on public hosts, such as pages of documentation, stay; those of the model's own service go.

    Args:
        error: the error.
        service: the URL of the model's service; None if no model was asked.
    """
    own = urlsplit(service).hostname if service else None

    def shown(match: re.Match[str]) -> str:
        text = match[0]
        if match["bare"]:
            return "(address)" if _is_address(text) else text
        if "://" not in text:
            return "(address)"
        try:
            host = urlsplit(text).hostname or ""
        except ValueError:
            return "(address)"
        return "(address)" if host == own or _INTERNAL.fullmatch(host) else text

    error.message = _ADDRESS.sub(shown, error.message)
    return error


def _is_address(text: str) -> bool:
    """Return False for what only resembles an IPv6 address, such as a time."""
    try:
        return ipaddress.ip_address(text).compressed != "::"
    except ValueError:
        return False
