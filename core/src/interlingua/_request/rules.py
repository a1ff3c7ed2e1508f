"""The rules of the canonical format, numbered as in docs/reference/format.md, Rules, and checking against them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, timedelta
from typing import Any, TypeVar, get_args

import attrs

from interlingua.types.blocks import (
    ChangeBlock,
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
from interlingua.types.messages import SCHEMA_VERSION, Message, MessageStatus, Provenance, Role
from interlingua.types.tools import ToolDefinition

ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")

_SNAKE_CASE = re.compile(r"[a-z][a-z0-9_]*")
_BLOCKS = frozenset(get_args(ContentBlock))
_CARRIED = {OpaqueBlock, UnknownBlock}  # carried unchanged, so no rule applies to them
_MEDIA = frozenset(get_args(MediaBlock))
_IN_RESULTS = {TextBlock, *_MEDIA, *_CARRIED}
_BY_MODELS = {ToolUseBlock, ThinkingBlock, RedactedThinkingBlock}


@attrs.frozen(kw_only=True)
class Violation:
    """One place where a conversation breaks a rule.

    Attributes:
        number: number of the rule, as in docs/reference/format.md.
        rule: the rule's name.
        path: place, such as `messages[3].content[0]`; from `check_message`, without the message.
        message: a description of the violation.
        repairable: True when a request may still be sent: projection repairs it, or no wire carries it.
        message_id: id of the message, if the place is in a message.
    """

    number: int
    rule: str
    path: str
    message: str
    repairable: bool = False
    message_id: str | None = None

    def __str__(self) -> str:
        """Return the rule's number, the place and what is wrong, in one line."""
        return f"I{self.number:02} {self.path}: {self.message}"


_Place = str | tuple[int, str]  # a path; in a conversation, the index of the message and the path in it
_Block = TypeVar("_Block", bound=ContentBlock)
_Found = Iterator[tuple[_Place, str] | tuple[_Place, str, bool]]
RULES: dict[int, _Rule] = {}
STOPS = "Stops a request."
REPORTED = "Reported: no request carries it."


@attrs.frozen
class _Rule:
    """One rule; called with its subject (a message, a conversation or tools), it yields the violations."""

    number: int
    name: str
    holds: str  # the rule, one sentence
    broken: str  # what happens to a request that breaks it
    repairable: bool  # unless a violation says otherwise
    find: Callable[[Any], _Found]  # yields place, sentence and, if it differs, whether this one is repairable

    def __call__(self, subject: Any) -> Iterator[Violation]:
        """Yield the violations."""
        for place, text, *own in self.find(subject):
            index, path = place if isinstance(place, tuple) else (None, place)
            yield Violation(
                number=self.number,
                rule=self.name,
                path=path if index is None else f"messages[{index}].{path}",
                message=text,
                repairable=own[0] if own else self.repairable,
                message_id=None if index is None else subject[index].id,
            )


def rule(broken: str, *, repairable: bool = False) -> Callable[[Callable[[Any], _Found]], _Rule]:
    """Make a function named `iNN_name`, whose docstring is the rule, one of RULES."""

    def register(find: Callable[[Any], _Found]) -> _Rule:
        number, name = int(find.__name__[1:3]), find.__name__[4:]
        made = RULES[number] = _Rule(number, name, find.__doc__ or "", broken, repairable, find)
        return made

    return register


def is_generated(message: Message) -> bool:
    """Return True if a model made this message: by its provenance, or without one if the message has a model."""
    made, model = message.metadata.provenance, message.metadata.model
    return message.role is Role.ASSISTANT and (made is Provenance.GENERATED or (made is None and model is not None))


def _blocks(message: Message, kind: type[_Block]) -> list[tuple[int, _Block]]:
    """Return the blocks of a kind, each with its place."""
    return [(at, block) for at, block in enumerate(message.content) if type(block) is kind]


def _is_complete(message: Message) -> bool:
    """Return False for messages that no rule is about: partial, cancelled, failed."""
    return message.metadata.status is _COMPLETE


@rule("Repaired: the message is left out of the request; a user message is replaced by a placeholder.", repairable=True)
def i01_content_is_not_empty(message: Message) -> _Found:
    """A message other than a system message holds at least one block."""
    if not message.content and message.role is not Role.SYSTEM:
        yield "content", f"a {message.role} message holds nothing"


