"""Running the rules: over one message, and over a conversation that was mostly checked before.

Never raises and never changes a message; what it learns about one is remembered on it. The room's front door comes in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs

from interlingua.blocks import ToolResultBlock, ToolUseBlock
from interlingua.invariants import facts, shape
from interlingua.invariants.inputs import i23_inputs_fit_definitions, i24_tool_names_are_unique
from interlingua.invariants.order import ORDER_RULES, Learnt
from interlingua.invariants.quiet import Quiet, resumed
from interlingua.invariants.violation import RULES, Violation
from interlingua.messages import Message, MessageStatus
from interlingua.tools import ToolDefinition

_LEARNT = "interlingua.invariants"
_INPUTS = "interlingua.invariants.inputs"
_MESSAGE_RULES: tuple[Callable[[Message], Iterator[Violation]], ...] = tuple(
    function for _, function in sorted(RULES.items()) if function.__module__ in (shape.__name__, facts.__name__)
)


def check_message(message: Message) -> tuple[Violation, ...]:
    """Return every violation of the rules on a single message, in order of their numbers; paths are inside it.

    A message that is PARTIAL, CANCELLED or ERROR breaks none (seed 003 §5).
    """
    return _learn(message).violations


def check_conversation(messages: Sequence[Message], tools: Sequence[ToolDefinition] = ()) -> tuple[Violation, ...]:
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
