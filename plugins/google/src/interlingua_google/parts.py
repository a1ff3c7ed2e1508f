"""One canonical message -> its parts on this wire, as bytes (sheet gemini §2, §3).

Never merges two parts into one and never looks at another message; results of tools are written by their neighbour.
`contents` comes in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from interlingua.json import dumps
from interlingua.plugins.wire import BlockLoss, Verdict
from interlingua.types.blocks import OpaqueBlock, TextBlock, ThinkingBlock, ToolUseBlock
from interlingua.types.messages import Message, Role
from interlingua_google.catalogue import API, is_signed
from interlingua_google.media import MEDIA, Media, key_of, to_wire_media, unsaid
from interlingua_google.others import KIND as OTHER

# base64 of `skip_thought_signature_validator`: what the service takes instead of a signature it never gave (sheet §3)
STAND_IN = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="


class Parts(NamedTuple):
    """What a message became: role, parts joined, losses, and its calls: wire id -> name, and whether the id is sent."""

    role: str
    joined: bytes
    rows: tuple[BlockLoss, ...] = ()
    calls: Mapping[str, tuple[str, bool]] = {}


def to_wire_parts(message: Message, model: str) -> Parts:
    """Write a user, system or assistant message for a model."""
    role = "model" if message.role is Role.ASSISTANT else "user"
    content = message.content
    if (
        len(content) == 1
        and type(content[0]) is TextBlock
        and content[0].signature is None
        and not content[0].citations
    ):
        return Parts(role, dumps({"text": content[0].text}))  # half of most histories
    writer = _Writer(message, model)
    made = [part for index, block in enumerate(content) if (part := writer.part(block, index)) is not None]
    return Parts(role, b",".join(map(dumps, made)), tuple(writer.rows), writer.calls)


class _Writer:
    """Writes the blocks of one message and keeps the losses."""

    def __init__(self, message: Message, model: str) -> None:
        self.rows: list[BlockLoss] = []
        self.calls: dict[str, tuple[str, bool]] = {}
        metadata = message.metadata
        self._signed = is_signed(model)
        origin = metadata.origin
        self._issues_ids = metadata.api == API
        self._same_model = origin is None or origin.model == model
        raw: Mapping[str, Any] | None = metadata.provider_raw
        self._media: Mapping[str, Any] = ((raw.get("replay") or {}).get("media") or {}) if raw else {}

    def lose(self, index: int, block: Any, verdict: Verdict, reason: str) -> None:
        """Note a loss."""
        self.rows.append(BlockLoss(index, block.type, verdict, reason))

    def part(self, block: Any, index: int) -> Any:
        """Return the part of a block, or None where this wire cannot have it."""
        kind = type(block)
        if kind is TextBlock:
            return self._text(block, index)
        if kind is ToolUseBlock:
            return self._call(block, index)
        if kind is ThinkingBlock:
            return self._thinking(block, index)
        if kind is OpaqueBlock:
            return self._opaque(block, index)
        if kind in MEDIA:
            return self._media_part(block, index)
        self.lose(index, block, "dropped", f"this wire has no {block.type} block")
        return None

    def _text(self, block: TextBlock, index: int) -> dict[str, Any]:
        if block.citations:
            self.lose(index, block, "rewritten", "this wire takes no citations back; the text is kept")
        return _with_signature({"text": block.text}, block.signature)

    def _thinking(self, block: ThinkingBlock, index: int) -> dict[str, Any] | None:
        if not block.text and not block.signature:
            self.lose(index, block, "dropped", "thinking without text or signature says nothing")
            return None
        return _with_signature({"text": block.text, "thought": True}, block.signature)

    def _call(self, block: ToolUseBlock, index: int) -> dict[str, Any]:
        value: Any = block.input
        if block.parse_error is not None:
            self.lose(index, block, "rewritten", "arguments are not JSON and this wire wants an object")
            value = {"invalid_json": block.raw_input}
        issued = self._issues_ids and block.provider_id is not None and block.provider_id == block.id
        first = not self.calls
        self.calls[block.id] = (block.name, issued)
        call = {"id": block.id} if issued else {}
        signature = block.signature
        if first and not signature and self._signed:  # also in earlier turns: the prefix stays as it is
            signature = STAND_IN
        return _with_signature({"functionCall": call | {"name": block.name, "args": value}}, signature)

    def _opaque(self, block: OpaqueBlock, index: int) -> Any:
        data = block.data
        if block.kind == OTHER:
            self.lose(index, block, "dropped", "another answer than the one that was taken")
            return None
        if self._same_model or not isinstance(data, Mapping) or "thoughtSignature" not in data:
            return data
        rest = {name: value for name, value in data.items() if name != "thoughtSignature"}
        if not rest:
            self.lose(index, block, "dropped", "its signature belongs to another origin")
            return None
        self.lose(index, block, "rewritten", "its signature belongs to another origin")
        return rest

    def _media_part(self, block: Media, index: int) -> dict[str, Any]:
        if (names := unsaid(block)) is not None:
            self.lose(index, block, "rewritten", f"this wire has no {names} on a part; the data is kept")
        extras = self._media.get(key_of(block)) if self._media else None
        made = to_wire_media(block)
        return made | extras if extras and self._same_model else made


def _with_signature(part: dict[str, Any], signature: str | None) -> dict[str, Any]:
    return part | {"thoughtSignature": signature} if signature else part
