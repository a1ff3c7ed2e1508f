"""Check messages against the rules: each one by itself, and a conversation as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC

import attrs

from interlingua.request.rules import (
    CONVERSATION_RULES,
    MESSAGE_RULES,
    ULID,
    MessageFacts,
    Violation,
    i23_inputs_fit_definitions,
    i24_tool_names_are_unique,
    is_generated,
)
from interlingua.types.blocks import RedactedThinkingBlock, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from interlingua.types.messages import SCHEMA_VERSION, Message, MessageStatus, Role
from interlingua.types.tools import ToolDefinition

_COMPLETE = MessageStatus.COMPLETE  # an enum's member is slow to look up before Python 3.12
_ASSISTANT, _TOOL = Role.ASSISTANT, Role.TOOL
_ALLOWED = frozenset((TextBlock, ToolUseBlock, ThinkingBlock, RedactedThinkingBlock))
_ONLY_TEXT = frozenset((TextBlock,))


def check_message(message: Message) -> tuple[Violation, ...]:
    """Return every violation of the rules about a single message, in order of their numbers; paths are inside it.

    A message that is PARTIAL, CANCELLED or ERROR breaks none (format.md, Status and errors).
    """
    if message.metadata.status is not _COMPLETE:
        return ()
    return tuple(
        attrs.evolve(violation, message_id=message.id) for check in MESSAGE_RULES for violation in check(message)
    )


def validate_conversation(messages: Sequence[Message], tools: Sequence[ToolDefinition] = ()) -> tuple[Violation, ...]:
    """Return every violation: of each message in order, then across messages, then of the tools.

    Args:
        messages: the conversation.
        tools: the definitions of the request; without them the inputs of calls are not checked.
    """
    checked = [(message, _facts_of(message)) for message in messages]
    definitions = {tool.name: tool for tool in tools}
    found: list[Violation] = []
    for index, (message, facts) in enumerate(checked):
        found += located(facts.violations, index)
        if tools and facts.complete and facts.calls:
            inputs = i23_inputs_fit_definitions(message, definitions)
            found += located((attrs.evolve(one, message_id=message.id) for one in inputs), index)
    for check in CONVERSATION_RULES:
        found += check(checked)
    return (*found, *i24_tool_names_are_unique(tools))


def find_blocking_violations(message: Message) -> tuple[Violation, ...]:
    """Return the violations that forbid sending a message: those that projection does not repair."""
    if _cannot_be_refused(message):
        return ()
    return tuple(one for one in check_message(message) if not one.repairable)


def check_sendable(messages: Sequence[Message], tools: Sequence[ToolDefinition] = ()) -> tuple[Violation, ...]:
    """Return what forbids sending a conversation with these tools: `validate_conversation` less the repairable."""
    found: list[Violation] = []
    for index, message in enumerate(messages):
        found += located(find_blocking_violations(message), index)
    return (*found, *i24_tool_names_are_unique(tools))


def located(violations: Iterable[Violation], index: int) -> list[Violation]:
    """Return violations of one message with the message's place in their paths."""
    return [attrs.evolve(one, path=f"messages[{index}].{one.path}") for one in violations]


def _cannot_be_refused(message: Message) -> bool:
    """Return True for the messages most conversations are made of, which break no rule that forbids sending.

    Running the rules costs ten times as much, and a long history is checked before its first request.
    """
    metadata, content, role = message.metadata, message.content, message.role
    if message.created_at.tzinfo is not UTC or message.schema_version != SCHEMA_VERSION or metadata.critical:
        return False
    if role is _ASSISTANT:
        if metadata.model is not None or metadata.provenance is not None:
            model, provider = metadata.model, metadata.provider
            if not model or not provider or not model.startswith(f"{provider}:"):
                return False
        return _ALLOWED.issuperset(map(type, content))
    if role is _TOOL:
        return (
            len(content) == 1
            and type(content[0]) is ToolResultBlock
            and content[0].tool_use_id == metadata.parent_tool_use_id
        )
    return _ONLY_TEXT.issuperset(map(type, content))


def _facts_of(message: Message) -> MessageFacts:
    complete = message.metadata.status is _COMPLETE
    generated = complete and is_generated(message) and ULID.fullmatch(message.id) is not None
    return MessageFacts(
        complete=complete,
        ulid=message.id if generated else "",
        calls=tuple((at, block.id) for at, block in enumerate(message.content) if type(block) is ToolUseBlock),
        results=tuple(
            (at, block.tool_use_id) for at, block in enumerate(message.content) if type(block) is ToolResultBlock
        ),
        violations=check_message(message),
    )
