"""What forbids sending a conversation: the violations that no projection repairs, found at the cost of a look.

Never raises and never validates inputs: those, and all rules across messages, are repairable or told to observers.
The room's front door comes in; what was found is remembered on each message.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC

import attrs

from interlingua.blocks import TextBlock, ToolResultBlock, ToolUseBlock
from interlingua.invariants.check import check_message
from interlingua.invariants.facts import is_generated
from interlingua.invariants.inputs import i24_tool_names_are_unique
from interlingua.invariants.violation import Violation
from interlingua.messages import SCHEMA_VERSION, Message, Role
from interlingua.tools import ToolDefinition

_KEY = "interlingua.invariants.sending"


def check_sendable(messages: Sequence[Message], tools: Sequence[ToolDefinition] = ()) -> tuple[Violation, ...]:
    """Return what `check_conversation` would, less the repairable.

    Args:
        messages: the conversation; a message is examined once.
        tools: the definitions of the request.
    """
    found: list[Violation] = []
    for index in [at for at, message in enumerate(messages) if message.memo.get(_KEY) != ()]:
        memo = messages[index].memo
        known: tuple[Violation, ...] | None = memo.get(_KEY)
        if known is None:
            known = memo[_KEY] = _forbidding(messages[index])
        found += [attrs.evolve(one, path=f"messages[{index}].{one.path}") for one in known]
    found += i24_tool_names_are_unique(tools)
    return tuple(found)


def _forbidding(message: Message) -> tuple[Violation, ...]:
    if is_ordinary(message):
        return ()
    return tuple([violation for violation in check_message(message) if not violation.repairable])


def is_ordinary(message: Message) -> bool:
    """Return True when no rule on single messages has anything to say; False only means that they must be asked."""
    metadata, content, role = message.metadata, message.content, message.role
    if (
        message.created_at.tzinfo is not UTC
        or message.schema_version != SCHEMA_VERSION
        or metadata.critical
        or metadata.usage is not None
        or is_generated(message)
        or not content
    ):
        return False
    if role is not Role.TOOL:
        speaks = role is Role.ASSISTANT
        return all(
            type(block) is TextBlock or (speaks and type(block) is ToolUseBlock and _is_plain(block.name))
            for block in content
        )
    (block, *more) = content
    return (
        not more
        and type(block) is ToolResultBlock
        and block.tool_use_id == metadata.parent_tool_use_id
        and all(type(part) is TextBlock for part in block.content)
    )


def _is_plain(name: str) -> bool:
    return name.isascii() and name.isidentifier() and name.islower() and name[0] != "_"
