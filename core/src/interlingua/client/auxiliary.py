"""Exchanges besides the conversation, without any input or output: the live model list, the service's token count.

Never retried and never waits.
The two clients come in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from interlingua.client.exchange import FAILED
from interlingua.context import RequestContext
from interlingua.messages import Origin
from interlingua.provider import Provider
from interlingua.transport import Limits, Outgoing, no_key, outgoing
from interlingua.wire import WireResponse

if TYPE_CHECKING:
    from interlingua.client.core import ClientCore


class Auxiliary:
    """One such exchange.

    Raises:
        CapabilityError: the provider does not offer it.
    """

    def __init__(self, core: ClientCore, provider: Provider, kind: str, arguments: Mapping[str, Any]) -> None:
        self._core = core
        self._provider = provider
        self._kind = kind
        self._request = provider.auxiliary_request(kind, arguments)
        self.limits = Limits(core.timeout)

    def outgoing(self) -> Outgoing:
        """Return the HTTP request, signed.

        Raises:
            Authentication: a key is needed and there is none.
        """
        connection = self._core.connection(self._provider, None)
        if not connection.has_key:
            raise no_key(connection, self._provider.key)
        return outgoing(connection, self._request, self._core.headers)

    def read(self, status: int, headers: Mapping[str, str], body: bytes) -> Any:
        """Return what was asked for.

        Raises:
            ProviderError: the service answered with a failure.
            MalformedResponse: the answer cannot be read.
        """
        response = WireResponse(status=status, headers=headers, body=body)
        if status >= FAILED:
            context = RequestContext(origin=Origin(self._provider.key, self._request.api, ""))
            raise self._provider.from_wire_error(response, context)
        return self._provider.from_wire_auxiliary(self._kind, response)
