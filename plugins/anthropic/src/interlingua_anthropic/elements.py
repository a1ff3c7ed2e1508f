"""One canonical message -> its content elements on this wire, as bytes (sheet anthropic §2 to §5).

Never places a cache marker (those are spliced in afterwards, so that they are not part of the prefix) and never looks
at another message. `to_wire` comes in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from interlingua.json import dumps
from interlingua.plugins.wire import BlockLoss, Verdict
from interlingua.types.blocks import (
    DocumentBlock,
    ImageBlock,
    OpaqueBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from interlingua.types.messages import Message, Role
from interlingua_anthropic.media import to_wire_media
from interlingua_anthropic.opaque import refusal_in, unanswered_server_calls, without_citations


class Mark(NamedTuple):
    """A cache hint: which element, for how long, and the block that carries it."""

    element: int
    ttl: str | None
    block: int
    block_type: str


class Elements(NamedTuple):
    """What a message became: elements in order, hints, losses; `joined` is the usual case, ready.

    `loose_end` says that it is an assistant's and its last text ends in white space, which cannot always stand.
    """

    role: str
    parts: tuple[bytes, ...]
    joined: bytes
    marks: tuple[Mark, ...]
    rows: tuple[BlockLoss, ...]
    loose_end: bool = False


def to_wire_elements(message: Message) -> Elements:
    """Write a message's elements, thinking included."""
    return _elements(message, with_thinking=True)


def to_wire_elements_without_thinking(message: Message) -> Elements:
    """Write a message's elements without thinking, for histories edited before it (sheet §5, block binding)."""
    return _elements(message, with_thinking=False)


def _elements(message: Message, *, with_thinking: bool) -> Elements:
    writer = _Writer(message)
    parts: list[bytes] = []
    marks: list[Mark] = []
    for index, block in enumerate(message.content):
        if not with_thinking and isinstance(block, (ThinkingBlock, RedactedThinkingBlock)):
            writer.lose(index, block, "dropped", "what came before this thinking has changed since")
            continue
        element = writer.element(block, index)
        if element is None:
            continue
        hint = getattr(block, "cache", None) or writer.inner_hint(block, index)
        if hint is not None:
            marks.append(Mark(len(parts), hint.ttl, index, block.type))
        parts.append(dumps(element))
    by_model = message.role is Role.ASSISTANT
    last = message.content[-1] if by_model and message.content else None
    loose = type(last) is TextBlock and last.text[-1:].isspace()
    role = "assistant" if by_model else "user"
    return Elements(role, tuple(parts), b",".join(parts), tuple(marks), tuple(writer.rows), loose)


class _Writer:
    """Writes the blocks of one message and keeps the losses."""

    def __init__(self, message: Message) -> None:
        self.rows: list[BlockLoss] = []
        self._message = message
        self._by_model = message.role is Role.ASSISTANT
        raw: Mapping[str, Any] | None = message.metadata.provider_raw
        self._calls: Mapping[str, Any] = ((raw.get("replay") or {}).get("calls") or {}) if raw else {}

    def lose(self, index: int, block: Any, verdict: Verdict, reason: str) -> None:
        """Note a loss."""
        self.rows.append(BlockLoss(index, block.type, verdict, reason))

    def element(self, block: Any, index: int) -> Any:
        """Return the element of a block, or None where this wire cannot have it here."""
        kind = type(block)
        if kind is TextBlock:
            return self._text(block, index)
        if kind is ToolUseBlock:
            return self._call(block, index)
        if kind is ToolResultBlock:
            return self._result(block, index)
        if kind is ThinkingBlock:
            return {"type": "thinking", "thinking": block.text, "signature": block.signature or ""}
        if kind is RedactedThinkingBlock:
            return {"type": "redacted_thinking", "data": block.data}
        if kind is OpaqueBlock:
            return self._opaque(block, index)
        if kind is ImageBlock or kind is DocumentBlock:
            if self._by_model:
                self.lose(index, block, "dropped", f"this wire takes no {block.type} in an assistant message")
                return None
            return to_wire_media(block)
        self.lose(index, block, "dropped", f"this wire has no {block.type} block")
        return None

    def _text(self, block: TextBlock, index: int) -> dict[str, Any] | None:
        if not block.text.strip():  # only a signed one comes so far
            self.lose(index, block, "dropped", "empty text, which this wire refuses; nor has it signed text")
            return None
        element: dict[str, Any] = {"type": "text", "text": block.text}
        if block.citations and self._by_model:
            element["citations"] = list(block.citations)
        elif block.citations:
            self.lose(index, block, "rewritten", "this wire takes citations on assistant text only")
        return element

    def _call(self, block: ToolUseBlock, index: int) -> dict[str, Any]:
        value: Any = block.input
        if block.parse_error is not None:
            self.lose(index, block, "rewritten", "arguments are not JSON and this wire wants an object")
            value = {"invalid_json": block.raw_input}
        element = {"type": "tool_use", "id": block.id, "name": block.name, "input": value}
        return element | self._calls.get(block.id, {}) if self._calls else element

    def _result(self, block: ToolResultBlock, index: int) -> dict[str, Any]:
        content = []
        for part in block.content:
            if isinstance(part, TextBlock) and (not part.text or part.text.isspace()):
                self.lose(index, block, "rewritten", "blank text in a result, which this wire refuses, was left out")
            else:
                content.append(part)
        inner: Any
        if len(content) == 1 and type(content[0]) is TextBlock:
            inner = content[0].text
        else:
            inner = [self._inner(part) for part in content]
        element: dict[str, Any] = {"type": "tool_result", "tool_use_id": block.tool_use_id}
        if inner:
            element["content"] = inner
        if block.is_error:
            element["is_error"] = True
        return element

    def _inner(self, part: Any) -> Any:
        if isinstance(part, TextBlock):
            return {"type": "text", "text": part.text}
        if isinstance(part, OpaqueBlock):
            return without_citations(part.data)
        return to_wire_media(part)

    def inner_hint(self, block: Any, index: int) -> Any:
        """Return the last cache hint inside a result: it marks the result itself, the next place a marker may stand."""
        if type(block) is not ToolResultBlock:
            return None
        hinted = [at for at, part in enumerate(block.content) if getattr(part, "cache", None) is not None]
        if not hinted:
            return None
        if hinted[-1] != len(block.content) - 1:
            self.lose(index, block, "rewritten", "a cache hint inside a result moved to the result's end")
        return getattr(block.content[hinted[-1]], "cache", None)

    def _opaque(self, block: OpaqueBlock, index: int) -> Any:
        reason = refusal_in(block, self._message, unanswered_server_calls(self._message))
        if reason is not None:
            self.lose(index, block, "dropped", reason)
            return None
        data = block.data if self._by_model else without_citations(block.data)
        if data is not block.data:
            self.lose(index, block, "rewritten", "this wire takes citations on assistant text only")
        return data
