"""Rules on what a message may hold: blocks, and which role may hold which.

Never looks at another message, and is asked only about COMPLETE ones (seed 003 §5). The check module comes in.
Each rule yields every violation, with the path inside the message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import get_args

from interlingua.blocks import (
    ContentBlock,
    MediaBlock,
    OpaqueBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UnknownBlock,
)
from interlingua.invariants.violation import Violation, broken, rule
from interlingua.messages import Message, Role

_BLOCKS = frozenset(get_args(ContentBlock))
_CARRIED = {OpaqueBlock, UnknownBlock}  # core does not understand them, so it judges them nowhere
_MEDIA = frozenset(get_args(MediaBlock))
_IN_RESULTS = {TextBlock, *_MEDIA, *_CARRIED}
_MODEL_SPEAKS = {ToolUseBlock, ThinkingBlock, RedactedThinkingBlock}
_SNAKE_CASE = re.compile(r"[a-z][a-z0-9_]*")


@rule
def i01_content_is_not_empty(message: Message) -> Iterator[Violation]:
    """A message that is not a system message holds at least one block (seed 003 §4.1). Projection leaves it out."""
    if not message.content and message.role is not Role.SYSTEM:
        yield broken(i01_content_is_not_empty, "content", f"a {message.role} message holds nothing", repairable=True)


@rule
def i02_content_holds_blocks(message: Message) -> Iterator[Violation]:
    """Everything in content is a content block (seed 003 §4.2)."""
    for index, block in enumerate(message.content):
        if type(block) not in _BLOCKS:
            text = f"expected a content block, got {type(block).__name__}"
            yield broken(i02_content_holds_blocks, f"content[{index}]", text)


@rule
def i03_system_holds_text(message: Message) -> Iterator[Violation]:
    """A system message holds text only (seed 001, SystemContent). Projection leaves the rest out."""
    if message.role is not Role.SYSTEM:
        return
    for index, block in enumerate(message.content):
        if type(block) in _BLOCKS and type(block) is not TextBlock and type(block) not in _CARRIED:
            text = f"a system message holds text only, not {block.type}"
            yield broken(i03_system_holds_text, f"content[{index}]", text, repairable=type(block) in _MEDIA)


@rule
def i04_only_assistants_call_and_think(message: Message) -> Iterator[Violation]:
    """Tool calls and thinking stand in assistant messages only (seed 001, AssistantContent; seed 003 §4.2)."""
    if message.role is Role.ASSISTANT:
        return
    for index, block in enumerate(message.content):
        if type(block) in _MODEL_SPEAKS:
            text = f"{block.type} stands in a {message.role} message; only an assistant message may hold it"
            yield broken(i04_only_assistants_call_and_think, f"content[{index}]", text)


@rule
def i05_tool_messages_hold_one_result(message: Message) -> Iterator[Violation]:
    """A tool message holds one result and nothing else; results stand nowhere else (seed 003 §3, §4.3; DESIGN 3)."""
    this = i05_tool_messages_hold_one_result
    results = 0
    for index, block in enumerate(message.content):
        if (type(block) is ToolResultBlock) is (message.role is Role.TOOL):
            results += type(block) is ToolResultBlock
        elif type(block) in _BLOCKS and type(block) not in _CARRIED:
            text = f"{block.type} stands in a {message.role} message; results and only results stand in tool messages"
            yield broken(this, f"content[{index}]", text)
    if results > 1:
        text = f"{results} results in one tool message; it answers one call"
        yield broken(this, "content", text, repairable=True)


@rule
def i06_results_hold_text_and_media(message: Message) -> Iterator[Violation]:
    """A result's content is text and media (seed 003 §4.2: usually text, may include images)."""
    for index, block in enumerate(message.content):
        if type(block) is not ToolResultBlock:
            continue
        for place, part in enumerate(block.content):
            if type(part) in _BLOCKS and type(part) not in _IN_RESULTS:
                path = f"content[{index}].content[{place}]"
                text = f"{part.type} stands in a tool result"
                yield broken(i06_results_hold_text_and_media, path, text, repairable=True)


@rule
def i07_called_names_are_canonical(message: Message) -> Iterator[Violation]:
    """A called tool's name is lower snake_case (seed 003 §4.2). A model may invent another; it is kept and reported."""
    for index, block in enumerate(message.content):
        if type(block) is ToolUseBlock and not _SNAKE_CASE.fullmatch(block.name):
            text = f"{block.name!r} is not a canonical tool name"
            yield broken(i07_called_names_are_canonical, f"content[{index}].name", text, repairable=True)


@rule
def i08_critical_points_at_blocks(message: Message) -> Iterator[Violation]:
    """Each index in `metadata.critical` is that of a block (DESIGN 3): a protection of nothing protects nothing."""
    for place, index in enumerate(message.metadata.critical):
        if not 0 <= index < len(message.content):
            text = f"there is no block {index}"
            yield broken(i08_critical_points_at_blocks, f"metadata.critical[{place}]", text)
