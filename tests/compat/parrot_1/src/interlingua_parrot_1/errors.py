"""Turn a failed answer, or an error inside a stream, into a typed error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.errors import AuthenticationError, ModelNotFoundError, OverloadedError, ProviderError
from interlingua.plugins import WireResponse, error_class_for_status, error_for_status, loads, retry_after

_BY_CODE: Mapping[str, type[ProviderError]] = {
    "bad_key": AuthenticationError,
    "no_such_bird": ModelNotFoundError,
    "asleep": OverloadedError,
}


def from_wire_error(response: WireResponse) -> ProviderError:
    """Return the typed error of a failed answer; if the body holds no squawk, the status alone decides."""
    try:
        body = loads(response.body)
    except ValueError:
        body = None
    squawk = find_squawk(body)
    if squawk is None:
        return error_for_status(response)
    return error_from_squawk(squawk, status=response.status, wait=retry_after(response.headers))


def find_squawk(body: Any) -> Mapping[str, Any] | None:
    """Return the error in a body or an event, or None."""
    squawk = body.get("squawk") if isinstance(body, dict) else None
    return squawk if isinstance(squawk, dict) else None


def error_from_squawk(
    squawk: Mapping[str, Any], *, status: int | None = None, wait: float | None = None
) -> ProviderError:
    """Return the typed error of `{"why": …, "words": …}`; a known code is more exact than the status."""
    code = str(squawk.get("why"))
    by_status = error_class_for_status(status or 500)
    return _BY_CODE.get(code, by_status)(str(squawk.get("words")), status=status, code=code, retry_after=wait)
