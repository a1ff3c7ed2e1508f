"""The rules of the canonical format, numbered as in docs/reference/format.md, Rules, and checking against them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, timedelta
from typing import Any, NamedTuple, TypeVar, get_args

import attrs

from interlingua.types.blocks import (
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
from interlingua.types.tools import ToolDefinition, validate_input

R = TypeVar("R", bound=Callable[..., Any])
ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")

RULES: dict[int, Callable[..., Any]] = {}
"""Every rule by its number."""

_SNAKE_CASE = re.compile(r"[a-z][a-z0-9_]*")
_BLOCKS = frozenset(get_args(ContentBlock))
_CARRIED = {OpaqueBlock, UnknownBlock}  # carried as they are, so no rule judges them
_MEDIA = frozenset(get_args(MediaBlock))
_IN_RESULTS = {TextBlock, *_MEDIA, *_CARRIED}
_BY_MODELS = {ToolUseBlock, ThinkingBlock, RedactedThinkingBlock}


@attrs.frozen(kw_only=True)
class Violation:
    """One place where a conversation breaks a rule.

    Attributes:
        number: of the rule, as in docs/reference/format.md.
        rule: the rule's name.
        path: place, such as `messages[3].content[0]`; from `check_message`, without the message.
        message: what is wrong there, for a person.
        repairable: True when a request may still be sent: projection repairs it, or no wire carries it.
        message_id: id of the message, where the place is in one.
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


class MessageFacts(NamedTuple):
    """What the rules about a conversation need to know of one message.

    Attributes:
        complete: False for messages that no rule is about: partial, cancelled, failed.
        ulid: the id of a generated message when it is a ULID, else "".
        calls: (block index, call id) of each tool call.
        results: (block index, call id) of each result.
        violations: of the rules about single messages.
    """

    complete: bool
    ulid: str
    calls: tuple[tuple[int, str], ...]
    results: tuple[tuple[int, str], ...]
    violations: tuple[Violation, ...]


Checked = Sequence[tuple[Message, MessageFacts]]


def rule(function: R) -> R:
    """Register a rule function in RULES; its name `iNN_what_holds` gives number and name."""
    number = int(function.__name__[1:3])
    if number in RULES:
        raise ValueError(f"rule {number} is there twice")
    RULES[number] = function
    return function


def broken(function: Callable[..., Any], path: str, message: str, **facts: Any) -> Violation:
    """Return a violation of a rule."""
    name = function.__name__
    return Violation(number=int(name[1:3]), rule=name[4:], path=path, message=message, **facts)


def is_generated(message: Message) -> bool:
    """Return True when a model made this message: its provenance says so, or it names a model and has no provenance."""
    metadata = message.metadata
    if metadata.provenance is None:
        return message.role is Role.ASSISTANT and metadata.model is not None
    return metadata.provenance is Provenance.GENERATED and message.role is Role.ASSISTANT


def _at(function: Callable[..., object], index: int, path: str, text: str, message: Message) -> Violation:
    where = f"messages[{index}].{path}"
    return broken(function, where, text, repairable=True, message_id=message.id)


@rule
def i01_content_is_not_empty(message: Message) -> Iterator[Violation]:
    """A message other than a system message holds at least one block.

    Repaired: the message is left out of the request; for a user's a text stands that says so.
    """
    if not message.content and message.role is not Role.SYSTEM:
        yield broken(i01_content_is_not_empty, "content", f"a {message.role} message holds nothing", repairable=True)


@rule
def i02_content_holds_blocks(message: Message) -> Iterator[Violation]:
    """Every item of `content` is a content block.

    Stops a request.
    """
    for index, block in enumerate(message.content):
        if type(block) not in _BLOCKS:
            text = f"expected a content block, got {type(block).__name__}"
            yield broken(i02_content_holds_blocks, f"content[{index}]", text)


