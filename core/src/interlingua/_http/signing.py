"""Requests that are signed with the secret of a connection, and the attempts to get one answered."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, TypeVar

from interlingua._http.body import ACCEPTED
from interlingua._http.state import ClientState, secret_failure
from interlingua._http.transports import IO
from interlingua._plugins.connection import Connection, HttpRequest
from interlingua._plugins.provider import Provider
from interlingua._plugins.wire import WireRequest
from interlingua.errors import AuthenticationError, InterlinguaError
from interlingua.transport import TimeLimits, unsendable

_log = logging.getLogger("interlingua")
_T = TypeVar("_T")


class SignedExchange:
    """Attempts that are signed with the connection's secret; a secret that was refused is replaced once."""

    _state: ClientState
    _provider: Provider
    _api: str | None = None
    _limits: TimeLimits
    _secret: Any = None
    _replaced = False

    @cached_property
    def connection(self) -> Connection:
        """How to reach the service."""
        return self._state.connection(self._provider, self._api)

    async def run_attempts(self, io: IO, attempt: Callable[[IO], Awaitable[_T]]) -> _T:
        """Repeat an attempt until it succeeds, or raise its error when there must be no further one."""
        try:
            while True:
                try:
                    answer = await attempt(io)
                    self.note_answer(answer)
                    return answer
                except InterlinguaError as error:
                    delay = self.retry_delay(error)
                    self.end_turn()  # the request that goes next must see that the model rests
                    await io.sleep(delay)
        except BaseException as error:
            self.end_turn()
            await self.leave(io, error)
            raise

    async def leave(self, io: IO, error: BaseException | None = None) -> None:
        """Do what is left to do at the service, because nothing more is wanted of it."""

    def note_answer(self, answer: object) -> None:
        """Note that the service has answered, or that its stream has started."""

    def end_turn(self) -> None:
        """Let another request go, under the client's own limits."""

    def retry_delay(self, error: InterlinguaError) -> float:
        """Return the seconds to wait before the next attempt, or raise the error again if there must be none."""
        if not self._replace_secret(error):
            raise error
        return 0.0

    def _replace_secret(self, error: InterlinguaError) -> bool:
        """Return True for the first refusal of a secret: the next attempt has another."""
        source = self.connection.credentials or self.connection.key_exchange
        if source is None or self._secret is None or self._replaced or not isinstance(error, AuthenticationError):
            return False
        self._state.secret_store(self._provider.key, source).refuse(self._secret, error)
        self._replaced = True
        return True

    async def _sign(
        self, request: WireRequest, headers: Mapping[str, str], io: IO, limits: TimeLimits, *, follows: bool = False
    ) -> HttpRequest:
        connection = self.connection
        if not connection.has_key:
            names = [name for name in connection.env_vars if "KEY" in name or "TOKEN" in name] or connection.env_vars
            text = f"no API key: set {' or '.join(names) or 'the environment'} or pass api_key="
            raise AuthenticationError(text, provider=self._provider.key, retryable=False)
        if (source := connection.credentials or connection.key_exchange) is not None:
            self._secret = await self._state.secret_store(self._provider.key, source).read(io, limits)
        signed = sign_request(connection, request, headers, self._secret, follows=follows)
        signed.headers.setdefault("accept-encoding", ACCEPTED)
        return signed


def sign_request(
    connection: Connection,
    request: WireRequest,
    headers: Mapping[str, str],
    secret: Any = None,
    *,
    follows: bool = False,
) -> HttpRequest:
    """Return the HTTP request, with auth and signature.

    Later sources of a header win: connection, wire, caller, auth, signature. Headers of `list_headers` add up. The
    address of a request that `follows` an answer must be of the service.
    """
    try:
        own = connection.base_url + request.path if connection.url is None else connection.url(request)
        url = request.path if follows and "://" in request.path.partition("?")[0] else own
        if follows:
            from interlingua._http.pending import check_address  # noqa: PLC0415  few answers come later

            check_address(url, connection)
        merged = {"content-type": "application/json"}
        for source in (connection.headers, request.headers, headers, connection.auth(request)):
            for name, value in source.items():
                lower, text = name.lower(), value
                if lower in connection.list_headers:  # each item once
                    items = map(str.strip, f"{merged.get(lower, '')},{value}".split(","))
                    text = ",".join(dict.fromkeys(filter(None, items)))
                merged[lower] = text
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


def _encode(url: str) -> str:
    """Return an address as it is sent, because that is what must be signed."""
    from httpx import URL, InvalidURL  # noqa: PLC0415  few connections sign

    try:
        return str(URL(url))
    except InvalidURL as error:
        raise unsendable(url, error) from None
