"""Answer a repeated request with the answer to the first one: exactly the same request, of the same key."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Sequence

from interlingua.codec import dumps_message, loads_message
from interlingua.errors import InterlinguaError
from interlingua.plugins import dumps
from interlingua.types import Message, MessageStatus, StopReason
from interlingua_gateway.seal import Sealer
from interlingua_gateway.store import GatewayStore, ask_store
from interlingua_serving import InboundRequest

_LARGEST = 4 << 20  # characters of an answer that is kept
_log = logging.getLogger("interlingua.gateway")


class AnswerCache:
    """Keeps complete answers for a time, sealed for their keys.

    Args:
        store: the store, which several gateways may share.
        sealer: seals the answers.
    """

    def __init__(self, store: GatewayStore, sealer: Sealer) -> None:
        self._store, self._sealer = store, sealer

    def name_of(self, path: str, body: bytes, request: InboundRequest, models: Sequence[str]) -> str:
        """Return the name of a request: a digest of all that decides on its answer.

        Args:
            path: its path, with the query and without keys.
            body: its body.
            request: the request as it was read; some members come from headers.
            models: the models that may answer.
        """
        read = [request.provider, request.options.api or "", request.extra, request.echo]
        running = hashlib.sha256(dumps([path, list(models), hashlib.sha256(body).hexdigest(), *read]))
        return running.hexdigest()

    async def find(self, tenant: str, name: str) -> Message | None:
        """Return the answer to a request of a tenant; None without one, or if the database does not respond."""
        try:
            return await ask_store(self._find, tenant, name)
        except InterlinguaError:
            return None

    def _find(self, tenant: str, name: str) -> Message | None:
        seal = self._store.find_answer(tenant, name, time.time())
        state = self._sealer.unseal(seal, tenant) if seal else None
        return loads_message(state["message"]) if state else None

    async def keep(self, tenant: str, name: str, answer: Message, seconds: float) -> None:
        """Keep an answer, unless it is incomplete, was refused, ended in an error, or is too large."""
        ended_well = answer.metadata.stop_reason not in (StopReason.ERROR, StopReason.REFUSAL)
        if answer.metadata.status is not MessageStatus.COMPLETE or not ended_well or not answer.content:
            return
        try:
            await ask_store(self._keep, tenant, name, answer, seconds)
        except InterlinguaError as error:
            _log.error("an answer was not kept: %s", error)

    def _keep(self, tenant: str, name: str, answer: Message, seconds: float) -> None:
        text = dumps_message(answer)
        if len(text) <= _LARGEST:
            seal = self._sealer.seal({"message": text}, tenant)
            self._store.keep_answer(tenant, name, seal, time.time() + seconds)
