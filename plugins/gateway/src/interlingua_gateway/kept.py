"""Answers of keys that keep them: callers retrieve, delete and continue them by their ids."""

from __future__ import annotations

import logging
import re
import time
from typing import Any

import attrs

from interlingua.errors import CallerError, InterlinguaError
from interlingua.plugins import WireRequest, WireResponse
from interlingua_gateway.seal import Sealer
from interlingua_gateway.store import GatewayStore, ask_store
from interlingua_serving import ServeContext, ServingPlugin

_AGE = 30 * 86_400.0  # seconds
_LARGEST = 7 << 20  # bytes of a conversation that is kept
_ID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}\Z")  # of an answer, after the prefix of its API
_log = logging.getLogger("interlingua.gateway")


class AnswerNotFoundError(CallerError):
    """No answer with this id is kept for the caller: status 404."""


@attrs.frozen
class KeptAnswer:
    """A kept answer.

    Attributes:
        request: the body of its request, with the conversation that it continued.
        answer: the body of the answer.
    """

    request: bytes
    answer: bytes


class KeptAnswers:
    """Keeps answers for 30 days, sealed for their keys.

    Args:
        store: the store, which several gateways may share.
        sealer: seals the answers.
    """

    def __init__(self, store: GatewayStore, sealer: Sealer) -> None:
        self._store, self._sealer = store, sealer

    async def keep(self, tenant: str, api: str, name: str, request: WireRequest, answer: bytes) -> None:
        """Keep an answer, unless it is too large with its request."""
        if len(request.body) + len(answer) > _LARGEST:
            _log.warning("answer %s was not kept: it is too large with its request", name)
            return
        try:
            await ask_store(self._keep, tenant, _place(api, name), request.body, answer)
        except InterlinguaError as error:
            _log.error("answer %s was not kept: %s", name, error)

    def _keep(self, tenant: str, place: str, request: bytes, answer: bytes) -> None:
        seal = self._sealer.seal({"request": bytes(request).decode(), "answer": answer.decode()}, tenant)
        self._store.keep_answer(tenant, place, seal, time.time() + _AGE)

    def may_have(self, name: str) -> bool:
        """Return whether an id has the form of a gateway's; others name answers that a service keeps."""
        return _ID.search(name) is not None

    async def find(self, tenant: str, api: str, name: str) -> KeptAnswer:
        """Return the answer with an id.

        Raises:
            AnswerNotFoundError: this tenant has no kept answer with this id.
            OverloadedError: the database does not respond.
        """
        place = _place(api, name)
        found = await ask_store(self._find, tenant, place) if place else None
        if found is None:
            raise AnswerNotFoundError(f"no answer {name[:80]!a} is kept for this key")
        return found

    def _find(self, tenant: str, place: str) -> KeptAnswer | None:
        seal = self._store.find_answer(tenant, place, time.time())
        state: Any = self._sealer.unseal(seal, tenant) if seal else None
        return KeptAnswer(state["request"].encode(), state["answer"].encode()) if state else None

    async def respond(
        self, plugin: ServingPlugin, kind: str, tenant: str, name: str, context: ServeContext
    ) -> WireResponse:
        """Return the answer with an id, or delete it; its cancellation comes too late.

        Args:
            plugin: the serving plugin of the API.
            kind: `answer`, `delete` or `cancel`.
            tenant: the caller.
            name: the id, as the API writes it.
            context: the API.

        Raises:
            AnswerNotFoundError: this tenant has no kept answer with this id.
            CallerError: `kind` is `cancel`.
            OverloadedError: the database does not respond.
        """
        found = await self.find(tenant, context.api, name)
        if kind == "cancel":
            raise CallerError(f"the answer {name!a} is complete: only answers in the background can be cancelled")
        if kind == "delete":
            await self.delete(tenant, context.api, name)
            return plugin.to_wire_auxiliary("delete", name, context)
        return WireResponse(headers={"content-type": "application/json"}, body=found.answer)

    async def delete(self, tenant: str, api: str, name: str) -> None:
        """Delete the answer with an id.

        Raises:
            AnswerNotFoundError: this tenant has no kept answer with this id.
            OverloadedError: the database does not respond.
        """
        place = _place(api, name)
        if not place or not await ask_store(self._store.forget_answer, tenant, place):
            raise AnswerNotFoundError(f"no answer {name[:80]!a} is kept for this key")


def _place(api: str, name: str) -> str:
    found = _ID.search(name)
    return f"{api} {found[0]}" if found else ""