@rule(STOPS)
def i02_content_holds_blocks(message: Message) -> _Found:
    """Every item of `content` is a content block."""
    for index, block in enumerate(message.content):
        if type(block) not in _BLOCKS:
            yield f"content[{index}]", f"expected a content block, got {type(block).__name__}"


@rule("Repaired if it is media, which is left out; any other block stops a request.")
def i03_system_holds_text(message: Message) -> _Found:
    """A system message holds text and changes, and no other message holds changes."""
    if message.role is not Role.SYSTEM:
        for at, _ in _blocks(message, ChangeBlock):
            yield f"content[{at}]", "only a system message may hold a change", False
        return
    for index, block in enumerate(message.content):
        if type(block) in _BLOCKS and type(block) not in (TextBlock, ChangeBlock, *_CARRIED):
            text = f"a system message holds text and changes, not {block.type}"
            yield f"content[{index}]", text, type(block) in _MEDIA


@rule(STOPS)
def i04_only_assistants_call_and_think(message: Message) -> _Found:
    """Tool calls and thinking are in assistant messages only."""
    if message.role is Role.ASSISTANT:
        return
    for index, block in enumerate(message.content):
        if type(block) in _BY_MODELS:
            text = f"{block.type} in a {message.role} message; only an assistant message may hold it"
            yield f"content[{index}]", text


@rule("Stops a request; of several results in one message each is sent by itself.")
def i05_tool_messages_hold_one_result(message: Message) -> _Found:
    """A tool message holds one tool result and nothing else, and results are in tool messages only."""
    results = 0
    for index, block in enumerate(message.content):
        if (type(block) is ToolResultBlock) is (message.role is Role.TOOL):
            results += type(block) is ToolResultBlock
        elif type(block) in _BLOCKS and type(block) not in _CARRIED:
            text = f"{block.type} in a {message.role} message; tool messages hold results, and nothing else"
            text += ": split_tool_results(message) moves them there" if type(block) is ToolResultBlock else ""
            yield f"content[{index}]", text
    if results > 1:
        yield "content", f"{results} results in one tool message; it answers one call", True


@rule("Repaired: any other block is left out.", repairable=True)
def i06_results_hold_text_and_media(message: Message) -> _Found:
    """A tool result holds text and media."""
    for index, block in _blocks(message, ToolResultBlock):
        for place, part in enumerate(block.content):
            if type(part) in _BLOCKS and type(part) not in _IN_RESULTS:
                yield f"content[{index}].content[{place}]", f"{part.type} in a tool result"


@rule("Reported: a model may invent a name; it is kept and sent in a form that the target takes.", repairable=True)
def i07_called_names_are_canonical(message: Message) -> _Found:
    """The name of a called tool is lower snake_case."""
    for index, block in _blocks(message, ToolUseBlock):
        if not _SNAKE_CASE.fullmatch(block.name):
            yield f"content[{index}].name", f"{block.name!r} is not a canonical tool name"


@rule(STOPS)
def i08_critical_points_at_blocks(message: Message) -> _Found:
    """Every index in `metadata.critical` is the index of a block."""
    for place, index in enumerate(message.metadata.critical):
        if not 0 <= index < len(message.content):
            yield f"metadata.critical[{place}]", f"there is no block {index}"


@rule("Stops a request: the origin decides which ids and which thinking may be sent back.")
def i09_generated_names_its_model(message: Message) -> _Found:
    """A generated message has `model` and `provider`, and the model is `<provider>:<name>`."""
    if not is_generated(message):
        return
    metadata = message.metadata
    if not metadata.provider:
        yield "metadata.provider", "a generated message does not say which provider made it"
    if not metadata.model:
        yield "metadata.model", "a generated message does not say which model made it"
    elif metadata.provider and not metadata.model.startswith(f"{metadata.provider}:"):
        yield "metadata.model", f"model {metadata.model!r} is not one of provider {metadata.provider!r}"


@rule(REPORTED, repairable=True)
def i10_generated_has_routing(message: Message) -> _Found:
    """A generated message has a routing record with the same model."""
    if not is_generated(message):
        return
    routing = message.metadata.routing
    if routing is None:
        yield "metadata.routing", "a generated message has no routing record"
    elif message.metadata.model and routing.chosen_model != message.metadata.model:
        text = f"{routing.chosen_model!r} is not the message's model {message.metadata.model!r}"
        yield "metadata.routing.chosen_model", text


