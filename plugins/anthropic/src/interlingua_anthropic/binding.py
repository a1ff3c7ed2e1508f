"""Thinking that is bound to the exact prefix before it: digests written with an answer, checked before a replay.

Never sends anything away: where the prefix is no longer what it was, the thinking bound to it is dropped with a loss
instead of a 400 (sheet anthropic §5, DESIGN 6). `to_wire` comes in.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from interlingua.plugins.encoding import remembered
from interlingua.types.blocks import RedactedThinkingBlock, ThinkingBlock
from interlingua.types.messages import Message
from interlingua_anthropic.elements import Elements, to_wire_elements_without_thinking
from interlingua_anthropic.turns import elements_of

_KEY = ("anthropic", "digest")
_PLAIN_KEY = ("anthropic", "elements without thinking")


def _digest(message: Message) -> bytes:
    made = elements_of(message)
    return hashlib.blake2b(made.role.encode() + b"\0" + made.joined, digest_size=16).digest()


def check(messages: Sequence[Message], head: bytes) -> tuple[str, Callable[[Message], Elements | None] | None]:
    """Walk the conversation with a running digest.

    Args:
        messages: the projected conversation.
        head: what stands before all messages: the tools as bytes, without cache markers.

    Returns:
        The digest of the whole prefix (to be kept with the answer), and a function that gives replacement elements
        for the messages whose thinking is no longer valid, or None when all is.
    """
    running = hashlib.blake2b(head, digest_size=16).digest()
    stale: set[int] = set()
    broken = False
    for message in messages:
        if any(isinstance(block, (ThinkingBlock, RedactedThinkingBlock)) for block in message.content):
            raw: Mapping[str, Any] = message.metadata.provider_raw or {}
            written = (raw.get("replay") or {}).get("prefix")
            if written is not None:  # one made after the edit is bound to what was sent then, and is good again
                broken = written != running.hex()
            if broken:
                stale.add(id(message))
        running = hashlib.blake2b(running + remembered(message, _KEY, _digest), digest_size=16).digest()
    if not stale:
        return running.hex(), None

    def replacement(message: Message) -> Elements | None:
        if id(message) not in stale:
            return None
        return remembered(message, _PLAIN_KEY, to_wire_elements_without_thinking)

    return running.hex(), replacement