@rule
def i03_system_holds_text(message: Message) -> Iterator[Violation]:
    """A system message holds text only.

    Repaired where it is media, which is left out; any other block stops a request.
    """
    if message.role is not Role.SYSTEM:
        return
    for index, block in enumerate(message.content):
        if type(block) in _BLOCKS and type(block) is not TextBlock and type(block) not in _CARRIED:
            text = f"a system message holds text only, not {block.type}"
            yield broken(i03_system_holds_text, f"content[{index}]", text, repairable=type(block) in _MEDIA)


@rule
def i04_only_assistants_call_and_think(message: Message) -> Iterator[Violation]:
    """Tool calls and thinking are in assistant messages only.

    Stops a request.
    """
    if message.role is Role.ASSISTANT:
        return
    for index, block in enumerate(message.content):
        if type(block) in _BY_MODELS:
            text = f"{block.type} stands in a {message.role} message; only an assistant message may hold it"
            yield broken(i04_only_assistants_call_and_think, f"content[{index}]", text)


@rule
def i05_tool_messages_hold_one_result(message: Message) -> Iterator[Violation]:
    """A tool message holds one tool result and nothing else, and results are in tool messages only.

    Stops a request; of several results in one message each is sent by itself.
    """
    this = i05_tool_messages_hold_one_result
    results = 0
    for index, block in enumerate(message.content):
        if (type(block) is ToolResultBlock) is (message.role is Role.TOOL):
            results += type(block) is ToolResultBlock
        elif type(block) in _BLOCKS and type(block) not in _CARRIED:
            text = f"{block.type} stands in a {message.role} message; results and only results stand in tool messages"
            text += ": split_tool_results(message) puts them there" if type(block) is ToolResultBlock else ""
            yield broken(this, f"content[{index}]", text)
    if results > 1:
        text = f"{results} results in one tool message; it answers one call"
        yield broken(this, "content", text, repairable=True)


@rule
def i06_results_hold_text_and_media(message: Message) -> Iterator[Violation]:
    """A tool result holds text and media.

    Repaired: any other block is left out.
    """
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
    """The name of a called tool is lower snake_case.

    Reported: a model may invent a name; it is kept and sent in a form that the target takes.
    """
    for index, block in enumerate(message.content):
        if type(block) is ToolUseBlock and not _SNAKE_CASE.fullmatch(block.name):
            text = f"{block.name!r} is not a canonical tool name"
            yield broken(i07_called_names_are_canonical, f"content[{index}].name", text, repairable=True)


@rule
def i08_critical_points_at_blocks(message: Message) -> Iterator[Violation]:
    """Every index in `metadata.critical` is the index of a block.

    Stops a request.
    """
    for place, index in enumerate(message.metadata.critical):
        if not 0 <= index < len(message.content):
            text = f"there is no block {index}"
            yield broken(i08_critical_points_at_blocks, f"metadata.critical[{place}]", text)


@rule
def i09_generated_names_its_model(message: Message) -> Iterator[Violation]:
    """A generated message has `model` and `provider`, and the model is `<provider>:<name>`.

    Stops a request: the origin decides which ids and which thinking may be sent back.
    """
    if not is_generated(message):
        return
    this, metadata = i09_generated_names_its_model, message.metadata
    if not metadata.provider:
        yield broken(this, "metadata.provider", "a generated message does not say which provider made it")
    if not metadata.model:
        yield broken(this, "metadata.model", "a generated message does not say which model made it")
    elif metadata.provider and not metadata.model.startswith(f"{metadata.provider}:"):
        text = f"model {metadata.model!r} is not one of provider {metadata.provider!r}"
        yield broken(this, "metadata.model", text)


@rule
def i10_generated_has_routing(message: Message) -> Iterator[Violation]:
    """A generated message has a routing record that names the same model.

    Reported: no request carries it.
    """
    if not is_generated(message):
        return
    this, routing = i10_generated_has_routing, message.metadata.routing
    if routing is None:
        yield broken(this, "metadata.routing", "a generated message has no routing record", repairable=True)
    elif message.metadata.model and routing.chosen_model != message.metadata.model:
        text = f"{routing.chosen_model!r} is not the message's model {message.metadata.model!r}"
        yield broken(this, "metadata.routing.chosen_model", text, repairable=True)


