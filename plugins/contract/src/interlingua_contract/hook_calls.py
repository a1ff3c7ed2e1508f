"""Calls of every hook, as a client makes them that serves several users at once; runs of them can be compared."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import count
from typing import Any

import attrs

from interlingua.errors import CapabilityError, InterlinguaError
from interlingua.plugins import ConnectionSettings, HttpRequest, RequestContext, WireRequest, WireResponse
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
from interlingua_contract.guard import record_logs
from interlingua_contract.recordings import Frames, aim_for, read_stream, read_whole, replay_history
from interlingua_contract.rule import NotApplicable
from interlingua_contract.scenes import FOREIGN, READ, assistant_turn, call
from interlingua_contract.served import COUNTED, answer_events, serve_context, served_apis
from interlingua_contract.subject import Aim, Subject

_AIMS_PER_API = 2
_EXCHANGES_PER_FORM = 3
_SIGNED_AT = datetime(2026, 11, 21, 23, 59, 59, tzinfo=UTC)

_SAME_NAME = attrs.evolve(READ, description="Read one file of this project.", input_schema={"type": "object"})
_OTHER_SCHEMA = {**SCHEMA, "properties": {"mkq1q": {"type": "integer"}}}


@attrs.frozen
class HookCall:
    """One call of a hook, or a few that belong together.

    Attributes:
        name: what is called with what, for messages.
        make: calls it.
    """

    name: str
    make: Callable[[], Any]

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
    """Return a result as a string: without functions, whose addresses differ, and with errors by their fields."""
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
        calls = exchange.good and (b"tool" in exchange.body or b"unction" in exchange.body)
        forms.setdefault((subject.api_of(exchange), exchange.good, exchange.streamed, calls), []).append(exchange)
    longest = [sorted(some, key=lambda one: len(one.body), reverse=True) for some in forms.values()]
    return [exchange for some in longest for exchange in some[:_EXCHANGES_PER_FORM]]


def _connections(subject: Subject) -> Iterator[HookCall]:
    """Two users, each with a key, an address and an environment of their own."""
    variables = subject.connection.env_vars
    request = _written(subject, subject.aims[0], [user("q")])
    for who in ("one", "two"):
        environ = {name: f"contract-{who}-{name.lower().replace('_', '-')}" for name in variables}
        for what, settings in (
            ("key", ConnectionSettings(api_key=f"key-of-{who}")),
            ("address", ConnectionSettings(api_key=f"key-of-{who}", base_url=f"https://{who}.example/v1")),
            ("environment", ConnectionSettings(environ=environ)),
        ):
            yield HookCall(f"connection, {what} of user {who}", partial(_reach, subject, settings, request))


def _written(subject: Subject, aim: Aim, history: Sequence[Message], *tools: ToolDefinition, **options: Any) -> Any:
    """Return a request for another hook; None if it is refused."""
    try:
        return subject.write(aim, history, tools, **options)
    except InterlinguaError:
        return None


def _reach(subject: Subject, settings: ConnectionSettings, request: WireRequest | None) -> Any:
    made = subject.provider.connection(settings)
    if request is None:
        return made.base_url, dict(made.headers)
    headers = dict(made.auth(request))
    url = made.base_url + request.path if made.url is None else made.url(request)
    if made.sign is not None and made.credentials is None:
        outgoing = HttpRequest(request.method, url, dict(request.headers), request.body, _SIGNED_AT)
        headers |= made.sign(outgoing, None)
    return made.base_url, dict(made.headers), url, headers, made.env_vars, made.has_key


def _writings(subject: Subject, aim: Aim) -> Iterator[HookCall]:
    """Conversations that have much in common, each with options of its own."""
    tools = [READ] if aim.capabilities.supports_tools else []
    for name, history, offered, options in _conversations(aim, tools):
        where = f"to_wire, {aim.name}, {name}"
        yield HookCall(where, partial(subject.write, aim, history, offered, **{"user_id": "u", **options}))
        yield HookCall(
            where.replace("to_wire", "estimate_input_tokens"),
            partial(subject.provider.estimate_input_tokens, history, offered, aim.options()),
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
    other = [system("Be polite."), first] if len(begin) > 1 else [user("Which of the two files is older?")]
    yield "another question", other, [], {}
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
    else:
        yield HookCall(f"from_wire_response, {name}", lambda: _said(read_whole(subject, exchange)))
        yield HookCall(
            f"from_wire_response, {name}, of another conversation", lambda: _read_elsewhere(subject, exchange)
        )
    message = (read_stream if exchange.streamed else read_whole)(subject, exchange).message
    if message is not None:
        aim, history = aim_for(subject, exchange), replay_history(message)
        yield HookCall(f"to_wire, {name} sent back", lambda: subject.write(aim, history, [READ]))


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
        )
    pairs = [("x", asked["Row x."]), ("y", asked["Row y, and more."])]
    for rows in (pairs, pairs[::-1], pairs[:1]):
        names = " ".join(name for name, _ in rows)
        yield HookCall(f"auxiliary_request, {aim.name}, batch of {names}", partial(_batch, subject, rows))


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
        for who, answer in answers.items():
            yield HookCall(
                f"to_wire_response, {api}, caller {who}",
                partial(_respond, subject, api, who, answer),
            )
            yield HookCall(f"stream_to_wire, {api}, caller {who}", partial(_streamed, subject, api, {who: answer}))
        yield HookCall(f"stream_to_wire, {api}, two callers in turn", partial(_streamed, subject, api, answers))


def _read_request(subject: Subject, request: WireRequest | None) -> Any:
    if request is None:
        raise NotApplicable("it is refused")
    read = subject.serving.from_wire_request(request, serve_context(subject, request.api, model=""))
    return [(each.role, each.content) for each in read.messages], read.tools, read.options, dict(read.extra)


def _answer(who: str) -> Message:
    made = assistant_turn([TextBlock(text=f"To {who}."), call(1, f"{who}.txt")], FOREIGN)
    counted = attrs.evolve(COUNTED, output_tokens=30 + len(who) * (who == "one"))
    return attrs.evolve(made, metadata=attrs.evolve(made.metadata, usage=counted))


def _context(subject: Subject, api: str, who: str) -> Any:
    return serve_context(
        subject, api, FOREIGN, model=f"contract-model-{who}", answer_id=f"01KAKDPZ000000000000000{who.upper()}"
    )


def _respond(subject: Subject, api: str, who: str, message: Message) -> Any:
    return subject.serving.to_wire_response(message, _context(subject, api, who))


def _streamed(subject: Subject, api: str, answers: Mapping[str, Message]) -> dict[str, bytes]:
    """Write the streams of callers in turn, event by event."""
    writers = {who: subject.serving.stream_to_wire(_context(subject, api, who)) for who in answers}
    events = {who: answer_events(message) for who, message in answers.items()}
    out = dict.fromkeys(answers, b"")
    for at in range(max(map(len, events.values()))):
        for who, writer in writers.items():
            out[who] += writer.feed(events[who][at : at + 1])
    return {who: out[who] + writers[who].end() for who in answers}


def first_difference(one: str, other: str, around: int = 60) -> tuple[str, str]:
    """Return both strings around their first difference."""
    at = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    start = max(at - around // 2, 0)
    return one[start : start + around], other[start : start + around]
