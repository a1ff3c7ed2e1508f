"""Keep answers for callers that cannot send back the state their models need.

Some APIs have no place for another provider's state, and an agent may drop it when it changes models. The gateway
therefore stores an answer with state, sealed. It is found by the ids of its calls, which are unique, or, if the caller
sends other ids or no calls, by the whole conversation up to it. State that a caller sends back is used unchanged.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import attrs
import orjson

from interlingua.codec import dumps_message, loads_message
from interlingua.errors import InterlinguaError
from interlingua.types import (
    ContentBlock,
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

_ISSUED = re.compile(r"tu_[0-9A-HJKMNP-TV-Z]{26}")  # an id of a call that this gateway made
_NO_ID = "0" * 26
_NO_TIME = datetime.fromtimestamp(0, UTC)
_log = logging.getLogger("interlingua.gateway")


class Recall:
    """Stores answers and puts them back into requests.

    Args:
        store: the store.
        sealer: seals the answers for their tenants.
    """

    def __init__(self, store: GatewayStore, sealer: Sealer) -> None:
        self._store, self._sealer = store, sealer

    async def keep(self, tenant: str, asked: InboundRequest, answer: Message) -> None:
        """Store an answer whose state the caller's API may not send back, unless the answer was cut off.

        Args:
            tenant: the caller.
            asked: the request as the caller sent it.
            answer: the answer.
        """
        if not asked.messages or answer.metadata.status is not MessageStatus.COMPLETE or not _has_state(answer):
            return
        try:
            await ask_store(self._keep, tenant, asked, answer)
        except InterlinguaError as error:
            _log.error("the state of an answer was not stored: %s", error)

    def _keep(self, tenant: str, asked: InboundRequest, answer: Message) -> None:
        *_, handles = _handles([*asked.messages, answer])
        plain = Message(id=_NO_ID, created_at=_NO_TIME, role=answer.role, content=answer.content)
        digest = hashlib.sha256(dumps_message(plain).encode()).hexdigest()[:40]
        seal = self._sealer.seal({"message": dumps_message(answer)}, tenant)
        self._store.keep_state(tenant, handles, seal, digest)

    def find_gaps(self, request: InboundRequest) -> dict[int, str]:
        """Return the answers in a request whose state the caller may not have sent back, with their handles."""
        messages = request.messages
        # an answer of another API's service has come out of a seal, but some callers drop the thinking beside it
        own = (request.provider, request.options.api)
        answers: dict[int, str] = {}
        for at, handles in enumerate(_handles(messages)):
            if not at or messages[at].role is not Role.ASSISTANT:
                continue
            sealed = (messages[at].metadata.origin or own)[:2] != own
            if not sealed or (len(handles) > 1 and not any(map(_is_state, messages[at].content))):
                answers[at] = handles[0]
        return answers

    async def restore(self, tenant: str, request: InboundRequest, gaps: Mapping[int, str]) -> InboundRequest:
        """Return a request with its answers as the models made them, as far as they are stored.

        Args:
            tenant: the caller.
            request: the request as the caller sent it.
            gaps: the gaps that `find_gaps` returned for it.
        """
        return await ask_store(self._restore, tenant, request, gaps) if gaps else request

    def _restore(self, tenant: str, request: InboundRequest, gaps: Mapping[int, str]) -> InboundRequest:
        found = self._store.find_states(tenant, list(gaps.values()))
        restored = list(request.messages)
        for at, handle in gaps.items():
            state = self._sealer.unseal(found[handle], tenant) if handle in found else None
            if state and (answer := _put_back(restored[at], loads_message(state["message"]))) is not None:
                restored[at] = answer
        return attrs.evolve(request, messages=tuple(restored)) if found else request


def _has_state(message: Message) -> bool:
    raw = message.metadata.provider_raw
    if raw and raw.get("replay"):
        return True
    return any(map(_is_state, message.content))


def _is_state(block: ContentBlock) -> bool:
    state = isinstance(block, ThinkingBlock | RedactedThinkingBlock | OpaqueBlock)
    return state or bool(getattr(block, "signature", None))


def _handles(messages: Sequence[Message]) -> Iterator[tuple[str, ...]]:
    """Yield for each message the handles of its answer, the surest one first.

    They are a digest of the calls in the message, if this gateway issued their ids, and one of the conversation up to
    it, without ids in the message itself, and without system messages, because agents change those often.
    """
    running = hashlib.sha256()
    for message in messages:
        ids = [block.id for block in message.content if isinstance(block, ToolUseBlock)]
        issued = bool(ids) and all(map(_ISSUED.fullmatch, ids))
        parts = orjson.dumps([message.role.value, shown(message), ids if issued else []]) + b"\n"
        plain = running.copy()
        plain.update(orjson.dumps([message.role.value, shown(message), []]) + b"\n")
        yield (*([hashlib.sha256(parts).hexdigest()[:40]] if issued else []), plain.hexdigest()[:40])
        if message.role is not Role.SYSTEM:
            running.update(parts)


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
