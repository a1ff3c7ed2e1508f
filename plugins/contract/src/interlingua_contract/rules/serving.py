"""Rules on serving: requests are read as written, and answers are written as this API's reader reads them."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from typing import Any

import attrs

from interlingua.errors import (
    AuthenticationError,
    BadRequestError,
    CapabilityError,
    InterlinguaError,
    ModelNotFoundError,
    OverloadedError,
    PermissionDeniedError,
    PluginError,
    RateLimitError,
    ServerError,
)
from interlingua.plugins import EMPTY, WireRequest, WireResponse
from interlingua.types import (
    ContentBlock,
    ErrorEvent,
    Message,
    Origin,
    Role,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
    read_tool_input,
    user,
)
from interlingua_contract.json_paths import MARK, strings
from interlingua_contract.recordings import recorded_answers, spread_places
from interlingua_contract.rule import NotApplicable, RuleFinding, rule
from interlingua_contract.scenes import (
    FOREIGN,
    Law,
    LawBroken,
    assistant_turn,
    check_law,
    mixed_histories,
    offered_tools,
)
from interlingua_contract.served import (
    ASKED,
    Seals,
    decode_stream,
    read_request,
    serve_context,
    served_apis,
    whole_answers,
    written_again,
)
from interlingua_contract.subject import Aim, Subject
from interlingua_serving import ServeContext, answer_events

_STOPS = (StopReason.END_TURN, StopReason.TOOL_USE, StopReason.MAX_TOKENS, StopReason.REFUSAL)
_STATE = "sdor"  # the letters of marks that only the origin may read: signatures, data, opaque content, replay state
_ERRORS = (
    AuthenticationError, PermissionDeniedError, ModelNotFoundError, RateLimitError, OverloadedError, ServerError,
    BadRequestError,
)  # fmt: skip


@rule(
    "C60",
    "A request that the plugin wrote is read back unchanged: written again, it is the same.",
    source="hook from_wire_request",
    fix="""Read every form that `to_wire` writes, in the order of the wire. Put fields that no option expresses into
    `extra` unchanged; if an option expresses a field in another form, keep the exact form there too and list it in
    `covered`.""",
)
def requests_are_read_as_written(subject: Subject) -> Iterator[RuleFinding]:
    """Generated conversations with tools, and the recorded requests."""
    served = served_apis(subject)

    def law(aim: Aim, history: list[Message]) -> None:
        if aim.api in served:
            _check_request(subject, subject.write(aim, history, offered_tools(aim)), aim.model)

    yield from check_law(subject, law, mixed_histories(subject))
    for exchange in subject.exchanges:
        api, model = subject.api_of(exchange), subject.model_of(exchange)
        if exchange.good and api in served and isinstance(exchange.request, dict):
            body = json.dumps(exchange.request).encode()
            request = WireRequest(path=exchange.uri, body=body, api=str(api))
            try:
                _check_request(subject, written_again(subject, request, model), model)
            except (InterlinguaError, LawBroken) as error:
                yield RuleFinding(str(error), exchange.cassette)


def _check_request(subject: Subject, request: WireRequest, model: str) -> None:
    again = written_again(subject, request, model)
    first, second = _said(json.loads(request.body)), _said(json.loads(again.body))
    if first != second:
        different = [name for name in {*first, *second} if first.get(name) != second.get(name)]
        before, after = [{name: body.get(name) for name in different} for body in (first, second)]
        why = f"{', '.join(sorted(different))} is read and written again as something else"
        raise LawBroken(why, (json.dumps(before, ensure_ascii=False), json.dumps(after, ensure_ascii=False)))


def _said(value: Any) -> Any:
    """Return JSON without members that say nothing: null, and empty text."""
    if isinstance(value, dict):
        return {name: _said(item) for name, item in value.items() if item is not None and item != ""}
    return [_said(item) for item in value] if isinstance(value, list) else value


@rule(
    "C61",
    "A whole answer of any provider reads the same in this API: text, thinking, calls, stop reason, counts.",
    source="hook to_wire_response",
    fix="""Write every block that this API can express, in order; report the others as losses, or put them into a
    seal. Counts are inclusive here: split them as the API counts.""",
)
def whole_answers_say_the_same(subject: Subject) -> Iterator[RuleFinding]:
    """Generated answers of this and another origin, and the recorded ones."""
    yield from _each_answer(subject, _check_whole)


def _check_whole(subject: Subject, api: str, message: Message, context: ServeContext) -> None:
    response = subject.serving.to_wire_response(message, context)
    if response.status != 200:
        raise LawBroken(f"a good answer is written with status {response.status}")
    _check_same(message, subject.provider.from_wire_response(response, subject.context_for(api, ASKED)))


@rule(
    "C62",
    "A streamed answer says the same as the whole one, however its events are grouped.",
    source="hook stream_to_wire",
    fix="""Keep the writer's state in the object that the hook returns. The bytes must not depend on the number of
    events that one call of `feed` brings, except for parts that readers ignore, such as pings.""",
)
def streams_say_the_same(subject: Subject) -> Iterator[RuleFinding]:
    """The same answers, their events one by one and all at once."""
    yield from _each_answer(subject, _check_stream)


def _check_stream(subject: Subject, api: str, message: Message, context: ServeContext) -> None:
    events = answer_events(message)
    for reads in ([[event] for event in events], [list(events)]):
        writer = subject.serving.stream_to_wire(context)
        body = b"".join([writer.feed(read) for read in reads]) + writer.end()
        for size in (0, 7):
            _check_same(message, decode_stream(subject, api, body, size).message())
        if writer.feed(events) or writer.end():
            raise LawBroken("bytes follow the end of a stream")


def _each_answer(
    subject: Subject, check: Callable[[Subject, str, Message, ServeContext], None]
) -> Iterator[RuleFinding]:
    """Hold a check against generated answers and recorded ones, each with seals."""
    served = served_apis(subject)

    def law(aim: Aim, history: list[Message]) -> None:
        for message in whole_answers(history):
            check(subject, aim.api, message, _sealing(subject, aim.api, message))

    yield from _check_answers(subject, law, served)
    try:
        recorded = recorded_answers(subject)
    except NotApplicable:
        return
    for exchange, message in recorded:
        api = subject.api_of(exchange)
        if api in served and message.metadata.stop_reason is not StopReason.ERROR:
            try:
                check(subject, str(api), message, _sealing(subject, str(api), message))
            except (InterlinguaError, LawBroken) as error:
                yield RuleFinding(str(error), exchange.cassette)


def _check_answers(subject: Subject, law: Law, apis: Collection[str]) -> Iterator[RuleFinding]:
    """Run a law about answers, which no model of this provider makes different: on one model of each API."""
    aims = {aim.api: aim for aim in reversed(subject.aims) if aim.api in apis}
    yield from check_law(subject, law, mixed_histories(subject, turns=2, marked=True), aims=list(aims.values()))


def _sealing(subject: Subject, api: str, message: Message, **facts: Any) -> ServeContext:
    seals = Seals()
    origin = message.metadata.origin
    return serve_context(subject, api, origin, **({"seal": seals.seal, "unseal": seals.unseal} | facts))


def _check_same(message: Message, read: Message) -> None:
    broken = any(call.parse_error for call in message.tool_calls)  # an API that wants an object gets another one
    for what, wanted, found in zip(("texts", "thinking", "calls"), _facts(message), _facts(read), strict=True):
        if wanted != found and not (broken and what == "calls"):
            raise LawBroken(f"{what} differ: {wanted!r:.200} became {found!r:.200}")
    for call in read.tool_calls:
        if call.raw_input is not None and (call.input, call.parse_error) != read_tool_input(call.raw_input):
            raise LawBroken(f"{call.raw_input!r:.100} is read as {call.input!r:.100}, error {call.parse_error!r}")
    reason = message.metadata.stop_reason
    if reason is StopReason.TOOL_USE and not message.tool_calls:
        reason = None  # it waits for a tool of its service, which no other has
    if reason in _STOPS and read.metadata.stop_reason is not reason:
        raise LawBroken(f"stop reason {reason} became {read.metadata.stop_reason}")
    before, after = message.metadata.usage, read.metadata.usage
    for name in ("input_tokens", "output_tokens"):
        count = getattr(before, name)
        if count is not None and getattr(after, name, None) != count:
            raise LawBroken(f"{name} {count} became {getattr(after, name, None)}")


def _facts(message: Message) -> tuple[Any, ...]:
    calls = [(call.name, call.input) for call in message.tool_calls]
    return message.text, "".join([block.text for block in message.thinking_blocks]), calls


@rule(
    "C63",
    "An interrupted or failed answer never looks finished.",
    source="hook stream_to_wire",
    fix="""Write the API's own error event for every `ErrorEvent` and for `end()` without a `MessageComplete`. In
    these cases write neither a stop reason nor an end mark.""",
)
def cut_answers_do_not_look_finished(subject: Subject) -> Iterator[RuleFinding]:
    """An answer broken off at every event, silently and with an error."""
    message = _sample(FOREIGN)
    for api in served_apis(subject):
        events = answer_events(message)[:-1]
        for at in spread_places(len(events) + 1):
            for error in (None, ServerError("contract")):
                writer = subject.serving.stream_to_wire(_sealing(subject, api, message))
                given = [*events[:at], *([ErrorEvent(error=error)] if error else [])]
                body = writer.feed(given) + writer.end()
                decoder = decode_stream(subject, api, body)
                if decoder.complete or decoder.failed is None:
                    how = "an error" if error else "no end"
                    yield RuleFinding(f"a stream with {how} after {at} events is read as a whole answer", api)
                    return


def _sample(origin: Origin) -> Message:
    """Return an answer that thinks, speaks and calls."""
    content: list[ContentBlock] = [
        ThinkingBlock(text="First.", signature="c2ln"),
        TextBlock(text="Let me see."),
        ToolUseBlock(id="tu_01KAKDPZ000000000000000001", name="read_file", input={"path": "a"}),
    ]
    (made,) = whole_answers([assistant_turn(content, origin)])
    return made


@rule(
    "C64",
    "An answer reports the requested model, and has its own ids.",
    source="hook to_wire_response; hook stream_to_wire",
    fix="""Write `context.model`, never the model that answered: clients drop reasoning of another model. Derive the
    answer's id from `context.answer_id`: clients merge answers that share an id. Take time and ids from the
    context.""",
    needs=("cassettes",),
)
def answers_have_names_of_their_own(subject: Subject) -> Iterator[RuleFinding]:
    """One answer under two ids, whole and streamed."""
    message = _sample(FOREIGN)
    for api in served_apis(subject):
        for how, write in (("whole", _whole_bytes), ("streamed", _stream_bytes)):
            bodies = [
                write(subject, message, _sealing(subject, api, message, answer_id=name, new_id=lambda name=name: name))
                for name in ("01KAKDPZ0000000000000000AA", "01KAKDPZ0000000000000000BB")
            ]
            if FOREIGN.model.encode() in bodies[0]:
                yield RuleFinding(f"the {how} answer reports the model that answered, not the requested one", api)
            if _says_models(subject, api) and ASKED.encode() not in bodies[0]:
                yield RuleFinding(f"the {how} answer does not say the model that was asked for", api)
            if bodies[0] == bodies[1] and _says_ids(subject, api):
                yield RuleFinding(f"two {how} answers have the same id", api)
            if write(subject, message, _sealing(subject, api, message)) != write(
                subject, message, _sealing(subject, api, message)
            ):
                yield RuleFinding(f"written twice, the {how} answer is not the same", api)


def _whole_bytes(subject: Subject, message: Message, context: ServeContext) -> bytes:
    return subject.serving.to_wire_response(message, context).body


def _stream_bytes(subject: Subject, message: Message, context: ServeContext) -> bytes:
    writer = subject.serving.stream_to_wire(context)
    return writer.feed(answer_events(message)) + writer.end()


def _says(subject: Subject, api: str, told: Callable[[Any], bool]) -> bool:
    """Tell whether recorded answers of an API have a feature; without recordings, assume that they do."""
    bodies = [each for each in subject.exchanges if each.good and subject.api_of(each) == api and not each.streamed]
    return not bodies or any(isinstance(body := json.loads(each.body), dict) and told(body) for each in bodies)


def _says_models(subject: Subject, api: str) -> bool:
    return _says(subject, api, lambda body: bool({"model", "modelVersion"} & set(body)))


def _says_ids(subject: Subject, api: str) -> bool:
    return _says(subject, api, lambda body: bool({"id", "responseId"} & set(body)))


@rule(
    "C65",
    "An answer that a caller sends back has its text, thinking and calls, and the sealed state of its origin.",
    source="hook to_wire_response; hook from_wire_request",
    fix="""Seal the state that `AnswerState` collects into a field that callers send back. When the answer is read
    again, put the state before its block, for `restore_answer`. List the fields that callers send back in
    quirks.echoed.""",
)
def sealed_state_comes_back(subject: Subject) -> Iterator[RuleFinding]:
    """Generated answers of another origin, whole, sent back as they were written."""
    served = served_apis(subject)
    echoed = {api: path for api, path in subject.quirks.echoed.items() if api in served}
    if not echoed:
        raise NotApplicable("quirks.echoed names nothing that callers send back")

    def law(aim: Aim, history: list[Message]) -> None:
        for message in whole_answers(history):
            if message.metadata.provider == FOREIGN.provider:
                _check_echo(subject, aim, message, echoed[aim.api])

    yield from _check_answers(subject, law, tuple(echoed))


def _check_echo(subject: Subject, aim: Aim, message: Message, path: str) -> None:
    context = _sealing(subject, aim.api, message)
    response = subject.serving.to_wire_response(message, context)
    part: Any = json.loads(response.body)
    for name in path.split("/")[1:]:
        part = part[int(name)] if isinstance(part, list) else part[name]
    request = subject.write(aim, [user("q")])
    body = json.loads(request.body)
    place = subject.quirks.elements.get(aim.api, "messages").split()[0]
    body[place] += part if isinstance(part, list) else [part]
    read = read_request(
        subject,
        attrs.evolve(request, body=json.dumps(body).encode()),
        seal=context.seal,
        unseal=context.unseal,
    )
    (back,) = [each for each in read.messages if each.role is Role.ASSISTANT]
    if _facts(message) != _facts(back) and not any(call.parse_error for call in message.tool_calls):
        raise LawBroken(f"{_facts(message)!r:.300} came back as {_facts(back)!r:.300}")
    wanted, found = _state_of(message), _state_of(back)
    if back.metadata.origin != message.metadata.origin:
        if any(wanted):
            raise LawBroken(f"the origin {message.metadata.origin} became {back.metadata.origin}")
    elif wanted != found:
        raise LawBroken(f"state {wanted!r:.300} came back as {found!r:.300}")


def _state_of(message: Message) -> list[Any]:
    """Return signatures, issued ids and content that only the origin reads, in order."""
    found = [
        (block.type, getattr(block, "signature", None) or None, getattr(block, "data", None))
        for block in message.content
        if getattr(block, "signature", None) or getattr(block, "data", None)
    ]
    issued = [call.provider_id for call in message.tool_calls if call.provider_id]
    raw = message.metadata.provider_raw or EMPTY
    replay = raw.get("replay") or {}
    origin = raw["origin"] if replay else ()
    return [*found, *issued, *origin, *[leaf for _, leaf in strings(replay)]]


@rule(
    "C66",
    "In an answer of another origin, state that only its origin can read is inside the seal and nowhere else.",
    source="hook to_wire_response; hook stream_to_wire",
    fix="""Write signatures, encrypted reasoning, opaque blocks and replay state of another origin only into the
    seal. Without a seal, drop them with a row in the writer's losses; never put them into a TextBlock.""",
)
def state_is_never_text(subject: Subject) -> Iterator[RuleFinding]:
    """Generated answers of another origin, with a mark in everything opaque; with a seal and without."""
    served = served_apis(subject)

    signed = ThinkingBlock(text="plan", signature="mks0q")  # others are drawn, and not by every seed
    sample = _sample(FOREIGN)
    sample = attrs.evolve(sample, content=(signed, *sample.content))

    def law(aim: Aim, history: list[Message]) -> None:
        for message in (sample, *whole_answers(history)):
            if message.metadata.provider != FOREIGN.provider:
                continue
            for facts in ({}, {"seal": None}):
                context = _sealing(subject, aim.api, message, **facts)
                for write in (_whole_bytes, _stream_bytes):
                    text = write(subject, message, context).decode()
                    shown = [mark for mark in MARK.findall(text) if mark[2] in _STATE]
                    if shown:
                        raise LawBroken(f"{shown[0]!r}, which only its origin reads, is in the answer")

    yield from _check_answers(subject, law, served)


