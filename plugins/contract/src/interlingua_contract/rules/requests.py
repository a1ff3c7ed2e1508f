"""Rules on writing a request: same arguments, same bytes; nothing the service refuses; a fair estimate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any, get_args

import attrs

from interlingua._request.conversation import ConversationCache
from interlingua._request.project import project_conversation
from interlingua.errors import CapabilityError, PluginError
from interlingua.plugins import ConnectionSettings, WireRequest, build_request, estimate_tokens
from interlingua.types import (
    Effort,
    Message,
    RequestOptions,
    Role,
    SideEffects,
    TextBlock,
    ToolChoice,
    ToolDefinition,
    system,
    tool_result,
    user,
)
from interlingua_cli.lint import lint_request
from interlingua_contract.facts import SCHEMA
from interlingua_contract.guard import watch_side_effects
from interlingua_contract.hook_calls import describe
from interlingua_contract.json_paths import strings
from interlingua_contract.recordings import aim_for, read_answer, recorded_answers
from interlingua_contract.rule import NotApplicable, RuleFinding, rule
from interlingua_contract.scenes import (
    READ,
    LawBroken,
    assistant_turn,
    call,
    check_law,
    media_scenes,
    mixed_histories,
    offered_tools,
    result_image,
    with_tools,
)
from interlingua_contract.subject import Aim, Subject

_PICKY_TOOL = ToolDefinition(
    name="picky",
    description="Mind every field.",
    input_schema={
        "type": "object",
        "properties": {"n": {"type": "integer", "description": ""}, "s": {"type": "string", "format": "date"}},
        "additionalProperties": False,
    },
    side_effects=SideEffects.NONE,
)


@rule(
    "C01",
    "`to_wire` writes the same bytes for the same arguments, whatever was written before.",
    source="format.md, Identity; hook to_wire",
    fix="""Build the body from the arguments alone. Usual causes: an id or a time created while writing, iteration
    over a set, or a module-level counter or cache whose key omits something (the key passed to
    `interlingua.plugins.encode_each` must include everything that the bytes depend on in addition to the message).""",
)
def to_wire_is_deterministic(subject: Subject) -> Iterator[RuleFinding]:
    """The same body from the same façade, from a new one, and from copies of the messages."""
    other = subject.new_provider()

    def law(aim: Aim, drawn: tuple[list[Message], list[Any]]) -> None:
        history, offered = drawn
        options = aim.options()
        cache = ConversationCache()  # as in a client: pieces that were encoded once are used again
        first = build_request(subject.provider, history, offered, options, cache=cache).body
        again = build_request(subject.provider, history, offered, attrs.evolve(options), cache=cache).body
        copies = [attrs.evolve(message) for message in history]
        build_request(other, [user("something else")], [], attrs.evolve(options, max_tokens=77))
        fresh = build_request(other, copies, offered, attrs.evolve(options)).body
        if not first == again == fresh:
            raise LawBroken("the same arguments are written differently", (first, again if again != first else fresh))
        varied = attrs.evolve(options, max_tokens=77)
        unknown = [attrs.evolve(message, id=f"01KAKDPZ{number:018d}") for number, message in enumerate(history)]
        after = build_request(subject.provider, history, [], varied, cache=cache).body
        alone = build_request(other, unknown, [], varied).body
        if after != alone:
            raise LawBroken("with other options the body is still the one of before", (alone, after))

    yield from check_law(subject, law, lambda aim: with_tools(mixed_histories(subject)(aim)))


@rule(
    "C70",
    "A conversation that was edited, forked or extended is written through a client's cache as it is written afresh.",
    source="hook to_wire; format.md, Identity",
    fix="""A piece that `interlingua.plugins.encode_each` keeps belongs to one message object. Do not remember pieces by
    `message.id`, by position or by length: an edited message keeps its id, and a fork has another message at the same
    place. Whatever else a piece depends on (model, options, tools, neighbours) is part of its key.""",
)
def caches_change_nothing(subject: Subject) -> Iterator[RuleFinding]:
    """Each drawn history through one cache: growing, edited, forked, shortened, with other options and models."""
    others: dict[str, Aim] = {aim.api: aim for aim in subject.aims}

    def law(aim: Aim, history: list[Message]) -> None:
        cache = ConversationCache()
        tools = offered_tools(aim)
        for what, messages, wanted, options in _histories_in_turn(aim, others[aim.api], history):
            used = tools if wanted.capabilities.supports_tools else []
            through = _bytes_or_refusal(subject.provider, messages, used, wanted.options(**options), cache)
            copies = [attrs.evolve(message, id=f"01KAKDPZ{next(_fresh):018d}") for message in messages]
            afresh = _bytes_or_refusal(subject.new_provider(), copies, used, wanted.options(**options), None)
            if through != afresh:
                raise LawBroken(f"{what}: through the cache the body differs", (afresh, through))

    yield from check_law(subject, law, mixed_histories(subject, turns=3), share=max(subject.examples // 10, 2))


_fresh = count(10**9)  # ids that no adapter can have remembered


def _histories_in_turn(
    aim: Aim, other: Aim, history: list[Message]
) -> Iterator[tuple[str, list[Message], Aim, Mapping[str, Any]]]:
    half = len(history) // 2 or 1
    first = history[0]
    words = tuple(attrs.evolve(one, text=f"{one.text} edited") if one.type == "text" else one for one in first.content)
    yield "the beginning", history[:half], aim, {}
    yield "extended", history, aim, {}
    yield "another model", history, other, {}
    yield "with other options", history, aim, {"thinking_as_text": True, "max_tokens": 99}
    yield "back with the first model", history, aim, {}
    yield "edited, under the same id", [attrs.evolve(first, content=words), *history[1:]], aim, {}
    yield "forked", [*history[:half], user("a fork")], aim, {}
    yield "shortened", history[:half], aim, {}


def _bytes_or_refusal(provider: Any, messages: Any, tools: Any, options: Any, cache: ConversationCache | None) -> bytes:
    try:
        return build_request(provider, messages, tools, options, cache=cache).body
    except CapabilityError as refused:
        return str(refused).encode()


@rule(
    "C02",
    "`to_wire` does not change its arguments.",
    source="hook to_wire",
    fix="""Values are immutable, and so is the JSON inside them: build new objects. To change a dict of a message,
    copy it with `interlingua.plugins.thaw(value)` first. Store nothing on a message;
    `interlingua.plugins.encode_each` remembers what was written for each message.""",
)
def inputs_are_not_changed(subject: Subject) -> Iterator[RuleFinding]:
    """Arguments look the same after writing as before, opaque state included."""

    def law(aim: Aim, drawn: tuple[list[Message], list[Any]]) -> None:
        history, drawn_tools = drawn
        listed, offered = list(history), [*drawn_tools, _PICKY_TOOL]
        options = aim.options(provider_options={"x_contract": {"a": [1]}})
        before = _snapshot(listed, offered, options)
        build_request(subject.provider, listed, offered, options)
        if _snapshot(listed, offered, options) != before:
            raise LawBroken("the messages, tools or options are not what they were before the call")

    yield from check_law(subject, law, lambda aim: with_tools(mixed_histories(subject)(aim)))


def _snapshot(messages: list[Message], offered: list[Any], options: RequestOptions) -> str:
    return describe([messages, offered, options])


@rule(
    "C03",
    "No hook uses the clock, randomness, the environment, files or the network.",
    source="hooks to_wire, connection and stream_response",
    fix="""Values that change from call to call are core's: read ids and time from the RequestContext and the
    environment from `settings.environ` in `connection`, and compute signatures in the function set as
    `Connection.auth`.""",
)
def hooks_have_no_side_effects(subject: Subject) -> Iterator[RuleFinding]:
    """Watch the interpreter while the pure hooks run."""
    for aim in subject.aims:
        with watch_side_effects() as seen:
            subject.new_provider().models()
            subject.provider.capabilities(aim.model, aim.options())
            subject.provider.connection(ConnectionSettings(api_key="k", api=aim.api))
        if seen:
            yield RuleFinding(f"uses {', '.join(sorted(seen))}", f"{aim.name} capabilities/connection")

    def law(aim: Aim, history: list[Message]) -> None:
        options = aim.options(user_id="u")
        with watch_side_effects() as effects:
            try:
                build_request(subject.provider, history, [READ], options)
            except CapabilityError:
                return
        if effects:
            raise LawBroken(f"to_wire uses {', '.join(sorted(effects))}")

    yield from check_law(subject, law, mixed_histories(subject, turns=2))
    yield from _check_readers(subject)


def _check_readers(subject: Subject) -> Iterator[RuleFinding]:
    """Watch the reading hooks, on two recorded answers of each form."""
    for good, streamed in ((True, False), (True, True), (False, False)):
        chosen = [one for one in subject.exchanges if (one.good, one.streamed) == (good, streamed)]
        for exchange in chosen[:2]:
            read_answer(subject, exchange)  # so that what is imported lazily is imported before the watch
            with watch_side_effects() as effects:
                read_answer(subject, exchange)
            if effects:
                yield RuleFinding(f"reading uses {', '.join(sorted(effects))}", exchange.cassette)


_ASKING = (Role.USER, Role.TOOL)

_OPTIONS: tuple[Mapping[str, Any], ...] = (
    {"temperature": 0.0},
    {"temperature": 0.7, "top_p": 0.5, "top_k": 7},
    {"stop": ("a", "b", "c", "d", "e")},
    {"seed": 0, "user_id": "u", "stream": True},
    {"parallel_tool_calls": False},
    *({"tool_choice": choice} for choice in ("auto", "none", "required", ToolChoice("read_file"))),
    {"response_schema": SCHEMA},
    *({"effort": effort} for effort in get_args(Effort)),
    {"thinking_budget": 2048, "max_tokens": 1024},
    {"effort": "high", "temperature": 0.0, "top_p": 0.5},
    {"effort": "high", "tool_choice": "required"},
    {"effort": "high", "stop": ("a",), "max_tokens": 4321},
    {"thinking_budget": 2048, "temperature": 0.0, "tool_choice": ToolChoice("read_file")},
)


@rule(
    "C52",
    "No request that `to_wire` writes is one that the service is known to reject.",
    source="hook wire_rules",
    fix="""The finding has the wire rule, the place in the body and the section that it comes from. Write that place
    as the service requires, or declare less in the capabilities so that core drops the content first. If the
    service has changed, change the rule file: it must accept everything that the real service accepts.""",
)
def nothing_refused_is_written(subject: Subject) -> Iterator[RuleFinding]:
    """Generated histories of own and foreign origin with a tool, a request per declared medium, and one per option."""
    if not subject.provider.wire_rules:
        raise NotApplicable("the plugin ships no wire rules (hook wire_rules)")

    def law(aim: Aim, history: list[Message]) -> None:
        history = [_without_opaque(message) for message in _cut_after_question(history)]
        projected, _ = project_conversation(history, subject.provider.target(aim.options()))
        if any(message.role is Role.USER for message in projected) and projected[-1].role in _ASKING:
            _check_lint(subject, subject.write(aim, history, [READ]))

    yield from check_law(subject, law, mixed_histories(subject))
    yield from _check_single_requests(subject)


def _check_single_requests(subject: Subject) -> Iterator[RuleFinding]:
    """A request per declared medium, and one per option, alone and together with what it may exclude."""
    for aim in subject.aims:
        for scene in [*media_scenes(), result_image()]:
            if scene.declared(aim.capabilities):
                yield from _check_request(subject, aim, scene.name, scene.history, scene.tools)
        offered = offered_tools(aim)
        for wanted in _OPTIONS:
            if offered or not wanted.keys() & {"tool_choice", "parallel_tool_calls"}:
                yield from _check_request(subject, aim, f"with {', '.join(wanted)}", [user("q")], offered, **wanted)


def _check_request(subject: Subject, aim: Aim, what: str, *parts: Any, **options: Any) -> Iterator[RuleFinding]:
    try:
        _check_lint(subject, subject.write(aim, *parts, **options))
    except CapabilityError:
        return
    except LawBroken as error:
        yield RuleFinding(f"{what}: {error}", aim.name)


def _cut_after_question(history: list[Message]) -> list[Message]:
    """Cut the history after the last user or tool message: many services do not continue an answer."""
    last = max((at for at, message in enumerate(history) if message.role in _ASKING), default=-1)
    return history[: last + 1]


def _without_opaque(message: Message) -> Message:
    """Remove invented kinds of block: no rule of a wire can know what its service never issued."""
    content = [block for block in message.content if block.type != "opaque"]
    return message if len(content) == len(message.content) else attrs.evolve(message, content=content)


def _check_lint(subject: Subject, request: WireRequest) -> None:
    for finding in lint_request(subject.provider, request):
        raise LawBroken(str(finding))


_NO_CONTENT = {"model", "stream", "stream_options", "include"}
_MEDIA = ("data:", "http:", "https:", "file:")
_PROSE = "Every call is answered right after it, in the order of the calls, whatever order they came in. "

_FEWEST_TOKENS = 30
"""Below so many tokens the chat template outweighs the text."""


@rule(
    "C42",
    "The estimate of input tokens lies within the band in the quirks, around the counted value.",
    source="hook estimate_input_tokens",
    fix="""Count characters by script (about four per token for English prose), add a few tokens per message
    and tool, and count images by their known cost. Widen quirks.estimate_band only with measurements.""",
)
def estimates_are_near(subject: Subject) -> Iterator[RuleFinding]:
    """English prose, at four characters a token; more of it, and tools; then the words of each recorded request."""
    for aim in subject.aims[:1]:
        try:
            yield from _check_growth(subject, aim)
        except PluginError:
            yield RuleFinding("the hook estimate_input_tokens is missing, or fails: write it", aim.name)
            return
    yield from _check_any_history(subject)
    low, high = subject.quirks.estimate_band
    for exchange, message in recorded_answers(subject):
        usage = message.metadata.usage
        counted = usage.input_tokens if usage else None
        if usage is None or counted is None or counted < _FEWEST_TOKENS or not isinstance(exchange.request, dict):
            continue
        if usage.cached_input_tokens or usage.cache_creation_input_tokens:
            continue  # a cached prefix may have been shortened in the cassette
        if usage.extra_units and "web_search" in usage.extra_units:
            continue  # what the service's own tools found was counted too
        body = {name: value for name, value in exchange.request.items() if name not in _NO_CONTENT}
        words = [leaf for _, leaf in strings(body)]
        if "tools" in body or any(len(leaf) > 2000 or leaf.startswith(_MEDIA) for leaf in words):
            continue  # what a template makes of tools, or a model of an image, cannot be seen
        found = _estimate_text(subject, aim_for(subject, exchange), "\n".join(words))
        if not low <= found / counted <= high:
            yield RuleFinding(
                f"estimate_input_tokens gave {found}, the service counted {counted}: {found / counted:.2f} of it,"
                f" and quirks.estimate_band allows {low} to {high}; mend it, or state the band you measured",
                exchange.cassette,
            )


def _check_growth(subject: Subject, aim: Aim) -> Iterator[RuleFinding]:
    short, long = (_estimate_text(subject, aim, _PROSE * times) for times in (20, 40))
    low, high = subject.quirks.estimate_band
    expected = len(_PROSE) * 20 / 4
    if not low <= (long - short) / expected <= high:
        yield RuleFinding(
            f"{len(_PROSE) * 20} more characters of prose are estimated at {long - short} tokens", aim.name
        )
    if aim.capabilities.supports_tools and _estimate_text(subject, aim, _PROSE, tools=1) <= _estimate_text(
        subject, aim, _PROSE
    ):
        yield RuleFinding("a tool adds nothing to the estimate", aim.name)
    for what, history in _histories_by_place(aim).items():
        found = [
            estimate_tokens(subject.provider, messages, [], aim.options())
            for messages in (history(""), history(_PROSE * 20))
        ]
        if not low <= (found[1] - found[0]) / expected <= high:
            why = f"{len(_PROSE) * 20} characters of {what} are estimated at {found[1] - found[0]} tokens"
            yield RuleFinding(why, aim.name)


def _histories_by_place(aim: Aim) -> dict[str, Callable[[str], list[Message]]]:
    """Return the places of text, each with a history that takes more text there."""
    tool_call = call(1)
    made: dict[str, Callable[[str], list[Message]]] = {
        "an answer": lambda text: [user("q"), assistant_turn([TextBlock(text=f"a {text}")], None), user("n")]
    }
    if aim.capabilities.supports_system_prompt:
        made["a system prompt"] = lambda text: [system(f"s {text}"), user("q")]
    if aim.capabilities.supports_tools:
        made["a result"] = lambda text: [
            user("q"),
            assistant_turn([tool_call], None),
            tool_result(tool_call, f"r {text}"),
        ]
        made["arguments"] = lambda text: [
            user("q"),
            assistant_turn([attrs.evolve(tool_call, input={"path": f"p {text}"})], None),
            tool_result(tool_call, "r"),
        ]
    return made


def _check_any_history(subject: Subject) -> Iterator[RuleFinding]:
    def law(aim: Aim, history: list[Message]) -> None:
        found = estimate_tokens(subject.provider, history, [READ], aim.options())
        if type(found) is not int or found < 0:
            raise LawBroken(f"the estimate is {found!r}")

    for aim in subject.aims:
        for scene in media_scenes():
            try:
                law(aim, list(scene.history))
            except Exception as error:  # a hook may fail in any way
                yield RuleFinding(f"{scene.name}: {type(error).__name__}: {error}", aim.name)
    yield from check_law(subject, law, mixed_histories(subject, turns=2), share=3)


def _estimate_text(subject: Subject, aim: Aim, text: str, tools: int = 0) -> int:
    options = aim.options()
    return estimate_tokens(subject.provider, [user(text)], [READ] * tools, options)
