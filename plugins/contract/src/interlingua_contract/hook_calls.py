"""Calls of every hook, as a client makes them that serves several users at once; runs of them can be compared."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any

import attrs

from interlingua.errors import CapabilityError, InterlinguaError
from interlingua.plugins import ConnectionSettings, RequestContext, WireRequest, WireResponse
from interlingua.types import (
    CacheHint,
    ImageBlock,
    MediaSource,
    Message,
    TextBlock,
    ToolDefinition,
    system,
    tool_result,
    user,
)
from interlingua_cli.cassettes import RecordedExchange
from interlingua_contract.facts import SCHEMA
from interlingua_contract.follow_ups import find_follow_up, read_chains
from interlingua_contract.guard import record_logs
from interlingua_contract.json_paths import leaves
from interlingua_contract.recordings import (
    Frames,
    aim_for,
    json_payloads,
    make_decoder,
    read_stream,
    read_whole,
    replay_history,
)
from interlingua_contract.rule import NotApplicable
from interlingua_contract.scenes import FOREIGN, READ, assistant_turn, call
from interlingua_contract.served import COUNTED, serve_context, served_apis
from interlingua_contract.signing import read_credentials, secret_headers
from interlingua_contract.subject import Aim, Subject
from interlingua_serving import answer_events

_AIMS_PER_API = 2
_EXCHANGES_PER_FORM = 3
_MEMBERS = 16

_SAME_NAME = attrs.evolve(READ, description="Read one file of this project.", input_schema={"type": "object"})
_APART = {
    **dict.fromkeys(("a question", "another question of the same length", "a long question"), "questions"),
    **dict.fromkeys(("a tool", "another tool of the same name"), "tools"),
    **dict.fromkeys(("a schema", "another schema of the same name"), "schemas"),
    **dict.fromkeys(("a picture one", "a picture two"), "pictures"),
}
"""Name of a conversation -> group in which no two are written alike."""
_OTHER_SCHEMA = {**SCHEMA, "properties": {"mkq1q": {"type": "integer"}}}


@attrs.frozen
class HookCall:
    """One call of a hook, or a few that belong together.

    Attributes:
        name: the call and its argument, for messages.
        make: calls it.
        apart: calls with the same word here ask for different things, so that no two of them have one result.
        alike: calls with the same word here ask for the same thing, so that all have one result.
    """

    name: str
    make: Callable[[], Any]
    apart: str = ""
    alike: str = ""

    def result(self) -> str:
        """Return what the hook returns or raises, as a string that is equal for equal results."""
        with record_logs():
            try:
                return describe(self.make())
            except NotApplicable:
                return "nothing"
            except Exception as error:  # another run must fail in the same way
                return describe(error)


def describe(value: Any) -> str:
    """Return all of a result as a string, for `repr` cuts long values and leaves out defaults and the bytes of bodies.

    It is without functions, whose addresses differ, and with errors by their fields.
    """
    if isinstance(value, WireRequest):
        rows = [(loss.path, loss.block_type, loss.verdict, loss.reason) for loss in value.losses]
        parts = (value.method, value.path, dict(value.headers), value.body, value.stream, dict(value.echo), rows)
        return f"request {parts!r}"
    if isinstance(value, InterlinguaError):
        return f"{type(value).__name__}({value.args!r}, {_fields_of(value)})"
    if isinstance(value, BaseException):
        return f"{type(value).__name__}({value})"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name!r}: {describe(item)}" for name, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(describe, value)) + "]"
    if getattr(value, "type", None) == "error":
        return f"error event {describe(value.error)}"
    if attrs.has(type(value)):
        fields = [f"{field.name}={describe(getattr(value, field.name))}" for field in attrs.fields(type(value))]
        return f"{type(value).__name__}({', '.join(fields)})"
    return repr(value)


def _fields_of(error: InterlinguaError) -> str:
    names = ("status", "code", "request_id", "retryable", "retry_after", "provider", "model")
    return ", ".join(f"{name}={getattr(error, name, None)!r}" for name in names)


def hook_calls(
    subject: Subject, aims: Sequence[Aim] | None = None, exchanges: Sequence[RecordedExchange] | None = None
) -> list[HookCall]:
    """Return calls of every hook for two users, with some of the models and of the recorded exchanges."""
    aims = _some_aims(subject) if aims is None else aims
    exchanges = some_exchanges(subject) if exchanges is None else exchanges
    calls = [
        *_connections(subject),
        *(one for aim in aims for one in _writings(subject, aim)),
        *(one for exchange in exchanges for one in _readings(subject, exchange)),
        *(one for exchange in _longest(subject, exchanges) for one in incomplete_answers(subject, exchange)),
        *_follow_ups(subject),
        *_failures(subject, exchanges),
        *(one for aim in aims for one in _asides(subject, aim)),
        *_servings(subject, aims),
    ]
    return [attrs.evolve(one, name=f"{one.name} ({number})") for number, one in enumerate(calls)]


def _some_aims(subject: Subject) -> list[Aim]:
    found: dict[str, list[Aim]] = {}
    for aim in subject.aims:
        found.setdefault(aim.api, []).append(aim)
    return [aim for some in found.values() for aim in some[:_AIMS_PER_API]]


def some_exchanges(subject: Subject) -> list[RecordedExchange]:
    """Return a few recorded exchanges of each form, those with the longest answers."""
    forms: dict[tuple[Any, ...], list[RecordedExchange]] = {}
    for exchange in subject.exchanges:
        form = (subject.api_of(exchange), exchange.good, exchange.streamed, _has_calls(exchange))
        forms.setdefault(form, []).append(exchange)
    longest = [sorted(some, key=lambda one: len(one.body), reverse=True) for some in forms.values()]
    return [exchange for some in longest for exchange in some[:_EXCHANGES_PER_FORM]]


def _has_calls(exchange: RecordedExchange) -> bool:
    return exchange.good and (b"tool" in exchange.body or b"unction" in exchange.body)


def _connections(subject: Subject) -> Iterator[HookCall]:
    """Two users, each with its own key, address and environment."""
    variables = subject.connection.env_vars
    keys = [name for name in variables if "_KEY" in name] or variables
    request = _written(subject, subject.aims[0], [user("q")])
    for who in ("one", "two"):
        environ = {name: f"contract-{who}-{name.lower().replace('_', '-')}" for name in variables}
        for what, settings in (
            ("key", ConnectionSettings(api_key=f"key-of-{who}")),
            ("address", ConnectionSettings(api_key=f"key-of-{who}", base_url=f"https://{who}.example/v1")),
            ("environment", ConnectionSettings(environ=environ)),
            ("pair of keys", ConnectionSettings(environ={name: environ[name] for name in keys})),
        ):
            apart = f"connection by {what}" if subject.connection.has_key is False or what == "address" else ""
            yield HookCall(
                f"connection, {what} of user {who}",
                partial(_reach, subject, settings, request, _secret(subject, settings)),
                apart,
            )


def _written(subject: Subject, aim: Aim, history: Sequence[Message], *tools: ToolDefinition, **options: Any) -> Any:
    """Return a request for another hook; None if it is refused."""
    try:
        return subject.write(aim, history, tools, **options)
    except InterlinguaError:
        return None


def _secret(subject: Subject, settings: ConnectionSettings) -> Any:
    """Return what `sign` needs; None if only the service or a file has it. `credentials` may use files and clocks."""
    with suppress(Exception):
        return read_credentials(subject.provider.connection(settings))
    return None


def _reach(subject: Subject, settings: ConnectionSettings, request: WireRequest | None, secret: Any) -> Any:
    made = subject.provider.connection(settings)
    if request is None:
        return made.base_url, dict(made.headers)
    url = made.base_url + request.path if made.url is None else made.url(request)
    headers, again = secret_headers(made, request, secret), secret_headers(made, request, secret)
    if again != headers:
        raise ValueError(f"the second attempt has other headers: {sorted(again or ())}, not {sorted(headers or ())}")
    return made.base_url, dict(made.headers), url, headers, made.env_vars, made.has_key


def _writings(subject: Subject, aim: Aim) -> Iterator[HookCall]:
    """Conversations that have much in common, each with its own options."""
    tools = [READ] if aim.capabilities.supports_tools else []
    for name, history, offered, options in _conversations(aim, tools):
        where = f"to_wire, {aim.name}, {name}"
        apart = f"{aim.name}, {_APART[name]}" if name in _APART else ""
        asked = {"user_id": "u" if apart else f"user of {name}", **options}
        yield HookCall(where, partial(subject.write, aim, history, offered, **asked), apart)
        yield HookCall(
            where.replace("to_wire", "estimate_input_tokens"),
            partial(subject.provider.estimate_input_tokens, history, offered, aim.options()),
            f"{aim.name}, estimates" if name in ("a question", "a long question") else "",
        )
    yield HookCall(f"capabilities, {aim.name}", lambda: subject.provider.capabilities(aim.model, aim.options()))


def _conversations(
    aim: Aim, tools: list[ToolDefinition]
) -> Iterator[tuple[str, list[Message], list[ToolDefinition], Mapping[str, Any]]]:
    first = user("Which of the two files is longer?")
    begin = [system("Be brief."), first] if aim.capabilities.supports_system_prompt else [first]
    yield "a question", begin, [], {"max_tokens": 77}
    yield "it, of another user", begin, [], {"max_tokens": 77, "user_id": "other"}
    yield "it, with a temperature", begin, [], {"temperature": 0.25, "stream": True}
    yield "it, answered", [*begin, assistant_turn([TextBlock(text="The first.")], None), user("Why?")], [], {}
    hint = user([TextBlock(text="Which of the two files is longer?", cache=CacheHint())])
    yield "it, with a cache hint", [*begin[:-1], hint], [], {}
    other = [system("Be clear."), first] if len(begin) > 1 else [user("Which of the two files is shorter?")]
    yield "another question of the same length", other, [], {"max_tokens": 77}
    yield "a long question", [*begin[:-1], user("Which of the two files is longer, and why? " * 50)], [], {}
    yield "a stop word", begin, [], {"stop": ("mkstop",)}
    if tools:
        calls = [call(1, "a.txt"), call(2, "b.txt")]
        asked = [*begin, assistant_turn([*calls], None)]
        yield "two results", [*asked, *[tool_result(one, f"{one.input['path']}: 9") for one in calls]], tools, {}
        backwards = [tool_result(one, f"{one.input['path']}: 8") for one in reversed(calls)]
        yield "other results of equal calls", [*asked, *backwards, user("And?")], tools, {}
        yield "a tool", begin, tools, {}
        yield "another tool of the same name", begin, [_SAME_NAME], {}
        yield "a tool that must be used", begin, tools, {"tool_choice": "required"}
    if aim.capabilities.supports_structured_output:
        for name, schema in (("a schema", SCHEMA), ("another schema of the same name", _OTHER_SCHEMA)):
            yield name, begin, [], {"response_schema": schema, "response_name": "mkname"}
    if aim.capabilities.supports_images:
        for words in (b"one picture", b"two picture"):
            source = MediaSource(kind="base64", data=base64.b64encode(words).decode())
            picture = ImageBlock(source=source, media_type="image/png")
            yield f"a picture {words[:3].decode()}", [user([TextBlock(text="Look."), picture])], [], {}


def _readings(subject: Subject, exchange: RecordedExchange) -> Iterator[HookCall]:
    """One answer, as that of two conversations, cut off, and sent back."""
    if not exchange.good:
        return
    name = exchange.cassette
    if exchange.streamed:
        yield HookCall(f"stream_response, {name}", lambda: _said(read_stream(subject, exchange)))
        events = Frames(subject, exchange)
        half = events.join(events.events[: len(events.events) // 2])
        yield HookCall(
            f"stream_response, {name}, cut", lambda: _said(read_stream(subject, exchange, half, broken=True))
        )
        yield HookCall(f"stream_response, {name}, left", lambda: _left(subject, exchange, half))
    else:
        yield HookCall(f"from_wire_response, {name}", lambda: _said(read_whole(subject, exchange)))
        yield HookCall(
            f"from_wire_response, {name}, of another conversation", lambda: _read_elsewhere(subject, exchange)
        )
    message = (read_stream if exchange.streamed else read_whole)(subject, exchange).message
    if message is not None:
        aim, history = aim_for(subject, exchange), replay_history(message)
        yield HookCall(f"to_wire, {name} sent back", lambda: subject.write(aim, history, [READ]))


def _longest(subject: Subject, exchanges: Sequence[RecordedExchange]) -> list[RecordedExchange]:
    """Return the longest good answers of each API, whole and streamed, with calls and without."""
    found: dict[tuple[Any, ...], RecordedExchange] = {}
    for exchange in sorted(exchanges, key=lambda one: len(one.body)):
        if exchange.good:
            found[subject.api_of(exchange), exchange.streamed, _has_calls(exchange)] = exchange
    return list(found.values())


def incomplete_answers(subject: Subject, exchange: RecordedExchange) -> Iterator[HookCall]:
    """One answer without one of its members: what is missing must not come from another answer."""
    frames = Frames(subject, exchange) if exchange.streamed else None
    for name in _member_names(json_payloads(subject, exchange))[:_MEMBERS]:
        change = partial(_without_member, name=name)
        body = frames.changed(change) if frames else json.dumps(change(json.loads(exchange.body))).encode()
        read = partial(_read_said, read_stream if frames else read_whole, subject, exchange, body)
        yield HookCall(f"{exchange.cassette} without {name}", read)


def _read_said(reader: Callable[..., Any], *arguments: Any) -> Any:
    return _said(reader(*arguments))


def _left(subject: Subject, exchange: RecordedExchange, body: bytes) -> Any:
    """Read the beginning of a stream and leave it, as a caller who has seen enough."""
    return make_decoder(subject, exchange).feed(body)


def _member_names(payloads: Sequence[Any]) -> list[str]:
    """Return the names of members: those of the outermost objects, then the others, the rarest first."""
    tops = dict.fromkeys(key for payload in payloads if isinstance(payload, dict) for key in payload)
    counts = Counter(key for payload in payloads for path, _ in leaves(payload) for key in path if isinstance(key, str))
    rarest = sorted(counts, key=lambda name: (counts[name], name))
    return [*tops, *[name for name in rarest if name not in tops]]


def _without_member(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return {key: _without_member(item, name) for key, item in value.items() if key != name}
    return [_without_member(item, name) for item in value] if isinstance(value, list) else value


def _said(read: Any) -> Any:
    return list(read.events), read.message, read.error, read.escaped


def _read_elsewhere(subject: Subject, exchange: RecordedExchange) -> Any:
    """Read an answer as that of another conversation: ids, names of tools and what the request left for it differ."""
    plain, numbers = subject.context(exchange), count(7001)
    context: RequestContext = attrs.evolve(
        plain,
        message_id="01KAKDPZ0000000000000000BB",
        session_id="another",
        mint_tool_use_id=lambda: f"tu_01KAKDPZ000000000000{next(numbers):06d}",
        tool_names={"read_file": "files_read", "get_weather": "weather_get"},
    )
    response = WireResponse(status=exchange.status, headers=exchange.headers, body=exchange.body)
    return subject.provider.from_wire_response(response, context)


def _follow_ups(subject: Subject) -> Iterator[HookCall]:
    """The follow-up of each answer in the cassettes with several requests."""
    for steps in read_chains(subject) if subject.provider.answers_later else ():
        for number, step in enumerate(steps, 1):
            find = partial(find_follow_up, subject, step.answer, step.context)
            yield HookCall(f"follow_up, {step.sent.cassette}, answer {number}", find)


def _failures(subject: Subject, exchanges: Sequence[RecordedExchange]) -> Iterator[HookCall]:
    for exchange in exchanges:
        if not exchange.good:
            yield HookCall(
                f"from_wire_error, {exchange.cassette}",
                partial(_fail, subject, exchange.status, exchange.headers, exchange.body, subject.context(exchange)),
            )
    for status, headers, body in (
        (429, {"retry-after": "7"}, b"{}"),
        (429, {}, b"{}"),
        (500, {"x-request-id": "req-one", "request-id": "req-one"}, b'{"error": {"message": "One."}}'),
        (500, {}, b""),
        (401, {}, b'{"error": {"message": "Two.", "code": "two"}}'),
        (401, {}, b'{"error": {"message": "Three."}}'),
    ):
        for api in subject.apis:
            yield HookCall(
                f"from_wire_error, {api} {status} {body.decode()}",
                partial(_fail, subject, status, headers, body, subject.context_for(api, "m")),
            )


def _fail(subject: Subject, status: int, headers: Mapping[str, str], body: bytes, context: RequestContext) -> Any:
    return subject.provider.from_wire_error(WireResponse(status=status, headers=headers, body=body), context)


def _asides(subject: Subject, aim: Aim) -> Iterator[HookCall]:
    """Counts of two requests, and a batch of both in two orders."""
    asked = {words: _written(subject, aim, [user(words)], max_tokens=9) for words in ("Row x.", "Row y, and more.")}
    for words, request in asked.items():
        yield HookCall(
            f"auxiliary_request, {aim.name}, count of {words}",
            partial(subject.provider.auxiliary_request, "count_tokens", {"request": request}),
            f"{aim.name}, counts",
        )
    pairs = [("x", asked["Row x."]), ("y", asked["Row y, and more."])]
    for rows in (pairs, pairs[::-1], pairs[:1]):
        names = " ".join(name for name, _ in rows)
        asked_for = f"auxiliary_request, {aim.name}, batch of {names}"
        yield HookCall(asked_for, partial(_batch, subject, rows), f"{aim.name}, batches")


def _batch(subject: Subject, pairs: Sequence[tuple[str, WireRequest]]) -> Any:
    if subject.connection.batch_limits is None:
        raise NotApplicable("no batches")
    arguments: dict[str, Any] = {"requests": list(pairs), "name": "contract", "file": "file-1"}
    made: list[Any] = []
    for kind in ("batch_upload", "batch_create"):
        try:
            made.append(subject.provider.auxiliary_request(kind, arguments))
        except CapabilityError as error:
            made.append(error)
    return made


def _servings(subject: Subject, aims: Sequence[Aim]) -> Iterator[HookCall]:
    """Requests of two callers read, and their answers written, two streams in turn."""
    try:
        served = served_apis(subject)
    except NotApplicable:
        return
    for aim in aims:
        if aim.api not in served:
            continue
        for words in ("One asks.", "Two asks something else."):
            tools = [READ] if aim.capabilities.supports_tools and words.startswith("One") else []
            request = _written(subject, aim, [user(words)], *tools, max_tokens=len(words))
            yield HookCall(f"from_wire_request, {aim.name}, {words}", partial(_read_request, subject, request))
    for api in served:
        answers = {who: _answer(who) for who in ("one", "two")}
        has_ids = _has_ids(subject, api, answers["one"])
        for who, answer in answers.items():
            yield HookCall(
                f"to_wire_response, {api}, caller {who}",
                partial(_respond, subject, api, who, answer),
            )
            alone = partial(_streamed, subject, api, {who: answer}, who)
            yield HookCall(f"stream_to_wire, {api}, caller {who}", alone, alike=f"{api} {who}")
            in_turn = partial(_streamed, subject, api, answers, who)
            yield HookCall(f"stream_to_wire, {api}, caller {who} in turn", in_turn, alike=f"{api} {who}")
            same = answers["one"]
            respond = partial(_respond, subject, api, who, same, model="m")
            yield HookCall(
                f"to_wire_response, {api}, the same for {who}", respond, f"{api}, answers" if has_ids else ""
            )
            named = partial(_respond, subject, api, who, same, answer_id="01KAKDPZ0000000000000000AA")
            yield HookCall(f"to_wire_response, {api}, the model of {who}", named, f"{api}, models")
            stream = partial(_streamed, subject, api, {who: same}, who, model="m")
            yield HookCall(f"stream_to_wire, {api}, the same for {who}", stream, f"{api}, streams" if has_ids else "")


def _has_ids(subject: Subject, api: str, message: Message) -> bool:
    """Return True if answers of an API have an id."""
    with suppress(Exception):  # the call itself is compared
        return b"01KAKDPZ000000000000000ONE" in _respond(subject, api, "one", message).body
    return False


def _read_request(subject: Subject, request: WireRequest | None) -> Any:
    if request is None:
        raise NotApplicable("it is refused")
    read = subject.serving.from_wire_request(request, serve_context(subject, request.api, model=""))
    return [(each.role, each.content) for each in read.messages], read.tools, read.options, dict(read.extra)


def _answer(who: str) -> Message:
    made = assistant_turn([TextBlock(text=f"To {who}."), call(1, f"{who}.txt")], FOREIGN)
    counted = attrs.evolve(COUNTED, output_tokens=30 + len(who) * (who == "one"))
    return attrs.evolve(made, metadata=attrs.evolve(made.metadata, usage=counted))


def _context(subject: Subject, api: str, who: str, **facts: Any) -> Any:
    own = {"model": f"contract-model-{who}", "answer_id": f"01KAKDPZ000000000000000{who.upper()}"}
    return serve_context(subject, api, FOREIGN, **(own | facts))


def _respond(subject: Subject, api: str, who: str, message: Message, **facts: Any) -> Any:
    return subject.serving.to_wire_response(message, _context(subject, api, who, **facts))


def _streamed(subject: Subject, api: str, answers: Mapping[str, Message], wanted: str, **facts: Any) -> bytes:
    """Write the streams of callers in turn, event by event, and return one of them."""
    writers = {who: subject.serving.stream_to_wire(_context(subject, api, who, **facts)) for who in answers}
    events = {who: answer_events(message) for who, message in answers.items()}
    out = dict.fromkeys(answers, b"")
    for at in range(max(map(len, events.values()))):
        for who, writer in writers.items():
            out[who] += writer.feed(events[who][at : at + 1])
    return {who: out[who] + writers[who].end() for who in answers}[wanted]
