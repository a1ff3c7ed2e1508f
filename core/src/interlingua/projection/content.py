"""What of one message a target can carry: its blocks one by one, with a loss for each that changes or goes.

Never looks at another message (the walk does) and never raises for content, except where a block is critical.
The projection walk and the client's limits on media come in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import attrs

from interlingua.blocks import (
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
from interlingua.messages import Message, MessageStatus, Role
from interlingua.projection.target import Target
from interlingua.wire import Verdict

B = TypeVar("B", bound=Any)
Report = Callable[[int, str, Verdict, str], None]
"""Called with block index, block type, verdict and reason."""

_MEDIA = {
    ImageBlock: ("supports_images", "accepted_image_media_types"),
    AudioBlock: ("supports_audio", "accepted_audio_media_types"),
    VideoBlock: ("supports_video", "accepted_video_media_types"),
    DocumentBlock: ("supports_documents", "accepted_document_media_types"),
}


def project_content(
    message: Message, content: Iterable[ContentBlock], target: Target, report: Report
) -> list[ContentBlock]:
    """Return the blocks the target can carry, in order; the very same objects where nothing changes.

    Args:
        message: whose content it is.
        content: its blocks, the calls already with their wire ids.
        target: who is to carry them.
        report: told of every loss.
    """
    own_state = target.takes_state_of(message.metadata.origin)
    unfinished = message.metadata.status is not MessageStatus.COMPLETE
    kept: list[ContentBlock] = []
    for index, block in enumerate(content):
        result = _project_block(block, index, message, target, report, own_state=own_state, unfinished=unfinished)
        if result is not None:
            kept.append(result)
    return kept


def movable_media(block: ToolResultBlock, target: Target) -> list[ContentBlock]:
    """Return the media of a result that the target takes in user messages but not in results (case 21)."""
    if target.capabilities.supports_tool_result_images:
        return []
    return [part for part in block.content if type(part) in _MEDIA and media_refusal(part, target) is None]


def _project_block(
    block: ContentBlock,
    index: int,
    message: Message,
    target: Target,
    report: Report,
    *,
    own_state: bool,
    unfinished: bool,
) -> ContentBlock | None:
    kind = type(block)
    if kind is TextBlock:
        return _text(block, index, target, report, own_state=own_state)  # type: ignore[arg-type]
    if kind is ToolUseBlock:
        return _call(block, index, target, report, own_state=own_state, unfinished=unfinished)  # type: ignore[arg-type]
    if kind is ToolResultBlock:
        return _result(block, index, target, report)  # type: ignore[arg-type]
    if kind is ThinkingBlock or kind is RedactedThinkingBlock:
        return _thinking(block, index, target, report, own_state=own_state, unfinished=unfinished)
    if kind in _MEDIA:
        reason = media_refusal(block, target) or _misplaced(message.role)
        if reason:
            report(index, block.type, "dropped", reason)
            return None
        return _strip_cache(block, index, target, report)
    if isinstance(block, OpaqueBlock):
        origin = message.metadata.origin
        if block.provider == target.provider and (origin is None or origin.api in ("", target.capabilities.api)):
            return block
        report(index, block.type, "dropped", f"{block.kind} content belongs to {block.provider} and goes only there")
        return None
    wrote = block.raw.get("type") if isinstance(block, UnknownBlock) else kind.__name__
    report(index, block.type, "dropped", f"block type {wrote!r} was written by a newer version")
    return None


def _misplaced(role: Role) -> str | None:
    return "system messages carry text only" if role is Role.SYSTEM else None


def _text(block: TextBlock, index: int, target: Target, report: Report, *, own_state: bool) -> TextBlock | None:
    foreign = block.signature is not None and not own_state
    if not block.text.strip() and (foreign or block.signature is None):
        report(index, block.type, "dropped", "empty text, which wires refuse")
        return None
    if foreign:
        report(index, block.type, "rewritten", "its signature belongs to another origin")
        block = attrs.evolve(block, signature=None)
    if block.citations and not (own_state or target.capabilities.supports_citations):
        report(index, block.type, "rewritten", "citations cannot be sent to this target; the text is kept")
        block = attrs.evolve(block, citations=())
    return _strip_cache(block, index, target, report)


def _call(
    block: ToolUseBlock, index: int, target: Target, report: Report, *, own_state: bool, unfinished: bool
) -> ToolUseBlock | None:
    if not target.capabilities.supports_tools:
        report(index, block.type, "dropped", "this target has no tools")
        return None
    if unfinished and block.parse_error is not None:
        report(index, block.type, "dropped", "the call was cut off before its arguments were whole")
        return None
    if block.signature is not None and not own_state:
        report(index, block.type, "rewritten", "its signature belongs to another origin")
        block = attrs.evolve(block, signature=None)
    return _strip_cache(block, index, target, report)


def _thinking(
    block: ContentBlock, index: int, target: Target, report: Report, *, own_state: bool, unfinished: bool
) -> ContentBlock | None:
    capabilities = target.capabilities
    signed = not isinstance(block, ThinkingBlock) or bool(block.signature)
    if own_state and capabilities.supports_thinking:
        if signed or (capabilities.accepts_unsigned_thinking and not unfinished):
            return block
        reason = "thinking without a signature is refused"
    elif not capabilities.supports_thinking:
        reason = "this target takes no thinking back"
    else:
        reason = "thinking belongs to another origin"
    if target.demote_thinking and isinstance(block, ThinkingBlock) and block.text.strip():
        report(index, block.type, "rewritten", f"{reason}; sent as text because demote_thinking was asked for")
        return TextBlock(text=block.text)
    report(index, block.type, "dropped", reason)
    return None


def media_refusal(block: Any, target: Target) -> str | None:
    """Say why the target cannot take this media block, or None."""
    flag, accepted_name = _MEDIA[type(block)]
    if not getattr(target.capabilities, flag):
        return f"this target takes no {block.type}"
    accepted: tuple[str, ...] = getattr(target.capabilities, accepted_name)
    if block.media_type and accepted and block.media_type not in accepted:
        return f"this target takes no {block.media_type}"
    if block.source.kind == "file_ref":
        return "a file_ref must be resolved to data before sending"
    return None


def _result(block: ToolResultBlock, index: int, target: Target, report: Report) -> ToolResultBlock | None:
    capabilities = target.capabilities
    if not capabilities.supports_tools:
        report(index, block.type, "dropped", "this target has no tools")
        return None
    kept = list(_result_parts(block.content, index, target, report))
    if len(kept) != len(block.content) or any(new is not old for new, old in zip(kept, block.content, strict=True)):
        block = attrs.evolve(block, content=kept)
    return _strip_cache(block, index, target, report)


def _result_parts(
    content: Iterable[ContentBlock], index: int, target: Target, report: Report
) -> Iterable[ContentBlock]:
    for part in content:
        if isinstance(part, TextBlock):
            if part.text:
                yield part
        elif type(part) in _MEDIA:
            reason = media_refusal(part, target)
            if reason:
                report(index, part.type, "rewritten", f"{reason}; a note stands in its place in the result")
                yield TextBlock(text=f"[{part.type} omitted: {reason}]")
            elif target.capabilities.supports_tool_result_images:
                yield part
            else:
                report(index, part.type, "rewritten", "results hold text only here; it follows in a user message")
                yield TextBlock(text=f"[{part.type} in the next message]")
        elif isinstance(part, OpaqueBlock) and part.provider == target.provider:
            yield part
        else:
            report(index, part.type, "dropped", f"a tool result for this target cannot hold {part.type}")


def _strip_cache(block: B, index: int, target: Target, report: Report) -> B:
    if block.cache is None or target.capabilities.supports_prompt_caching:
        return block
    report(index, block.type, "rewritten", "this target has no cache markers; its own caching applies")
    return attrs.evolve(block, cache=None)
