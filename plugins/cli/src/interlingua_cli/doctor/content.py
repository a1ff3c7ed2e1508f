"""Blocks of one message that providers refuse: empty text, and what an unfinished answer left half done.

Never looks at another message, and never takes away a block that is marked critical. `examine` comes in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from interlingua.codec.stored import encode_message
from interlingua.types.blocks import ContentBlock, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from interlingua.types.messages import Message, MessageStatus, Role
from interlingua_cli.doctor.finding import Finding
from interlingua_cli.doctor.record import Record

_EMPTY = "REGRESSIONS case 12"


_HALF = "REGRESSIONS case 35"


def check_content(record: Record, findings: list[Finding]) -> bool:
    """Take out of a message what no provider takes; return False when nothing of it is left."""
    half = record.message.metadata.status is not MessageStatus.COMPLETE
    _take_out(record, lambda block: half and _is_half_done(block), "half-done", _HALF, findings)
    _take_out(record, _is_empty_text, "empty-text", _EMPTY, findings)
    _clean_results(record, findings)
    message = record.message
    if message.content or message.role is Role.SYSTEM:
        return True
    was = encode_message(message)
    findings.append(record.finding("empty-message", "", "a message without content", _EMPTY, "removed", was=was))
    return False


def _is_empty_text(block: ContentBlock) -> bool:
    return type(block) is TextBlock and not block.text.strip() and block.signature is None


def _is_half_done(block: ContentBlock) -> bool:
    if type(block) is ToolUseBlock:
        return block.parse_error is not None
    return type(block) is ThinkingBlock and not block.signature


def _take_out(
    record: Record, bad: Callable[[ContentBlock], bool], rule: str, citation: str, findings: list[Finding]
) -> None:
    content, critical = record.message.content, record.message.metadata.critical
    gone = [at for at, block in enumerate(content) if bad(block)]
    kept_critical = [at for at in gone if at in critical]
    for at in kept_critical:
        what = f"{_WHAT[rule]}; it is marked critical and stays"
        findings.append(record.finding(rule, f"content[{at}]", what, citation, hint="change it, or unmark it"))
    gone = [at for at in gone if at not in critical]
    findings += [
        record.finding(rule, f"content[{at}]", _WHAT[rule], citation, "removed", was=record.block(at)) for at in gone
    ]
    if gone:
        record.put(without(record, gone))


_WHAT = {
    "empty-text": "text that says nothing, which providers refuse",
    "half-done": "what an unfinished answer left half done: a call without whole arguments, or unsigned thinking",
}


def without(record: Record, gone: Sequence[int]) -> Message:
    """Return the message without these blocks; what is critical keeps being pointed at."""
    message = record.message
    places = [at for at in range(len(message.content)) if at not in gone]
    new = {at: index for index, at in enumerate(places)}
    critical = tuple(new[at] for at in message.metadata.critical if at in new)
    metadata = attrs.evolve(message.metadata, critical=critical)
    return attrs.evolve(message, content=tuple(message.content[at] for at in places), metadata=metadata)


def _clean_results(record: Record, findings: list[Finding]) -> None:
    """Take empty text out of results that hold more than it."""
    content = list(record.message.content)
    for at, block in enumerate(content):
        if type(block) is not ToolResultBlock or len(block.content) < 2:
            continue
        kept = [part for part in block.content if not _is_empty_text(part)]
        if kept and len(kept) < len(block.content):
            content[at] = attrs.evolve(block, content=kept)
            findings.append(
                record.finding(
                    "empty-text", f"content[{at}].content", _WHAT["empty-text"], _EMPTY, "removed", was=record.block(at)
                )
            )
    if any(new is not old for new, old in zip(content, record.message.content, strict=True)):
        record.put(attrs.evolve(record.message, content=tuple(content)))
