"""The writing of a history, message by message, with ids and times that are the same on every run.

Never decides what is said (the histories do).
The histories come in, the cell that carries one across, and the recorded ones.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from interlingua.types.blocks import ContentBlock, TextBlock, ToolResultBlock, ToolUseBlock
from interlingua.types.messages import Message, MessageMetadata, MessageStatus, Provenance, Role, StopReason, Usage
from interlingua_contract.matrix.issued import issued_id
from interlingua_contract.matrix.speaker import Speaker

THEN = datetime(2026, 1, 1, tzinfo=UTC)


SESSION = "matrix"


_TIME = "01KDVBKF00"  # the first ten letters of a ULID of that day


class Script:
    """A history in the making."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.asked: list[int] = []
        self._calls = 0
        self._mark = 0

    def fork(self) -> Script:
        """Return a copy that goes on by itself; the messages are the same objects."""
        copy = Script()
        copy.messages, copy.asked = self.messages[:], self.asked[:]
        copy._calls, copy._mark = self._calls, self._mark
        return copy

    @property
    def next_id(self) -> str:
        """The id of the message that comes next."""
        return f"{_TIME}{len(self.messages):016d}"

    def mark(self, text: str = "") -> str:
        """Return a text that stands nowhere else in the history."""
        self._mark += 1
        return f"mk{self._mark}q {text}".rstrip() if text else f"mk{self._mark}q"

    def opaque(self, seed: str) -> str:
        """Return base64, as signatures and encoded thinking are, that stands nowhere else in the history."""
        return base64.b64encode(self.mark(seed).encode() * 4).decode()

    def add(
        self, role: Role, content: Iterable[ContentBlock] | str, metadata: MessageMetadata | None = None
    ) -> Message:
        """Add a message."""
        made = Message(
            id=self.next_id,
            session_id=SESSION,
            role=role,
            content=content if isinstance(content, str) else tuple(content),
            metadata=metadata or MessageMetadata(),
            created_at=THEN + timedelta(seconds=len(self.messages)),
        )
        return self.take(made)

    def take(self, message: Message) -> Message:
        """Add a message that is ready."""
        if message.role is Role.ASSISTANT:
            self.asked.append(len(self.messages))
        self.messages.append(message)
        return message

    def user(self, text: str = "Go on.", *blocks: ContentBlock) -> None:
        """Add a user's message."""
        self.add(Role.USER, [TextBlock(text=self.mark(text)), *blocks])

    def mint(self) -> str:
        """Return a canonical call id."""
        self._calls += 1
        return f"tu_{_TIME}{self._calls:016d}"

    def call(self, speaker: Speaker, **facts: Any) -> ToolUseBlock:
        """Return a call as the speaker would make it."""
        made = self.mint()
        given = {"input": {"path": self.mark()}, **facts}
        issued = issued_id(speaker, self._calls)
        return ToolUseBlock(id=made, name="read_file", provider_id=issued, **given)

    def answer(
        self, speaker: Speaker, *content: ContentBlock, status: MessageStatus = MessageStatus.COMPLETE
    ) -> Message:
        """Add an answer of a speaker."""
        origin = speaker.side.origin(speaker.model)
        calls = any(isinstance(block, ToolUseBlock) for block in content)
        whole = status is MessageStatus.COMPLETE
        metadata = MessageMetadata(
            model=f"{origin.provider}:{origin.model}",
            provider=origin.provider,
            api=origin.api,
            usage=Usage() if whole else None,
            status=status,
            stop_reason=(StopReason.TOOL_USE if calls else StopReason.END_TURN) if whole else None,
            provenance=Provenance.GENERATED,
        )
        return self.add(Role.ASSISTANT, content, metadata)

    def text(self, text: str = "Said.") -> TextBlock:
        """Return a text block that is told apart."""
        return TextBlock(text=self.mark(text))

    def result(self, call: ToolUseBlock, *parts: ContentBlock, is_error: bool = False) -> None:
        """Answer a call."""
        content = parts or (self.text("Read."),)
        block = ToolResultBlock(tool_use_id=call.id, content=content, is_error=is_error, tool_name=call.name)
        self.add(Role.TOOL, (block,), MessageMetadata(parent_tool_use_id=call.id))
