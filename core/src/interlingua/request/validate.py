"""Check messages against the rules: each one, and a conversation as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC
from operator import is_

import attrs

from interlingua.request import rules as facts
from interlingua.request.rules import (
    ORDER_RULES,
    RULES,
    ULID,
    Learnt,
    Violation,
    i23_inputs_fit_definitions,
    i24_tool_names_are_unique,
    is_generated,
)
from interlingua.types.blocks import TextBlock, ToolResultBlock, ToolUseBlock
from interlingua.types.messages import NO_METADATA, SCHEMA_VERSION, Message, MessageStatus, Role
from interlingua.types.plain import RESULT, plainness
from interlingua.types.tools import ToolDefinition

_KEY = "interlingua.request.validate"


_REACH = 64  # how many new messages a check may find before it starts over


@attrs.define
class Quiet:
    """What the rules across messages need to know of all that was passed."""

    tools: tuple[ToolDefinition, ...]
    seen: list[Message] = attrs.field(factory=list)
    ids: set[str] = attrs.field(factory=set)
    last_ulid: str = ""
    calls: set[str] = attrs.field(factory=set)
    waiting: set[str] = attrs.field(factory=set)

    def takes(self, message: Message, learnt: Learnt) -> bool:
        """Pass one more message; False when a rule may have something to say."""
        complete, ulid, asked, answered, violations = learnt
        seen, role = self.seen, message.role
        if violations or message.id in self.ids or (seen and message.session_id != seen[0].session_id):
            return False
        if self.waiting and (role is Role.USER or role is Role.ASSISTANT):
            return False
        if ulid:
            if ulid < self.last_ulid:
                return False
            self.last_ulid = ulid
        for _, call in answered:
            if call not in self.waiting:
                return False
            self.waiting.remove(call)
        for _, call in asked:
            if call in self.calls or not complete:
                return False
            self.calls.add(call)
            self.waiting.add(call)
        self.ids.add(message.id)
        seen.append(message)
        return True

    def remember(self) -> None:
        """Leave this with the newest message, for `resumed`."""
        if self.seen:
            newest = self.seen.pop()
            newest.memo[_KEY] = self


def resumed(messages: Sequence[Message], tools: tuple[ToolDefinition, ...]) -> Quiet | None:
    """Take up what was remembered of these very messages and tools, or return None.

    Whoever takes it has it alone: two threads, or two branches of one conversation, never share one.
    """
    for index in range(len(messages) - 1, max(len(messages) - 1 - _REACH, -1), -1):
        quiet: Quiet | None = messages[index].memo.pop(_KEY, None)
        if quiet is not None:
            if len(quiet.seen) != index or quiet.tools != tools or not all(map(is_, quiet.seen, messages)):
                return None
            quiet.seen.append(messages[index])
            return quiet
    return None


_LEARNT = "interlingua.request.validate"


_INPUTS = "interlingua.request.rules"


_LAST_MESSAGE_RULE = 16  # rules with higher numbers are about a conversation
_MESSAGE_RULES: tuple[Callable[[Message], Iterator[Violation]], ...] = tuple(
    function for number, function in sorted(RULES.items()) if number <= _LAST_MESSAGE_RULE
)


def check_message(message: Message) -> tuple[Violation, ...]:
    """Return every violation of the rules on a single message, in order of their numbers; paths are inside it.

    A message that is PARTIAL, CANCELLED or ERROR breaks none (seed 003 §5).
    """
    return _learn(message).violations


def validate_conversation(messages: Sequence[Message], tools: Sequence[ToolDefinition] = ()) -> tuple[Violation, ...]:
    """Return every violation: of each message in order, then across messages, then of the tools.

    Args:
        messages: the conversation; what is known about each is remembered on it, so a grown one costs little.
        tools: the definitions of the request; without them inputs are not checked.
    """
    tools = tuple(tools)
    quiet = resumed(messages, tools)
    if quiet is None:
        if tools and any(i24_tool_names_are_unique(tools)):
            return _everything(messages, tools)
        quiet = Quiet(tools=tools)
    definitions = {tool.name: tool for tool in tools}
    for message in messages[len(quiet.seen) :]:
        learnt = _learn(message)
        if not quiet.takes(message, learnt) or (tools and _inputs(message, learnt, tools, definitions)):
            return _everything(messages, tools)
    quiet.remember()
    return ()


def _everything(messages: Sequence[Message], tools: tuple[ToolDefinition, ...]) -> tuple[Violation, ...]:
    known = [(message, _learn(message)) for message in messages]
    definitions = {tool.name: tool for tool in tools}
    found: list[Violation] = []
    for index, (message, learnt) in enumerate(known):
        inside = learnt.violations + (_inputs(message, learnt, tools, definitions) if tools else ())
        if inside:
            found += _placed(inside, message, index)
    for function in ORDER_RULES:
        found += function(known)
    return (*found, *i24_tool_names_are_unique(tools))


def _learn(message: Message) -> Learnt:
    known: Learnt | None = message.memo.get(_LEARNT)
    if known is None:
        known = message.memo[_LEARNT] = _examine(message)
    return known


def _examine(message: Message) -> Learnt:
    complete = message.metadata.status is MessageStatus.COMPLETE
    generated = complete and facts.is_generated(message) and facts.ULID.fullmatch(message.id) is not None
    violations: tuple[Violation, ...] = ()
    if complete:
        violations = tuple(
            attrs.evolve(violation, message_id=message.id)
            for function in _MESSAGE_RULES
            for violation in function(message)
        )
    return Learnt(
        complete=complete,
        ulid=message.id if generated else "",
        calls=tuple((at, block.id) for at, block in enumerate(message.content) if type(block) is ToolUseBlock),
        results=tuple(
            (at, block.tool_use_id) for at, block in enumerate(message.content) if type(block) is ToolResultBlock
        ),
        violations=violations,
    )


def _inputs(
    message: Message, learnt: Learnt, tools: tuple[ToolDefinition, ...], definitions: Mapping[str, ToolDefinition]
) -> tuple[Violation, ...]:
    if not (learnt.calls and learnt.complete):
        return ()
    checked: tuple[tuple[ToolDefinition, ...], tuple[Violation, ...]] | None = message.memo.get(_INPUTS)
    if checked is None or checked[0] != tools:
        checked = message.memo[_INPUTS] = (tools, tuple(i23_inputs_fit_definitions(message, definitions)))
    return checked[1]


def _placed(violations: Sequence[Violation], message: Message, index: int) -> list[Violation]:
    return [
        attrs.evolve(violation, path=f"messages[{index}].{violation.path}", message_id=message.id)
        for violation in violations
    ]


_BLOCKING = "interlingua.request.validate"


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
        known: tuple[Violation, ...] | None = memo.get(_BLOCKING)
        if known is None:
            known = memo[_BLOCKING] = tuple([one for one in check_message(messages[index]) if not one.repairable])
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
