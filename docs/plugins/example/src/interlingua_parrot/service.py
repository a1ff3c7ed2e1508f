"""The service: its host, its key, and what its errors mean.

Never sends anything, and puts the key nowhere but into the signer's answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.errors import AuthenticationError, ModelNotFoundError, OverloadedError, ProviderError
from interlingua.json import loads
from interlingua.plugins.wire import (
    Connection,
    ConnectionSettings,
    WireRequest,
    WireResponse,
    error_class_for_status,
    error_for_status,
    no_auth,
    retry_after,
)

API = "talk"
BASE_URL = "https://parrot.example"

_CLASSES: Mapping[str, type[ProviderError]] = {
    "bad_key": AuthenticationError,
    "no_such_bird": ModelNotFoundError,
    "asleep": OverloadedError,
}


def connection(settings: ConnectionSettings) -> Connection:
    """Say how to reach the service."""
    environ = settings.environ
    key = settings.api_key or environ.get("PARROT_API_KEY")
    base = settings.base_url or environ.get("PARROT_BASE_URL") or BASE_URL

    def auth(_request: WireRequest) -> Mapping[str, str]:
        return {"parrot-key": str(key)}

    return Connection(
        base_url=base.rstrip("/"),
        auth=auth if key else no_auth,
        framing="sse",
        env=("PARROT_API_KEY", "PARROT_BASE_URL"),
        has_key=bool(key),
        hosts=("parrot.example",),
        endpoints={API: r"/v2/talk$"},
    )


def from_wire_error(response: WireResponse) -> ProviderError:
    """Turn a failed answer into its typed error; the status alone decides where the body is not the service's."""
    try:
        body = loads(response.body)
    except ValueError:
        body = None
    squawk = squawk_of(body)
    if squawk is None:
        return error_for_status(response)
    return error_of_squawk(squawk, status=response.status, wait=retry_after(response.headers))


def squawk_of(body: Any) -> Mapping[str, Any] | None:
    """Return the error in a body or an event, or None where there is none."""
    squawk = body.get("squawk") if isinstance(body, dict) else None
    return squawk if isinstance(squawk, dict) else None


def error_of_squawk(
    squawk: Mapping[str, Any], *, status: int | None = None, wait: float | None = None
) -> ProviderError:
    """Make the typed error of `{"why": …, "words": …}`; the service's word makes the status more exact."""
    why = str(squawk.get("why"))
    by_status = error_class_for_status(status or 500)
    return _CLASSES.get(why, by_status)(str(squawk.get("words")), status=status, code=why, retry_after=wait)
