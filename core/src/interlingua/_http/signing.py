"""One HTTP request from a wire request: headers of all sources, auth, signature, and the secret behind them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from interlingua.errors import AuthenticationError, InterlinguaError, ProviderError
from interlingua.transport import HttpRequest, unsendable

if TYPE_CHECKING:
    from interlingua._http.transports import IO
    from interlingua._plugins.connection import Connection, Credentials
    from interlingua._plugins.wire import WireRequest

_log = logging.getLogger("interlingua")
_MARGIN = timedelta(minutes=1)  # a secret that expires within this time is replaced


def sign_request(
    connection: Connection, request: WireRequest, headers: Mapping[str, str], secret: Any = None
) -> HttpRequest:
    """Return the HTTP request, with auth and signature.

    Later sources of a header win: connection, wire, caller, auth, signature. Headers of `list_headers` add up.
    """
    try:
        merged = {"content-type": "application/json"}
        for source in (connection.headers, request.headers, headers, connection.auth(request)):
            for name, value in source.items():
                lower = name.lower()
                merged[lower] = _joined(merged.get(lower), value) if lower in connection.list_headers else value
        url = connection.base_url + request.path if connection.url is None else connection.url(request)
        made = HttpRequest(request.method, url, merged, request.body, datetime.now(UTC))
        if connection.sign is not None:
            made = made._replace(url=_encode(url))
            merged.update({name.lower(): value for name, value in connection.sign(made, secret).items()})
    except InterlinguaError:
        raise
    except Exception as error:
        raise secret_failure("signing the request", error) from None
    if _log.isEnabledFor(logging.DEBUG):
        place = made.url.partition("?")[0]  # a query may hold a key
        _log.debug("%s %s, %d bytes", made.method, place, len(made.body))
    return made


def secret_failure(what: str, error: Exception) -> AuthenticationError:
    """Return the error for code that holds a secret, without the cause's text, which may contain the secret."""
    return AuthenticationError(f"{what} failed with {type(error).__name__}", retryable=False)


def no_key(connection: Connection, provider: str) -> AuthenticationError:
    """Return the error for a connection without the key it needs, with the variables that may hold one."""
    names = [name for name in connection.env_vars if "KEY" in name or "TOKEN" in name] or connection.env_vars
    where = " or ".join(names) or "the environment"
    return AuthenticationError(f"no API key: set {where} or pass api_key=", provider=provider, retryable=False)


def _encode(url: str) -> str:
    """Return an address as it is sent, because that is what must be signed."""
    from httpx import URL, InvalidURL  # noqa: PLC0415  few connections sign

    try:
        return str(URL(url))
    except InvalidURL as error:
        raise unsendable(url, error) from None


def _joined(known: str | None, more: str) -> str:
    """Join comma-separated lists, each item once, without spaces."""
    items = [item.strip() for item in f"{known or ''},{more}".split(",")]
    return ",".join(dict.fromkeys(item for item in items if item))


class SecretStore:
    """Keeps the secret of one provider for all exchanges of a client; safe for several threads and event loops."""

    def __init__(self, provider: str, source: Credentials) -> None:
        self._lock_name = f"secret of {provider}"
        self._source = source
        self._secret: Any = None
        self._refusal: ProviderError | None = None

    def refuse(self, secret: Any, refusal: ProviderError) -> None:
        """Note that the service refused a secret: the next `read` obtains another, and the source sees the error."""
        if secret is self._secret:
            self._secret, self._refusal = None, refusal

    async def read(self, io: IO) -> Any:
        """Return the secret; if there is none, or it expires soon, one caller obtains it and the others wait."""
        secret = self._secret
        if _is_stale(secret):
            async with io.lock(self._lock_name):
                secret = self._secret
                if _is_stale(secret):
                    secret = self._secret = await self._obtain(io)
                    self._refusal = None
        return secret

    async def _obtain(self, io: IO) -> Any:
        try:
            made = await io.call(self._source, self._refusal)
        except InterlinguaError:
            raise
        except Exception as error:
            raise secret_failure("obtaining the credentials", error) from None
        if made is None:
            raise AuthenticationError("the credentials returned no secret", retryable=False)
        return made


def _is_stale(secret: Any) -> bool:
    expires = getattr(secret, "expires_at", None)
    return secret is None or (expires is not None and expires - datetime.now(UTC) < _MARGIN)