@rule
def i11_generated_has_usage(message: Message) -> Iterator[Violation]:
    """A generated message has a usage, even where nothing was reported in it.

    Reported: no request carries it.
    """
    if is_generated(message) and message.metadata.usage is None:
        text = "a generated message has no usage"
        yield broken(i11_generated_has_usage, "metadata.usage", text, repairable=True)


@rule
def i12_cost_names_its_prices(message: Message) -> Iterator[Violation]:
    """A cost has the `pricing_version` it was computed with; `source` says that another system computed it.

    Reported: no request carries it.
    """
    usage = message.metadata.usage
    if usage is not None and usage.cost_usd is not None and usage.pricing_version is None:
        text = "a cost without its pricing_version"
        yield broken(i12_cost_names_its_prices, "metadata.usage.pricing_version", text, repairable=True)


@rule
def i13_tool_messages_name_their_call(message: Message) -> Iterator[Violation]:
    """A tool message has a `parent_tool_use_id`, and it is the call that its result answers.

    Stops a request.
    """
    if message.role is not Role.TOOL:
        return
    this, parent = i13_tool_messages_name_their_call, message.metadata.parent_tool_use_id
    if parent is None:
        yield broken(this, "metadata.parent_tool_use_id", "a tool message does not say which call it answers")
        return
    for index, block in enumerate(message.content):
        if type(block) is ToolResultBlock and block.tool_use_id != parent:
            text = f"answers {block.tool_use_id!r}, the message says {parent!r}"
            yield broken(this, f"content[{index}].tool_use_id", text)


@rule
def i14_generated_ids_are_ulids(message: Message) -> Iterator[Violation]:
    """The id of a generated message is a ULID.

    Reported: no request carries it.
    """
    if is_generated(message) and not ULID.fullmatch(message.id):
        yield broken(i14_generated_ids_are_ulids, "id", f"{message.id!r} is not a ULID", repairable=True)


@rule
def i15_created_at_is_utc(message: Message) -> Iterator[Violation]:
    """`created_at` is a UTC time.

    Stops a request.
    """
    offset = message.created_at.utcoffset()
    if offset != timedelta(0):
        text = "has no time zone" if offset is None else f"is {offset} from UTC"
        yield broken(i15_created_at_is_utc, "created_at", text)


@rule
def i16_schema_version_is_known(message: Message) -> Iterator[Violation]:
    """`schema_version` is 1 or that of a newer format.

    Reported where it is newer; one below 1 stops a request.
    """
    version = message.schema_version
    if not 1 <= version <= SCHEMA_VERSION:
        text = f"version {version}; this code knows 1 to {SCHEMA_VERSION}"
        yield broken(i16_schema_version_is_known, "schema_version", text, repairable=version > SCHEMA_VERSION)


@rule
def i17_one_session(known: Checked) -> Iterator[Violation]:
    """All messages of a conversation have the same `session_id`.

    Reported: no request carries it.
    """
    first = next((message.session_id for message, facts in known if facts.complete), None)
    for index, (message, facts) in enumerate(known):
        if facts.complete and message.session_id != first:
            text = f"session {message.session_id!r}, the conversation began in {first!r}"
            yield _at(i17_one_session, index, "session_id", text, message)


@rule
def i18_ids_are_unique(known: Checked) -> Iterator[Violation]:
    """No two messages of a conversation have the same id.

    Reported: no request carries it.
    """
    seen: dict[str, int] = {}
    for index, (message, facts) in enumerate(known):
        if facts.complete and seen.setdefault(message.id, index) != index:
            text = f"{message.id!r} is the id of messages[{seen[message.id]}] too"
            yield _at(i18_ids_are_unique, index, "id", text, message)