@rule(
    "C67",
    "A failure is written as this API's own error: read again, it has the same class and delay.",
    source="hook to_wire_error",
    fix="""Write each class of errors with the status and the words that `from_wire_error` reads as that class, and
    the delay as `retry-after`. The text of a PluginError is for you, not for callers.""",
)
def errors_keep_their_class(subject: Subject) -> Iterator[RuleFinding]:
    """Seven classes, and a fault of this side."""
    for api in served_apis(subject):
        context = serve_context(subject, api)
        for kind in _ERRORS:
            response = subject.serving.to_wire_error(kind("contract words", retry_after=7.0), context)
            read = subject.provider.from_wire_error(response, subject.context_for(api, ASKED))
            if type(read) is not kind:
                yield RuleFinding(f"{kind.__name__} is read as {type(read).__name__} at {response.status}", api)
            elif "contract words" not in read.message:
                yield RuleFinding(f"the message of {kind.__name__} is lost", api)
            elif read.retry_after != 7.0:
                yield RuleFinding(f"the delay of {kind.__name__} became {read.retry_after}", api)
        failure: WireResponse = subject.serving.to_wire_error(PluginError("contract secret"), context)
        if failure.status < 500 or b"contract secret" in failure.body:
            yield RuleFinding(f"the caller sees an internal fault, with status {failure.status}", api)
        refused = subject.serving.to_wire_error(CapabilityError("contract words", path="x"), context)
        if not 400 <= refused.status < 500:
            yield RuleFinding(f"a CapabilityError is written with status {refused.status}", api)