@rule(REPORTED, repairable=True)
def i11_generated_has_usage(message: Message) -> _Found:
    """A generated message has a usage, even if every field is None."""
    if is_generated(message) and message.metadata.usage is None:
        yield "metadata.usage", "a generated message has no usage"


@rule(REPORTED, repairable=True)
def i12_cost_names_its_prices(message: Message) -> _Found:
    """A cost has the `pricing_version` it was computed with, or `source` if another system computed it."""
    usage = message.metadata.usage
    if usage is not None and usage.cost_usd is not None and usage.pricing_version is None:
        yield "metadata.usage.pricing_version", "a cost without its pricing_version"


@rule(STOPS)
def i13_tool_messages_name_their_call(message: Message) -> _Found:
    """A tool message has a `parent_tool_use_id`, and it is the call that its result answers."""
    if message.role is not Role.TOOL:
        return
    parent = message.metadata.parent_tool_use_id
    if parent is None:
        yield "metadata.parent_tool_use_id", "a tool message does not say which call it answers"
        return
    for index, block in _blocks(message, ToolResultBlock):
        if block.tool_use_id != parent:
            yield f"content[{index}].tool_use_id", f"answers {block.tool_use_id!r}, the message says {parent!r}"


@rule(REPORTED, repairable=True)
def i14_generated_ids_are_ulids(message: Message) -> _Found:
    """The id of a generated message is a ULID."""
    if is_generated(message) and not ULID.fullmatch(message.id):
        yield "id", f"{message.id!r} is not a ULID"


@rule(STOPS)
def i15_created_at_is_utc(message: Message) -> _Found:
    """`created_at` is a UTC time."""
    offset = message.created_at.utcoffset()
    if offset != timedelta(0):
        yield "created_at", "has no time zone" if offset is None else f"is {offset} from UTC"


@rule("Reported if it is newer; one below 1 stops a request.")
def i16_schema_version_is_known(message: Message) -> _Found:
    """`schema_version` is 1 or that of a newer format."""
    version = message.schema_version
    if not 1 <= version <= SCHEMA_VERSION:
        yield "schema_version", f"version {version}; this code knows 1 to {SCHEMA_VERSION}", version > SCHEMA_VERSION


@rule(REPORTED, repairable=True)
def i17_one_session(messages: Sequence[Message]) -> _Found:
    """All messages of a conversation have the same `session_id`."""
    first = next((message.session_id for message in messages if _is_complete(message)), None)
    for index, message in enumerate(messages):
        if _is_complete(message) and message.session_id != first:
            yield (index, "session_id"), f"session {message.session_id!r}, the conversation began in {first!r}"


@rule(REPORTED, repairable=True)
def i18_ids_are_unique(messages: Sequence[Message]) -> _Found:
    """No two messages of a conversation have the same id."""
    seen: dict[str, int] = {}
    for index, message in enumerate(messages):
        if _is_complete(message) and seen.setdefault(message.id, index) != index:
            yield (index, "id"), f"{message.id!r} is the id of messages[{seen[message.id]}] too"


@rule(REPORTED, repairable=True)
def i19_generated_ids_increase(messages: Sequence[Message]) -> _Found:
    """The ULIDs of generated messages increase along a conversation."""
    last = ""
    for index, message in enumerate(messages):
        if _is_complete(message) and is_generated(message) and ULID.fullmatch(message.id):
            if message.id < last:
                yield (index, "id"), f"{message.id} was minted before {last}, the id of an earlier message"
            last = max(last, message.id)


@rule("Repaired: the later call gets another id in the request.", repairable=True)
def i20_call_ids_are_unique(messages: Sequence[Message]) -> _Found:
    """No two calls of a conversation have the same id."""
    seen: set[str] = set()
    for index, message in enumerate(messages):
        for place, call in _blocks(message, ToolUseBlock):
            if _is_complete(message) and call.id in seen:
                yield (index, f"content[{place}].id"), f"{call.id!r} is the id of an earlier call too"
            seen.add(call.id)