@rule
def i19_generated_ids_increase(known: Checked) -> Iterator[Violation]:
    """The ULIDs of generated messages increase along a conversation.

    Reported: no request carries it.
    """
    last = ""
    for index, (message, facts) in enumerate(known):
        if facts.ulid and facts.ulid < last:
            text = f"{facts.ulid} was minted before {last}, which stands before it"
            yield _at(i19_generated_ids_increase, index, "id", text, message)
        last = max(last, facts.ulid)


@rule
def i20_call_ids_are_unique(known: Checked) -> Iterator[Violation]:
    """No two calls of a conversation have the same id.

    Repaired: the later call gets another id in the request.
    """
    seen: set[str] = set()
    for index, (message, facts) in enumerate(known):
        for place, call in facts.calls:
            if facts.complete and call in seen:
                text = f"{call!r} is the id of an earlier call too"
                yield _at(i20_call_ids_are_unique, index, f"content[{place}].id", text, message)
            seen.add(call)


@rule
def i21_results_answer_earlier_calls(known: Checked) -> Iterator[Violation]:
    """A tool result answers a call that stands before it, and no call is answered twice.

    Repaired: the result is left out of the request.
    """
    this = i21_results_answer_earlier_calls
    open_calls: dict[str, bool] = {}
    for index, (message, facts) in enumerate(known):
        for place, call in facts.results:
            if facts.complete and not open_calls.get(call):
                text = f"{call!r} {'was answered before' if call in open_calls else 'is no call that stands before it'}"
                yield _at(this, index, f"content[{place}].tool_use_id", text, message)
            if call in open_calls:
                open_calls[call] = False
        for _, call in facts.calls:
            open_calls[call] = True


@rule
def i22_calls_are_answered(known: Checked) -> Iterator[Violation]:
    """A call is answered before the next user or assistant message, unless the conversation ends first.

    Repaired: an error result is filled in.
    """
    waiting: dict[str, tuple[int, int]] = {}
    for index, (message, facts) in enumerate(known):
        if message.role is Role.USER or message.role is Role.ASSISTANT:
            for call, (asked, place) in waiting.items():
                text = f"{call!r} has no answer before messages[{index}]"
                yield _at(i22_calls_are_answered, asked, f"content[{place}]", text, known[asked][0])
            waiting.clear()
        for _, call in facts.results:
            waiting.pop(call, None)
        if facts.complete:
            waiting.update({call: (index, place) for place, call in facts.calls})


@rule
def i23_inputs_fit_definitions(message: Message, definitions: Mapping[str, ToolDefinition]) -> Iterator[Violation]:
    """The input of a call fits the schema of its tool, where the definition is given.

    Reported: the input is kept, and sent back as the model wrote it.
    """
    this = i23_inputs_fit_definitions
    for index, block in enumerate(message.content):
        definition = definitions.get(block.name) if type(block) is ToolUseBlock else None
        if type(block) is not ToolUseBlock or definition is None:
            continue
        path = f"content[{index}].input"
        if block.parse_error is not None:
            yield broken(this, path, block.parse_error, repairable=True)
            continue
        for found in validate_input(definition, block.input):
            yield broken(this, path + found.path, found.message, repairable=True)


@rule
def i24_tool_names_are_unique(tools: Sequence[ToolDefinition]) -> Iterator[Violation]:
    """No two tools of a request have the same name.

    Stops a request.
    """
    seen: dict[str, int] = {}
    for index, tool in enumerate(tools):
        if seen.setdefault(tool.name, index) != index:
            text = f"{tool.name!r} is the name of tools[{seen[tool.name]}] too"
            yield broken(i24_tool_names_are_unique, f"tools[{index}].name", text)


CONVERSATION_RULES: tuple[Callable[[Checked], Iterator[Violation]], ...] = (
    i17_one_session,
    i18_ids_are_unique,
    i19_generated_ids_increase,
    i20_call_ids_are_unique,
    i21_results_answer_earlier_calls,
    i22_calls_are_answered,
)

MESSAGE_RULES: tuple[Callable[[Message], Iterator[Violation]], ...] = tuple(RULES[number] for number in range(1, 17))
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
