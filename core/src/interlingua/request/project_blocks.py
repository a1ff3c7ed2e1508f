"""Project one message's blocks, call ids and tool names into what a target can carry."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from operator import is_
from typing import Any, TypeVar

import attrs

from interlingua.errors import CapabilityError
from interlingua.frozen import replace
from interlingua.plugins.provider import Target
from interlingua.plugins.wire import BlockLoss, Loss, Verdict, describe_unsent
from interlingua.types.blocks import (
    AudioBlock,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    OpaqueBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UnknownBlock,
    VideoBlock,
)
from interlingua.types.factories import shown_media_type
from interlingua.types.messages import Message, MessageStatus, Role
from interlingua.types.tools import ToolDefinition

B = TypeVar("B", bound=Any)
_DIGEST = 8  # letters of a digest that a changed tool name ends in
_LETTERS = (r"[^A-Za-z0-9_-]", r"[^A-Za-z0-9_]", r"[^A-Za-z0-9]")
_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def _digest(text: str, length: int) -> str:
    """Return `length` letters and digits that depend on the whole text."""
    number = int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=48).digest(), "big")
    letters = []
    for _ in range(length):
        number, place = divmod(number, 62)
        letters.append(_ALPHABET[place])
    return "".join(letters)


class WireIds:
    """Resolves each call's wire id in order of first appearance; one conversation, one target.

    A call's own id is used where this provider issued it. Any other is projected: kept where it fits the wire's
    pattern, else replaced by a digest. Two calls never share a wire id, and an id the provider issued is never given
    to another call that comes after it.
    """

    __slots__ = ("_fullmatch", "_limit", "_target", "_used")

    def __init__(self, target: Target) -> None:
        self._target = target
        self._fullmatch = target.id_pattern.fullmatch
        self._limit = target.capabilities.tool_id_max_length
        self._used: set[str] = set()

    def add(self, call: ToolUseBlock, *, own: bool) -> str:
        """Return the wire id of a call that appears now; a canonical id seen before gets another wire id.

        Args:
            call: the call.
            own: this provider made the call's message.
        """
        wire = call.provider_id
        if wire is None or not own or wire in self._used or not self._fits(wire):
            wire = call.id
            if wire in self._used or not self._fits(wire):
                wire = self._projected(wire)
        self._used.add(wire)
        return wire

    def _fits(self, wire: str) -> bool:
        return len(wire) <= self._limit and self._fullmatch(wire) is not None

    def _projected(self, canonical: str) -> str:
        length = min(self._limit, 26)
        salt = 0
        while True:
            wire = _digest(canonical if salt == 0 else f"{canonical}\0{salt}", length)
            if wire not in self._used and self._fits(wire):
                return wire
            salt += 1
            if salt > 10_000:
                raise ValueError(f"no id fits the declared pattern {self._target.id_pattern.pattern!r}")


def wire_name(name: str, target: Target) -> str:
    """Return the name itself where it fits, else what is left of it with its digest.

    Raises:
        CapabilityError: the declared pattern takes no name that could be built.
    """
    limit = target.capabilities.tool_name_max_length
    if len(name) <= limit and target.name_pattern.fullmatch(name):
        return name
    for letters in _LETTERS:
        stem = re.sub(letters, "_", name) if "_" in letters else re.sub(letters, "", name)
        for joint in ("_", ""):
            made = stem[: max(limit - _DIGEST - len(joint), 0)] + joint + _digest(name, min(_DIGEST, limit))
            if target.name_pattern.fullmatch(made):
                return made
            if target.name_pattern.fullmatch("t" + made[1:]):
                return "t" + made[1:]
    raise CapabilityError(f"no form of the tool name {name!r} fits the pattern {target.name_pattern.pattern!r}")


def wire_tools(
    tools: Sequence[ToolDefinition], target: Target
) -> tuple[Sequence[ToolDefinition], Mapping[str, str], tuple[Loss, ...]]:
    """Return the definitions under the names their calls have on the wire, the canonical name of each, and the losses.

    Raises:
        CapabilityError: the declared pattern takes no name that could be built.
    """
    if not target.capabilities.supports_tools:
        reason = "this target has no tools"
        rows = [
            Loss(path=f"tools[{at}]", block_type="tool", verdict="dropped", reason=reason) for at in range(len(tools))
        ]
        return (), {}, tuple(rows)
    names = [wire_name(tool.name, target) for tool in tools]
    changed = {name: tool.name for name, tool in zip(names, tools, strict=True) if name != tool.name}
    if changed:
        tools = [attrs.evolve(tool, name=name) for name, tool in zip(names, tools, strict=True)]
    return tools, changed, ()


_MEDIA = {
    ImageBlock: ("supports_images", "accepted_image_media_types"),
    AudioBlock: ("supports_audio", "accepted_audio_media_types"),
    VideoBlock: ("supports_video", "accepted_video_media_types"),
    DocumentBlock: ("supports_documents", "accepted_document_media_types"),
}


def project_blocks(
    message: Message, content: Sequence[ContentBlock], target: Target
) -> tuple[Sequence[ContentBlock], Sequence[BlockLoss], Sequence[ContentBlock]]:
    """Return the blocks the target can carry, in order, the very same objects where nothing changes; and what was lost.

    Last come the media of a result that the target takes in user messages but not in results.

    Args:
        message: whose content it is.
        content: its blocks, the calls already with their wire ids.
        target: who is to carry them.
    """
    tools = target.capabilities.supports_tools
    if not content and message.role is Role.USER:
        row = BlockLoss(0, "text", "rewritten", "the message holds nothing")
        return (TextBlock(text=describe_unsent(())),), (row,), ()
    for block in content:
        if not _is_simple(block, tools=tools):
            break
    else:
        return content, (), ()
    projector = _Projector(message, target)
    kept = projector.project(content)
    rows = projector.rows
    if not kept and message.role is Role.USER:  # without it the model would be asked something else
        kept.append(TextBlock(text=describe_unsent(rows)))
        rows = [row._replace(reason=f"{row.reason}; a text that says so stands in its place") for row in rows]
    return kept, rows, projector.moved


def _is_simple(block: Any, *, tools: bool) -> bool:
    """Return True for text, calls and results of text that a target takes as they are; most blocks are such."""
    kind = type(block)
    if kind is TextBlock:
        text = block.text
        return (
            block.signature is None
            and block.cache is None
            and not block.citations
            and text != ""
            and not text.isspace()
        )
    if kind is ToolUseBlock:
        return tools and block.signature is None and block.cache is None and block.parse_error is None
    if kind is ToolResultBlock:
        return tools and block.cache is None and all(type(part) is TextBlock and part.text for part in block.content)
    return False


def media_refusal(block: Any, target: Target, *, in_result: bool = False) -> str | None:
    """Say why the target cannot take this media block, or None."""
    flag, accepted_name = _MEDIA[type(block)]
    if in_result and type(block) is DocumentBlock and target.capabilities.supports_tool_result_documents:
        flag = "supports_tool_result_documents"
    if not getattr(target.capabilities, flag):
        return f"this target takes no {block.type}"
    accepted: tuple[str, ...] = getattr(target.capabilities, accepted_name)
    if block.media_type and accepted and block.media_type not in accepted:
        return f"this target takes no {block.media_type}"
    if block.source.kind == "file_ref":
        return "a file_ref must be resolved to data before sending"
    return None


class _Projector:
    """Projects the blocks of one message.

    Attributes:
        rows: what was lost.
        moved: media that results cannot hold, to be sent behind them.
    """

    def __init__(self, message: Message, target: Target) -> None:
        self._message, self._target, self._can = message, target, target.capabilities
        self._own_state = target.takes_state_of(message.metadata.origin)
        self._unfinished = message.metadata.status is not MessageStatus.COMPLETE
        self._index = 0  # of the block that is being projected
        self.rows: list[BlockLoss] = []
        self.moved: list[ContentBlock] = []

    def project(self, content: Sequence[ContentBlock]) -> list[ContentBlock]:
        kept: list[ContentBlock] = []
        for index, block in enumerate(content):
            self._index = index
            result = self._block(block)
            if result is not None:
                kept.append(result)
        return kept

    def _report(self, block: Any, verdict: Verdict, reason: str) -> None:
        if verdict == "dropped" and self._index in self._message.metadata.critical:
            verdict = "blocked"
        self.rows.append(BlockLoss(self._index, block.type, verdict, reason))

    def _drop(self, block: Any, reason: str) -> Any:
        """Report a block that is left out, and return what stands in its place: nothing."""
        self._report(block, "dropped", reason)
        return None

    def _block(self, block: Any) -> Any:
        kind = type(block)
        if kind is TextBlock:
            return self._text(block)
        if kind is ToolUseBlock:
            return self._call(block)
        if kind is ToolResultBlock:
            return self._result(block)
        if kind is ThinkingBlock or kind is RedactedThinkingBlock:
            return self._thinking(block)
        if kind in _MEDIA:
            return self._media(block)
        if kind is OpaqueBlock:
            origin = self._message.metadata.origin
            if block.provider == self._target.provider and (origin is None or origin.api in ("", self._can.api)):
                return block
            return self._drop(block, f"{block.kind} content belongs to {block.provider} and goes only there")
        wrote = block.raw.get("type") if kind is UnknownBlock else kind.__name__
        return self._drop(block, f"block type {wrote!r} was written by a newer version")

    def _text(self, block: TextBlock) -> Any:
        foreign = block.signature is not None and not self._own_state
        if not block.text.strip() and (foreign or block.signature is None):
            return self._drop(block, "empty text, which wires refuse")
        block = self._without_foreign_signature(block)
        if block.citations and not self._target.takes_citations_of(self._message.metadata.origin):
            self._report(block, "rewritten", "citations cannot be sent to this target; the text is kept")
            block = attrs.evolve(block, citations=())
        return self._without_cache(block)

    def _call(self, block: ToolUseBlock) -> Any:
        if not self._can.supports_tools:
            return self._drop(block, "this target has no tools")
        if self._unfinished and block.parse_error is not None:
            return self._drop(block, "the call was cut off before its arguments were whole")
        return self._without_cache(self._without_foreign_signature(block))

    def _thinking(self, block: Any) -> Any:
        signed = type(block) is RedactedThinkingBlock or bool(block.signature)
        if self._own_state and self._can.supports_thinking:
            if signed or (self._can.accepts_unsigned_thinking and not self._unfinished):
                return block
            reason = "thinking without a signature is refused"
        elif not self._can.supports_thinking:
            reason = "this target takes no thinking back"
        else:
            reason = "thinking belongs to another origin"
        if self._target.demote_thinking and type(block) is ThinkingBlock and block.text.strip():
            self._report(block, "rewritten", f"{reason}; sent as text because demote_thinking was asked for")
            return TextBlock(text=block.text)
        return self._drop(block, reason)

    def _media(self, block: Any) -> Any:
        if self._message.role is Role.ASSISTANT:
            reason = media_refusal(block, self._target)
        else:
            block, reason = self._sendable_media(block)
        if self._message.role is Role.SYSTEM:
            reason = reason or "system messages carry text only"
        return self._drop(block, reason) if reason else self._without_cache(block)

    def _sendable_media(self, block: B, *, in_result: bool = False) -> tuple[B, str | None]:
        """Return media with the type that its bytes show, and why the target cannot take it or None."""
        embedded = block.source.kind == "base64"
        shown = shown_media_type(block) if embedded and not block.media_type else None
        typed = attrs.evolve(block, media_type=shown) if shown else block
        reason = media_refusal(typed, self._target, in_result=in_result)
        if reason is None and embedded and not typed.media_type:
            reason = "its media type is not known; give the block its media_type"
        elif reason is None and shown:
            self._report(block, "rewritten", f"it names no media type; its bytes are {shown}")
        return typed, reason

    def _result(self, block: ToolResultBlock) -> Any:
        if not self._can.supports_tools:
            return self._drop(block, "this target has no tools")
        kept = [made for part in block.content if (made := self._result_part(part)) is not None]
        if len(kept) != len(block.content) or not all(map(is_, kept, block.content)):
            block = replace(block, content=kept)
        return self._without_cache(block)

    def _result_part(self, part: Any) -> Any:
        if type(part) is TextBlock:
            return part if part.text else None
        if type(part) in _MEDIA:
            part, reason = self._sendable_media(part, in_result=True)
            can_hold = (
                self._can.supports_tool_result_documents
                if type(part) is DocumentBlock
                else self._can.supports_tool_result_images
            )
            if reason:
                self._report(part, "rewritten", f"{reason}; a note stands in its place in the result")
                return TextBlock(text=f"[{part.type} omitted: {reason}]")
            if not can_hold:
                self._report(part, "rewritten", "results hold text only here; it follows in a user message")
                self.moved.append(part)
                return TextBlock(text=f"[{part.type} in the next message]")
        elif type(part) is not OpaqueBlock or part.provider != self._target.provider:
            return self._drop(part, f"a tool result for this target cannot hold {part.type}")
        return part

    def _without_foreign_signature(self, block: B) -> B:
        if block.signature is None or self._own_state:
            return block
        self._report(block, "rewritten", "its signature belongs to another origin")
        return attrs.evolve(block, signature=None)

    def _without_cache(self, block: B) -> B:
        if block.cache is None or self._can.supports_prompt_caching:
            return block
        self._report(block, "rewritten", "this target has no cache markers; its own caching applies")
        return attrs.evolve(block, cache=None)


_PATH = re.compile(r"messages\[(\d+)\](?:\.content\[(\d+)\])?")


def locate_losses(
    rows: Iterable[Loss], projected: Sequence[Message], messages: Sequence[Message], before: Iterable[Loss]
) -> tuple[Loss, ...]:
    """Return an adapter's rows with their paths counted in the caller's messages and blocks.

    Args:
        rows: the adapter's.
        projected: what it was given.
        messages: what the caller gave.
        before: projection's own rows, which say what blocks are gone.
    """
    places = {message.id: index for index, message in enumerate(messages)}
    gone = {row.path for row in before if row.verdict != "rewritten"}
    return tuple([_located(row, projected, messages, places, gone) for row in rows])


def _located(
    row: Loss, projected: Sequence[Message], messages: Sequence[Message], places: Mapping[str, int], gone: set[str]
) -> Loss:
    match = _PATH.match(row.path)
    if match is None or int(match[1]) >= len(projected):
        return row
    given = projected[int(match[1])]
    index = places.get(given.id)
    if index is None:
        return row
    path = f"messages[{index}]"
    block = _block(given, messages[index], index, match[2], gone)
    if block is not None:
        path += f".content[{block}]"
    return attrs.evolve(row, path=path + row.path[match.end() :], message_id=given.id)


def _block(given: Message, message: Message, index: int, at: str | None, gone: set[str]) -> int | None:
    """Return the block's place in the caller's message; None for a message that projection put in beside it."""
    if at is None or (given.role is not message.role and message.role is not Role.SYSTEM):
        return None
    content = message.content
    if given.role is Role.TOOL and len(given.content) == 1 < len(content):  # one result of several
        result = given.content[0]
        same = [place for place, block in enumerate(content) if block is result]
        return same[0] if same else int(at)
    kept = [place for place in range(len(content)) if f"messages[{index}].content[{place}]" not in gone]
    return kept[int(at)] if int(at) < len(kept) else int(at)
