"""The blocking transport: one httpx client, or the one the user passes.

Never retries and never reads a body's meaning.
The blocking client comes in, through `interlingua.transport`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from interlingua.transport.answer import Head, check_kind, own_limits, url_type
from interlingua.transport.failures import failure
from interlingua.transport.outgoing import Outgoing
from interlingua.transport.timeout import Limits


class Answer(Head):
    """An answer whose body has yet to be read."""

    def chunks(self) -> Iterator[bytes]:
        """Yield the body as it arrives.

        Raises:
            ResponseTimeout: a limit was passed; the message names it.
            TransportError: the connection broke.
        """
        limits = self._limits
        try:
            self.begin()
            body = self.plain_stream
            if body is None:
                body = self._response.iter_bytes()
            if limits.deadline is None:
                yield from body
                return
            for chunk in body:
                yield chunk
                limits.left()
        except Exception as error:
            known = failure(error, limits, in_body=True)
            if known is None or known is error:
                raise
            raise known from error

    def read(self) -> bytes:
        """Return the whole body."""
        return b"".join(self.chunks())

    def close(self) -> None:
        """Give the connection back, or close it when the body was not read to its end."""
        self._response.close()


class SyncTransport:
    """Opens answers; safe for use from several threads, as httpx's client is.

    Args:
        http_client: used as it is, and left open; None makes one, which `close` closes.
    """

    def __init__(self, http_client: Any = None) -> None:
        self._own = http_client is None
        if not self._own:
            check_kind(http_client, blocking=True)
        self._http = _new_client() if http_client is None else http_client
        self.own_limits = not self._own and own_limits(http_client)
        self._url = url_type(self._http)
        self._urls: dict[str, Any] = {}

    def open(self, request: Outgoing, limits: Limits) -> Answer:
        """Send, and return when the answer's headers are there.

        Raises:
            ConnectTimeout, ResponseTimeout: a limit was passed; the message names it.
            TransportError: no answer could be had.
            CallerError: the URL or a header cannot be sent.
        """
        timeouts = limits.for_headers()
        try:
            url = self._urls.get(request.url) or self._urls.setdefault(request.url, self._url(request.url))
            built = self._http.build_request(
                request.method,
                url,
                content=request.body or None,
                headers=request.headers,
                extensions=None if timeouts is None else {"timeout": timeouts},
            )
            return Answer(self._http.send(built, stream=True), limits)
        except Exception as error:
            known = failure(error, limits, in_body=False, url=request.url)
            if known is None or known is error:
                raise
            raise known from (None if type(known).__name__ == "CallerError" else error)

    def close(self) -> None:
        """Close the HTTP client, if it was made here."""
        if self._own:
            self._http.close()


def _new_client() -> Any:
    from interlingua.transport.direct import new_client  # noqa: PLC0415  httpx costs more than all of core

    return new_client(blocking=True)