@rule("Repaired: the result is left out of the request.", repairable=True)
def i21_results_answer_earlier_calls(messages: Sequence[Message]) -> _Found:
    """A tool result answers an earlier call, and no call is answered twice."""
    open_calls: dict[str, bool] = {}
    for index, message in enumerate(messages):
        for place, result in _blocks(message, ToolResultBlock):
            call, known = result.tool_use_id, result.tool_use_id in open_calls
            if _is_complete(message) and not open_calls.get(call):
                text = f"{call!r} {'was answered before' if known else 'is not the id of an earlier call'}"
                yield (index, f"content[{place}].tool_use_id"), text
            if known:
                open_calls[call] = False
        open_calls |= dict.fromkeys([call.id for call in message.tool_calls], True)


@rule("Repaired: a later result is moved to its call, else an error result is filled in.", repairable=True)
def i22_calls_are_answered(messages: Sequence[Message]) -> _Found:
    """A call is answered before the next user or assistant message, unless the conversation ends first."""
    waiting: dict[str, tuple[int, int]] = {}
    for index, message in enumerate(messages):
        if message.role is Role.USER or message.role is Role.ASSISTANT:
            for call, (asked, place) in waiting.items():
                yield (asked, f"content[{place}]"), f"{call!r} has no answer before messages[{index}]"
            waiting.clear()
        for result in message.tool_results:
            waiting.pop(result.tool_use_id, None)
        if _is_complete(message):
            waiting |= {call.id: (index, place) for place, call in _blocks(message, ToolUseBlock)}


@rule(STOPS)
def i23_tool_names_are_unique(tools: Sequence[ToolDefinition]) -> _Found:
    """No two tools of a request have the same name."""
    seen: dict[str, int] = {}
    for index, tool in enumerate(tools):
        if seen.setdefault(tool.name, index) != index:
            yield f"tools[{index}].name", f"{tool.name!r} is the name of tools[{seen[tool.name]}] too"


MESSAGE_RULES = tuple(RULES[number] for number in range(1, 17))
CONVERSATION_RULES = tuple(RULES[number] for number in range(17, 23))
_COMPLETE = MessageStatus.COMPLETE  # an enum's member is slow to look up before Python 3.12
_ASSISTANT, _TOOL = Role.ASSISTANT, Role.TOOL
_BY_ASSISTANTS = frozenset((TextBlock, *_BY_MODELS))
_ONLY_TEXT = frozenset((TextBlock,))


def check_message(message: Message) -> tuple[Violation, ...]:
    """Return every violation of the rules about a single message, in order of their numbers; paths are inside it.

    A message that is PARTIAL, CANCELLED or ERROR breaks none (format.md, Status and errors).
    """
    if not _is_complete(message):
        return ()
    return tuple([attrs.evolve(found, message_id=message.id) for check in MESSAGE_RULES for found in check(message)])


def validate_conversation(messages: Sequence[Message], tools: Sequence[ToolDefinition] = ()) -> tuple[Violation, ...]:
    """Return every violation: of each message in order, then across messages, then of the request's tools."""
    found: list[Violation] = []
    for index, message in enumerate(messages):
        found += locate_violations(check_message(message), index)
    for check in CONVERSATION_RULES:
        found += check(messages)
    return (*found, *i23_tool_names_are_unique(tools))


def locate_violations(violations: Iterable[Violation], index: int) -> list[Violation]:
    """Return violations of one message with the message's place in their paths."""
    return [attrs.evolve(one, path=f"messages[{index}].{one.path}") for one in violations]


def is_plain(message: Message) -> bool:
    """Return True for messages that break no rule which stops a request, and hold no media: most are such.

    Running the rules costs ten times as much, and a long history is checked before its first request.
    """
    metadata, content, role = message.metadata, message.content, message.role
    if message.created_at.tzinfo is not UTC or message.schema_version != SCHEMA_VERSION or metadata.critical:
        return False
    if role is _ASSISTANT:
        model, provider = metadata.model, metadata.provider
        named = model is not None and provider and model.startswith(f"{provider}:")
        if not named and (model is not None or metadata.provenance is not None):
            return False
        return _BY_ASSISTANTS.issuperset(map(type, content))
    if role is _TOOL:
        if len(content) != 1 or type(content[0]) is not ToolResultBlock:
            return False
        if content[0].tool_use_id != metadata.parent_tool_use_id:
            return False
        content = content[0].content
    return _ONLY_TEXT.issuperset(map(type, content))
