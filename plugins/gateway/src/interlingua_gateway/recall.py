"""Keep answers for callers that do not send back the state their models need.

Some APIs have no place for another provider's state, and an agent may drop it when it changes models. The gateway
therefore stores an answer with state, sealed, under a digest of the parts that the caller sees of it and of the message
before it.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import orjson

from interlingua.codec import dumps_message, loads_message
from interlingua.errors import InterlinguaError
from interlingua.types import (
    Message,
    MessageStatus,
    OpaqueBlock,
    RedactedThinkingBlock,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from interlingua_gateway.seal import Sealer
from interlingua_gateway.store import GatewayStore, ask_store
from interlingua_serving import InboundRequest

_AGE = timedelta(days=30)
_log = logging.getLogger("interlingua.gateway")


class Recall:
    """Stores answers and puts them back into requests.

    Args:
        store: the store.
        sealer: seals the answers for their tenants.
    """

    def __init__(self, store: GatewayStore, sealer: Sealer) -> None:
        self._store, self._sealer = store, sealer
        store.drop_states(datetime.now(UTC) - _AGE)

    async def keep(self, tenant: str, asked: InboundRequest, answer: Message) -> None:
        """Store an answer whose state the caller's API may not send back, unless the answer was cut off."""
        if not asked.messages or answer.metadata.status is not MessageStatus.COMPLETE or not _has_state(answer):
            return
        state = {"message": dumps_message(answer)}
        seals = {_handle(asked.messages[-1], answer): self._sealer.seal(state, tenant)}
        try:
            await ask_store(self._store.keep_states, tenant, seals)
        except InterlinguaError as error:
            _log.error("the state of an answer was not stored: %s", error)

    async def restore(self, tenant: str, request: InboundRequest) -> InboundRequest:
        """Return a request with its answers as the models made them, as far as they are stored.

        Args:
            tenant: the caller.
            request: the request as the caller sent it.
        """
        messages = request.messages
        answers = {
            at: _handle(messages[at - 1], message)
            for at, message in enumerate(messages)
            if at and message.role is Role.ASSISTANT
        }
        if not answers:
            return request
        found = await ask_store(self._store.find_states, tenant, list(answers.values()))
        restored = list(messages)
        for at, handle in answers.items():
            state = self._sealer.unseal(found[handle], tenant) if handle in found else None
            if state and (answer := _put_back(messages[at], loads_message(state["message"]))) is not None:
                restored[at] = answer
        return attrs.evolve(request, messages=tuple(restored)) if found else request


def _has_state(message: Message) -> bool:
    raw = message.metadata.provider_raw
    if raw and raw.get("replay"):
        return True
    return any(
        isinstance(block, ThinkingBlock | RedactedThinkingBlock | OpaqueBlock) or getattr(block, "signature", None)
        for block in message.content
    )


def _handle(before: Message, answer: Message) -> str:
    """Return the digest of the parts that every API shows of an answer and of the message before it."""
    return hashlib.sha256(orjson.dumps([shown(before), shown(answer)])).hexdigest()[:40]


def shown(message: Message) -> list[Any]:
    """Return the parts of a message that every API shows: its text, and its calls with names and arguments."""
    texts: list[str] = []
    calls: list[Any] = []
    for block in message.content:
        if isinstance(block, TextBlock):
            texts.append(block.text)
        elif isinstance(block, ToolUseBlock):
            calls.append([block.name, orjson.dumps(block.input, option=orjson.OPT_SORT_KEYS, default=dict).decode()])
        elif isinstance(block, ToolResultBlock):
            texts += [part.text for part in block.content if isinstance(part, TextBlock)]
    return ["".join(texts).strip(), calls]


def _put_back(echoed: Message, kept: Message) -> Message | None:
    """Return the stored answer with the caller's ids of calls; None if the number of calls differs."""
    ids = [block.id for block in echoed.content if isinstance(block, ToolUseBlock)]
    calls: Sequence[ToolUseBlock] = [block for block in kept.content if isinstance(block, ToolUseBlock)]
    if len(ids) != len(calls):
        return None
    names = iter(ids)
    content = [
        attrs.evolve(block, id=next(names)) if isinstance(block, ToolUseBlock) else block for block in kept.content
    ]
    return attrs.evolve(echoed, content=tuple(content), metadata=kept.metadata)
