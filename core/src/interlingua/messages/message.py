"""The Message: a role, an ordered list of blocks, and what is known about it.

Never talks to a provider and never changes: a new state is a new value.
Every room above messages may come in, through `interlingua.messages`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from typing import Any

import attrs

from interlingua.blocks import ContentBlock, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from interlingua.errors import CallerError
from interlingua.ids import new_ulid
from interlingua.messages.metadata import NO_METADATA, MessageMetadata
from interlingua.values import READY, quick

SCHEMA_VERSION = 1
SILENTLY_ANSWERED = "silently answered"
"""Memo key that projection sets on a message whose answer had nothing that could be sent (see `fragments`)."""
DEFAULT_SESSION = "default"


class Role(StrEnum):
    """Who speaks (seed 003 §4.1)."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL = "tool"


def _role(value: str) -> Role:
    try:
        return Role(value)
    except ValueError:
        raise CallerError(f"a role is one of {', '.join(Role)}, not {value!r}") from None


def _content(value: str | ContentBlock | Iterable[ContentBlock]) -> tuple[ContentBlock, ...]:
    if isinstance(value, str):
        return (TextBlock(text=value),)
    return (value,) if attrs.has(type(value)) else tuple(value)  # type: ignore[arg-type,return-value]


_now = partial(datetime.now, UTC)


@quick
@attrs.frozen(kw_only=True)
class Message:
    """One message of a conversation (seed 003 §4.1).

    Attributes:
        id: ULID, monotonic per session.
        session_id: the session it belongs to.
        role: who speaks; the word alone is taken as well.
        content: blocks in order; a string is taken as one TextBlock.
        metadata: everything else known.
        created_at: UTC, microseconds.
        schema_version: version of seed 003 it was written by.
    """

    id: str = attrs.field(factory=new_ulid)
    session_id: str = DEFAULT_SESSION
    role: Role = attrs.field(converter=_role, metadata={READY: Role})  # its word alone would pass for no role
    content: tuple[ContentBlock, ...] = attrs.field(converter=_content, metadata={READY: tuple})
    metadata: MessageMetadata = NO_METADATA
    created_at: datetime = attrs.field(factory=_now)
    schema_version: int = SCHEMA_VERSION
    # what was derived from this very object (wire fragments, checks); dies with it, and no copy inherits it
    memo: dict[Any, Any] = attrs.field(init=False, factory=dict, eq=False, repr=False)
    _plain: str | None = attrs.field(init=False, default=None, eq=False, repr=False)  # `plainness` keeps it here

    def text_content(self) -> str:
        """Join the text of all TextBlocks (seed 001)."""
        return "".join([block.text for block in self.content if type(block) is TextBlock])

    def tool_calls(self) -> list[ToolUseBlock]:
        """Return the tool calls in order (seed 001)."""
        return [block for block in self.content if type(block) is ToolUseBlock]

    def tool_results(self) -> list[ToolResultBlock]:
        """Return the tool results in order."""
        return [block for block in self.content if type(block) is ToolResultBlock]

    def thinking(self) -> list[ThinkingBlock]:
        """Return the thinking blocks in order (seed 001)."""
        return [block for block in self.content if type(block) is ThinkingBlock]

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _FIELDS}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name in _FIELDS:
            object.__setattr__(self, name, state[name])
        object.__setattr__(self, "memo", {})
        object.__setattr__(self, "_plain", None)


_FIELDS = ("id", "session_id", "role", "content", "metadata", "created_at", "schema_version")

Conversation = Sequence[Message]
