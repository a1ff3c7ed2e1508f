"""What forbids sending a conversation: the violations that no projection repairs, found at the cost of a look.

Never raises and never validates inputs: those, and all rules across messages, are repairable or told to observers.
The room's front door comes in; what was found is remembered on each message.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC

import attrs

from interlingua.blocks import TextBlock, ToolResultBlock, ToolUseBlock
from interlingua.invariants.check import check_message
from interlingua.invariants.facts import ULID, is_generated
from interlingua.invariants.inputs import i24_tool_names_are_unique
from interlingua.invariants.violation import Violation
from interlingua.messages import NO_METADATA, RESULT, SCHEMA_VERSION, Message, Role, plainness
from interlingua.tools import ToolDefinition

_KEY = "interlingua.invariants.sending"


def extraordinary(messages: Sequence[Message], start: int = 0) -> list[int]:
    """Return the indexes, from `start`, of the messages that are not ordinary: usually none, at the cost of a look."""
    found: list[int] = []
    for at in range(start, len(messages)):
        message = messages[at]
        plain = plainness(message)
        if (
            not plain
            or message.created_at.tzinfo is not UTC
            or message.schema_version != SCHEMA_VERSION
            or not (message.metadata is NO_METADATA if plain is not RESULT else _answers(message))
        ) and not is_ordinary(message):
            found.append(at)
    return found


def check_sendable(
    messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), only: Iterable[int] | None = None
) -> tuple[Violation, ...]:
    """Return what `check_conversation` would, less the repairable.

    Args:
        messages: the conversation; a message is examined once.
        tools: the definitions of the request.
        only: indexes of the messages to examine; None: those that are not ordinary.
    """
    found: list[Violation] = []
    for index in extraordinary(messages) if only is None else only:
        memo = messages[index].memo
        known: tuple[Violation, ...] | None = memo.get(_KEY)
        if known is None:
            known = memo[_KEY] = tuple([one for one in check_message(messages[index]) if not one.repairable])
        found += [attrs.evolve(one, path=f"messages[{index}].{one.path}") for one in known]
    found += i24_tool_names_are_unique(tools)
    return tuple(found)


def _answers(message: Message) -> bool:
    """Tell whether a plain result's metadata name the call that it answers, and nothing that a rule looks at."""
    metadata, block = message.metadata, message.content[0]
    return (
        metadata.parent_tool_use_id == block.tool_use_id  # type: ignore[union-attr]
        and metadata.usage is None
        and not metadata.critical
        and not is_generated(message)
    )


def is_ordinary(message: Message) -> bool:
    """Return True when no rule on single messages has anything to say and nothing in it refers to a file or URL.

    False only means that the rules must be asked.
    """
    metadata, content, role = message.metadata, message.content, message.role
    if (
        message.created_at.tzinfo is not UTC
        or message.schema_version != SCHEMA_VERSION
        or metadata.critical
        or not (_is_whole_answer(message) if is_generated(message) else metadata.usage is None)
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


def _is_whole_answer(message: Message) -> bool:
    """Return True when nothing is wanting that a generated message has (rules 9 to 12 and 14)."""
    metadata = message.metadata
    model, routing, usage = metadata.model, metadata.routing, metadata.usage
    return (
        bool(model and metadata.provider)
        and model.startswith(f"{metadata.provider}:")  # type: ignore[union-attr]
        and routing is not None
        and routing.chosen_model == model
        and usage is not None
        and (usage.cost_usd is None or usage.pricing_version is not None)
        and ULID.fullmatch(message.id) is not None
    )


def _is_plain(name: str) -> bool:
    return name.isascii() and name.isidentifier() and name.islower() and name[0] != "_"
