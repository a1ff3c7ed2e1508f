"""The secret of a connection: obtained once, kept, and obtained again when it was refused or expires."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from interlingua._http.io import IO
from interlingua._http.signing import secret_failure
from interlingua._plugins.connection import Credentials
from interlingua.errors import AuthenticationError, InterlinguaError, ProviderError

_MARGIN = timedelta(minutes=1)
"""A secret that expires within this time is replaced."""


class SecretStore:
    """Keeps the secret of one provider for all exchanges of a client; safe for several threads and event loops."""

    def __init__(self, provider: str, source: Credentials) -> None:
        self._lock_name = f"secret of {provider}"
        self._source = source
        self._secret: Any = None

    def _lacks(self, refused: Any) -> bool:
        """Return True if there is no secret, or it is the refused one, or it expires soon."""
        expires = getattr(self._secret, "expires_at", None)
        stale = expires is not None and expires - datetime.now(UTC) < _MARGIN
        return stale or self._secret is None or self._secret is refused

    async def read(self, refused: Any, refusal: ProviderError | None, io: IO) -> Any:
        """Return the secret; a new one if the service refused the one it had.

        Args:
            refused: the secret that was refused, None if none was.
            refusal: the service's error.
            io: how to wait for the source, which may block.
        """
        if self._lacks(refused):
            async with io.lock(self._lock_name):
                if self._lacks(refused):
                    self._secret = await self._obtain(refusal, io)
        return self._secret

    async def _obtain(self, refusal: ProviderError | None, io: IO) -> Any:
        try:
            made = await io.call(self._source, refusal)
        except InterlinguaError:
            raise
        except Exception as error:
            raise secret_failure("obtaining the credentials", error) from None
        if made is None:
            raise AuthenticationError("the credentials returned no secret", retryable=False)
        return made
