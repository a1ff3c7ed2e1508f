"""Results of a provider's hooks in fixed scenes, and the table of all sections of `approved.jsonl`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import attrs

from interlingua.errors import CallerError, CapabilityError
from interlingua.plugins import Connection, ConnectionSettings, HttpRequest, RequestContext, WireRequest, WireResponse
from interlingua.types import AudioBlock, DocumentBlock, ImageBlock, MediaSource, RequestOptions, StreamEvent
from interlingua_cli.cassettes import RecordedExchange, read_cassette
from interlingua_contract.approved.histories import TOOLS, fixed_answers, fixed_histories
from interlingua_contract.approved.serving import (
    observe_served_answers,
    observe_served_errors,
    observe_served_requests,
)
from interlingua_contract.approved.shown import (
    DEPTHS,
    Asked,
    Shown,
    dated,
    name_of,
    read_messages,
    requests_for,
    result_of,
    show,
    write,
)
from interlingua_contract.approved.values import digest, plain
from interlingua_contract.facts import read_with_odd_strings, read_with_other_words, word_exchanges
from interlingua_contract.follow_ups import find_follow_up, read_chains
from interlingua_contract.hook_calls import incomplete_answers
from interlingua_contract.json_paths import nodes, value_at, with_value
from interlingua_contract.recordings import (
    STREAM_FAULTS,
    Frames,
    ReadResult,
    aim_for,
    is_decision,
    read_answer,
    read_stream,
    read_whole,
    replay_history,
    spread_places,
)
from interlingua_contract.scenes import own_origin
from interlingua_contract.subject import Aim, Subject

_CLOCK = datetime(2026, 11, 21, tzinfo=UTC)
_STATUSES = (400, 401, 402, 403, 404, 408, 409, 413, 418, 422, 429, 500, 502, 503, 504, 529)
_ADDRESS = ("URL", "ENDPOINT", "HOST")
_FILES = ("_FILE", "_PROFILE", "_PATH", "_HOME", "_CREDENTIALS")
_FILE_KINDS = ("upload", "file_status", "delete_file")
_KINDS = ("batch_upload", "batch_create", "batch_status", "batch_cancel", "batch_list", "batch_results")
_NAMED = [{"id": f"Model_{at}", "name": f"models/Model_{at}", "model": f"Model_{at}"} for at in (3, 1, 2)]
_MADE_UP: Mapping[str, Mapping[str, Any]] = {
    "models": {"data": _NAMED, "models": _NAMED, "modelSummaries": [{"modelId": "Model_7"}, {"modelId": "model-8"}]},
    "count_tokens": {"input_tokens": 4321, "totalTokens": 4321, "inputTokens": 4321, "tokens": [3, 1, 2]},
}
"""Answers with the names that services use, for kinds that are small."""

_QUESTIONS: tuple[Mapping[str, Any], ...] = (
    {"id": "Yes_7", "kind": "yes_no", "text": " Is it 7? ", "yes": "It is e\u0301", "no": "It is not"},
    {"id": "Bare_8", "kind": "yes_no", "text": "8?", "yes": None, "no": None},
    {
        "id": "Kind_9",
        "kind": "choice",
        "text": "Which?\r\n",
        "options": {"mkbone": " First ", "mkbtwo": None, "Two": "2"},
    },
    {"id": "How_10", "kind": "scale", "text": "How far?", "levels": ["Low_1", "middle", "Middle", "high "]},
)
_ERROR: Mapping[str, Any] = {"message": " Said_7 ", "type": "Type_7", "code": "Code_7", "param": "P7"}
_ERRORS: Mapping[str, Any] = {
    "error": {"error": _ERROR},
    "flat": _ERROR,
    "detail": {"detail": [{"loc": ["body", "x"], "msg": "Said_8", "type": "Type_8"}]},
}
"""Bodies of failures in forms that services use, for services without a recorded one."""
_ARGUMENTS = ("input", "arguments", "args")
_MEMBER = {"contract_new_field": {"a": [1]}}
_MOST_OBJECTS = 24
_UNKNOWN = {"type": "contract_new_kind", "Payload": "Pay7", "w": 1.0}


def observe_requests(subject: Subject) -> Iterator[Shown]:
    """Yield the requests for fixed conversations, and for recorded answers sent back."""
    for aim in subject.aims:
        for asked in requests_for(subject, aim):
            depth = DEPTHS.get(asked.scene, 99)
            yield show(asked.scene, aim.name, write, subject, aim, asked, model=aim.model, depth=depth)
    for exchange, message in read_messages(subject):
        near = aim_for(subject, exchange)
        history = dated(replay_history(message))
        asked = Asked(f"again {name_of(exchange)}", history, TOOLS)
        yield show(asked.scene, "", write, subject, near, asked, model=near.model, depth=3)


def observe_answers(subject: Subject) -> Iterator[Shown]:
    """Yield the readings of recorded answers: messages and events, and what they cost."""
    for exchange in subject.exchanges:
        model = subject.model_of(exchange)
        yield show(name_of(exchange), "", _reading, subject, exchange, model=model, depth=4)
        if exchange.good and not exchange.streamed:
            yield show(f"{name_of(exchange)}, more", "", _extended, subject, exchange, model=model, depth=2)
        if exchange.good and exchange.streamed:
            yield show(f"{name_of(exchange)}, broken", "", _broken, subject, exchange, model=model, depth=2)
        if exchange.good:
            yield show(f"{name_of(exchange)}, altered", "", _altered, subject, exchange, model=model)
    for exchange in word_exchanges(subject):
        yield show(f"{name_of(exchange)}, other ends", "", _ended_otherwise, subject, exchange)


def _broken(subject: Subject, exchange: RecordedExchange) -> Any:
    """Return readings of a stream with every event twice, neighbours exchanged, events lost, cut, and broken."""
    frames = Frames(subject, exchange)
    events = frames.events
    turned = [event for at in range(0, len(events), 2) for event in reversed(events[at : at + 2])]
    lost = [[event for at, event in enumerate(events) if at % 3 != missing] for missing in range(3)]
    found = {
        **{f"lost {at}": read_stream(subject, exchange, frames.join(some)) for at, some in enumerate(lost)},
        "joined": read_stream(subject, exchange, frames.join([*events[: len(events) // 2], *events])),
        "twice": read_stream(subject, exchange, frames.join([event for event in events for _ in range(2)])),
        "turned": read_stream(subject, exchange, frames.join(turned)),
        "cut": read_stream(subject, exchange, frames.join(events[: len(events) // 2]), broken=True),
    }
    faults = [
        read_stream(subject, exchange, frames.join(breaking(frames, events, place)))
        for breaking in STREAM_FAULTS.values()
        for place in spread_places(len(events), 16)
    ]
    shown: dict[str, Any] = {name: _events_and_end(read) for name, read in found.items()}
    return {**shown, "faults": digest([plain(_events_and_end(read)) for read in faults])}


def _events_and_end(read: ReadResult) -> dict[str, Any]:
    return {"events": list(_joined(read.events)), "message": read.message, "error": read.error or read.escaped}


def _reading(subject: Subject, exchange: RecordedExchange) -> Any:
    read = read_answer(subject, exchange)
    found: dict[str, Any] = {
        "message": read.message,
        "events": [f"{each['type']} {digest(each)}" for each in _joined(read.events)],
        "error": read.error or read.escaped,
    }
    if read.message is not None:
        model = subject.provider.model(subject.model_of(exchange))
        found["cost"] = subject.provider.cost_of(message=read.message, model=model)
    return {name: value for name, value in found.items() if value is not None and value != []}


def _joined(events: tuple[StreamEvent, ...]) -> Iterator[Any]:
    """Yield events as JSON, pieces of one text together, with a digest of the pieces."""
    held: dict[str, Any] | None = None
    for event in events:
        made = plain(event)
        name = next((name for name in ("text", "partial_json") if event.type.endswith("_delta") and name in made), "")
        if held is not None and (held["type"], held.get("index")) == (made["type"], made.get("index")) and name:
            held[name] += made[name]
            held["cuts"] = digest(f"{held['cuts']} {made[name]}")
            continue
        if held is not None:
            yield held
        held = {**made, "cuts": ""} if name else None
        if not name:
            yield made
    if held is not None:
        yield held


def _extended(subject: Subject, exchange: RecordedExchange) -> Any:
    """Return an answer with an unknown item in each list of typed ones, and with an unknown member, and several."""
    body = json.loads(exchange.body)
    found: dict[str, Any] = {"one member": digest([_content(subject, exchange, made) for made in _with_one(body)])}
    for name, made in (("items", _with_items(body)), ("members", _with_members(body))):
        found[name] = _content(subject, exchange, made)
    return found


def _with_one(body: Any) -> list[Any]:
    """Return copies of a body, each with an unknown member in another of its first objects."""
    found = [path for path, value in nodes(body) if path and isinstance(value, dict) and not {*path} & {*_ARGUMENTS}]
    return [with_value(body, path, {**value_at(body, path), **_MEMBER}) for path in found[:_MOST_OBJECTS]]


def _content(subject: Subject, exchange: RecordedExchange, body: Any) -> Any:
    read = read_whole(subject, exchange, json.dumps(body).encode())
    found = plain({"content": read.message and read.message.content, "error": read.error or read.escaped})
    return {**found, "metadata": digest(plain(read.message and read.message.metadata))}


def _altered(subject: Subject, exchange: RecordedExchange) -> Any:
    """Return one digest of an answer's readings, each without another member or with another odd string."""
    less = [result_of(one.make) for one in incomplete_answers(subject, exchange)]
    return digest([less, *map(_read_as_json, read_with_odd_strings(subject, exchange))])


def _read_as_json(read: ReadResult) -> Any:
    shown = [event for event in read.events if not event.type.endswith("_delta")]
    return plain({"message": read.message, "error": read.error or read.escaped, "events": shown})


def _ended_otherwise(subject: Subject, exchange: RecordedExchange) -> Any:
    """Return one digest of an answer's readings, each with another word for its end."""
    found = read_with_other_words(subject, exchange)
    return digest([_read_as_json(read) for read in found if read])


def _with_items(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _with_items(item) for name, item in value.items()}
    if not isinstance(value, list):
        return value
    typed = value and all(isinstance(item, dict) and "type" in item for item in value)
    return [*(_with_items(item) for item in value), *([_UNKNOWN] if typed else [])]


def _with_members(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_members(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {name: item if name in _ARGUMENTS else _with_members(item) for name, item in value.items()}
    return {**kept, **_MEMBER}


def observe_errors(subject: Subject) -> Iterator[Shown]:
    """Yield the errors of recorded failures, of every status, and of headers that say more."""
    read = subject.provider.from_wire_error
    ids = {name: f"Req_7 {name}" for name in ("x-request-id", "request-id", *subject.connection.request_id_headers)}
    headers = {"retry-after": "7", **ids}
    for exchange in subject.exchanges:
        if not exchange.good:
            answer = WireResponse(status=exchange.status, headers={**exchange.headers, **headers}, body=exchange.body)
            yield show(f"{name_of(exchange)} with headers", "", read, answer, subject.context(exchange))
        for status in (exchange.status, 400, 500) if not exchange.good else ():
            answer = WireResponse(status=status, headers=exchange.headers, body=exchange.body)
            yield show(f"{status} {name_of(exchange)}", "", read, answer, subject.context(exchange))
        stream = None if exchange.good else next(iter(_streams_like(subject, exchange)), None)
        if stream is not None:
            yield show(f"{name_of(exchange)} in a stream", "", _fail, subject, exchange, stream)
    for api in subject.apis:
        for status in _STATUSES:
            answer = WireResponse(status=status, headers=headers, body=b"{}")
            yield show(f"{status}", api, read, answer, subject.context_for(api, "m"))
        for name, body in _ERRORS.items():
            answer = WireResponse(status=400, headers=headers, body=json.dumps(body).encode())
            yield show(f"400 {name}", api, read, answer, subject.context_for(api, "m"))


def observe_follow_ups(subject: Subject) -> Iterator[Shown]:
    """Yield what follows each answer of cassettes with several requests, and answers that lack a member."""
    for steps in read_chains(subject):
        model = subject.model_of(steps[0].sent)
        for number, step in enumerate(steps, 1):
            name = f"after answer {number} of {name_of(steps[0].sent)}"
            given = subject, step.answer, step.context
            yield show(name, "", find_follow_up, *given, model=model)
            if not step.answer.streamed:
                yield show(f"{name}, less", "", _without_members, *given)


def _without_members(subject: Subject, exchange: RecordedExchange, context: RequestContext) -> Any:
    """Return what follows an answer without each of its members in turn, or why it cannot be read."""
    body = json.loads(exchange.body)
    less = {name: {each: value for each, value in body.items() if each != name} for name in body}
    answers = {name: _answer_of(exchange, json.dumps(made).encode()) for name, made in less.items()}
    return {name: digest(result_of(subject.provider.follow_up, each, context)) for name, each in answers.items()}


def _answer_of(exchange: RecordedExchange, body: bytes) -> WireResponse:
    return WireResponse(status=exchange.status, headers=exchange.headers, body=body)


def _streams_like(subject: Subject, exchange: RecordedExchange) -> Iterator[RecordedExchange]:
    api = subject.api_of(exchange)
    return (each for each in subject.exchanges if each.good and each.streamed and subject.api_of(each) == api)


def _fail(subject: Subject, exchange: RecordedExchange, stream: RecordedExchange) -> Any:
    """Return a reading of a stream in whose middle a failure's body arrives as an event."""
    frames = Frames(subject, stream)
    event = frames.event(exchange.body.strip(), "error")
    read = read_stream(subject, stream, frames.join([*frames.events[: len(frames.events) // 2], event]))
    return {"events": [each.type for each in read.events], "error": read.error or read.escaped}


def observe_declarations(subject: Subject) -> Iterator[Shown]:
    """Yield the capabilities of models, and the catalogue as digests."""
    asked: Mapping[str, Mapping[str, Any]] = {
        "alone": {},
        "thinking": {"thinking": True},
        "not thinking": {"thinking": False},
        "effort": {"effort": "high"},
    }
    for aim in subject.aims:
        for name, options in asked.items():
            given = (aim.model, aim.options(**options))
            yield show(f"capabilities {name}", aim.name, subject.provider.capabilities, *given, model=aim.model)
    names = {aim.model: None for aim in subject.aims} | {subject.model_of(each): None for each in subject.exchanges}
    for name in names:
        yield show(f"model {name}", "", subject.provider.model, name, depth=1)
    models = subject.provider.models()
    for api in subject.apis:
        found = {info.id: _declared(subject, api, info.id) for info in models}
        yield show(f"capabilities of the catalogue at {api}", "", dict, found)
    yield show("models", "", dict, {info.id: digest(plain(info)) for info in models})


def _declared(subject: Subject, api: str, model: str) -> str:
    try:
        return digest(plain(subject.provider.capabilities(model, RequestOptions(model=model, api=api))))
    except CapabilityError:
        return ""


def observe_connections(subject: Subject) -> Iterator[Shown]:
    """Yield connections in several environments, with what their functions return."""
    values = {
        name: f"https://{name.lower()}.example" if any(word in name for word in _ADDRESS) else f"Value7-{name.lower()}"
        for name in subject.connection.env_vars
        if not name.endswith(_FILES)
    }
    fewer = {name: value for name, value in values.items() if not any(word in name for word in _ADDRESS)}
    settings: dict[str, dict[str, Any]] = {
        "bare": {},
        "a key": {"api_key": "Contract-key-7"},
        "a key and an address": {"api_key": "Contract-key-8", "base_url": "https://Contract.example/v7"},
        "all variables": {"environ": values},
        "all variables but addresses": {"environ": fewer},
        **{f"all variables but {name}": {"environ": _without(values, name)} for name in values},
        **{f"only {name}": {"environ": {name: value}} for name, value in values.items()},
        "other values": {
            "environ": {name: value if "://" in value else f"Other8-{name}" for name, value in values.items()}
        },
    }
    options = dict(subject.quirks.connection)
    for api in subject.apis:
        for name, given in settings.items():
            made = ConnectionSettings(api=api, options=options, **given)
            yield show(f"connection {name}", api, _connect, subject, made, api)
        if options:
            made = ConnectionSettings(api=api, environ=values)
            yield show("connection all variables, no options", api, _connect, subject, made, api)


def _without(values: Mapping[str, str], name: str) -> dict[str, str]:
    return {each: value for each, value in values.items() if each != name}


def _connect(subject: Subject, settings: ConnectionSettings, api: str) -> Any:
    made = subject.provider.connection(settings)
    found = {name: item for name, item in plain(made).items() if not callable(getattr(made, name, None))}
    found["framing"] = plain(made.framing)
    found["headers"] = {name: value for name, value in found.get("headers", {}).items() if name != "user-agent"}
    request = WireRequest(path="/contract", body=b"{}", api=api)
    found["auth()"] = _hide(result_of(made.auth, request))
    found["url()"] = result_of(made.url, request) if made.url is not None else None
    if not found.get("options"):
        found.pop("options", None)
    found.pop("key_exchange", None)
    if made.key_exchange is not None:
        asked = made.key_exchange.request(_CLOCK)
        found["key_exchange"] = [asked.method, asked.url, _hide(asked.headers), digest(asked.body.decode())]
        if answer := subject.quirks.key_exchange.get("answer"):
            found["sign()"] = _hide(result_of(_sign, made, answer))
    elif made.sign is not None and (made.credentials is None or len(settings.environ) > 1):
        found["sign()"] = _hide(result_of(_sign, made))  # with no secret given, it would be looked for on this machine
    return found


def _hide(headers: Mapping[str, Any]) -> Any:
    """Return secret headers as their names with digests: a made-up key looks like a true one."""
    return headers if "error" in headers else [f"{name} {digest(value)}" for name, value in headers.items()]


def _sign(made: Connection, answer: str | None = None) -> Any:
    assert made.sign is not None  # noqa: S101  the caller looked
    secret = made.credentials(None) if made.credentials is not None else None
    if made.key_exchange is not None and answer is not None:
        secret = made.key_exchange.read(WireResponse(status=200, headers={}, body=answer.encode()))
    return made.sign(HttpRequest("POST", f"{made.base_url}/contract", {}, b"{}", _CLOCK), secret)


def observe_estimates(subject: Subject) -> Iterator[Shown]:
    """Yield estimates of input tokens, and what one usage costs with each model."""
    provider = subject.provider
    for aim in subject.aims:
        options = aim.options()
        histories = fixed_histories(own_origin(subject, aim))
        found = {
            name: result_of(provider.estimate_input_tokens, history, TOOLS, options)
            for name, history in histories.items()
        }
        yield show("estimates", aim.name, dict, found)
    for aim in subject.aims[:1]:
        message = fixed_answers(own_origin(subject, aim))["own text"]
        costs = {info.id: result_of(provider.cost_of, message=message, model=info) for info in provider.models()}
        yield show("costs", "", dict, costs, depth=1)


def observe_auxiliary(subject: Subject) -> Iterator[Shown]:
    """Yield auxiliary requests of every kind."""
    for aim in subject.aims:
        tools = TOOLS if aim.capabilities.supports_tools else ()
        histories = fixed_histories(own_origin(subject, aim))
        rows: list[tuple[str, WireRequest]] = []
        for name in ("said", "calls", "pictures", "documents", "reasoning", "citations", "cached"):
            try:
                request = subject.write(aim, histories[name], tools, max_tokens=77)
            except CapabilityError:
                continue
            rows.append((f"Row_{len(rows)}", request))
            yield _ask(subject, f"count {name}", aim, "count_tokens", {"request": request})
        for kind in ("batch_upload", "batch_create"):
            yield _ask(subject, kind, aim, kind, {"requests": rows[:3], "name": "Contract_7", "file": "File-7"})
    yield from _uploads(subject)
    named = {"id": "Batch-7", "result": "Result-7", "file": "File-7", "after": "Id_7"}
    for kind in ("models", "batch_status", "batch_cancel", "batch_list", "batch_results"):
        yield show(kind, "", subject.provider.auxiliary_request, kind, named)
    yield from _auxiliary_answers(subject)


def _uploads(subject: Subject) -> Iterator[Shown]:
    """Yield the uploads of media, and the other requests about a file."""
    if subject.connection.upload_above is None:
        return
    source = MediaSource(kind="base64", data="JVBERi0xLjcK")
    blocks = {
        "pdf": DocumentBlock(source=source, media_type="application/pdf"),
        "text": DocumentBlock(source=source, media_type="text/plain"),
        "image": ImageBlock(source=source, media_type="image/png"),
        "audio": AudioBlock(source=source, media_type="audio/wav"),
    }
    for aim in {aim.api: aim for aim in reversed(subject.aims)}.values():
        for name, block in blocks.items():
            for inside in (False, True):
                given = {
                    "api": aim.api,
                    "block": block,
                    "data": b"%PDF-1.7\n",
                    "name": "Name_7.pdf",
                    "in_result": inside,
                }
                yield _ask(subject, f"upload {name}{', in a result' if inside else ''}", aim, "upload", given)
    for kind in ("delete_file", "file_status"):
        yield show(kind, "", subject.provider.auxiliary_request, kind, {"file": "https://Host.example/v1/files/File_7"})


def _auxiliary_answers(subject: Subject) -> Iterator[Shown]:
    """Yield each recorded answer that is not a conversation, read as each kind; most are of one kind only."""
    for path in sorted(subject.folder.rglob("*.yaml")) if subject.folder is not None else ():
        try:
            exchanges = read_cassette(path)
        except CallerError:  # C46 reports it, once
            continue
        for exchange in exchanges:
            answer = WireResponse(status=exchange.status, headers=exchange.headers, body=exchange.body)
            if is_decision(exchange):
                name = f"decide of {name_of(exchange)}"
                yield show(name, "", subject.provider.from_wire_auxiliary, "decide", answer)
                model = json.loads(exchange.request_body)["model"].removeprefix("models/")
                for aim in {aim.api: aim for aim in reversed(subject.aims)}.values():
                    yield show(f"{name}, asked", aim.name, _decide, subject, attrs.evolve(aim, model=model))
            if exchange.method == "POST" and subject.api_of(exchange) is not None:
                continue
            for kind in (*_KINDS, *(_FILE_KINDS if subject.connection.upload_above is not None else ())):
                yield show(f"{kind} of {name_of(exchange)}", "", subject.provider.from_wire_auxiliary, kind, answer)
    for kind, body in _MADE_UP.items():
        answer = WireResponse(status=200, headers={}, body=json.dumps(body).encode())
        yield show(f"{kind} made up", "", subject.provider.from_wire_auxiliary, kind, answer)


def _decide(subject: Subject, aim: Aim) -> dict[str, Any]:
    """Return requests for decisions about words and about pictures."""
    histories = fixed_histories(own_origin(subject, aim))
    asked = [Asked(name, histories[name]) for name in ("said", "pictures")]
    return {each.scene: result_of(_write_decision, subject, aim, each) for each in asked}


def _write_decision(subject: Subject, aim: Aim, asked: Asked) -> WireRequest:
    given = {"request": write(subject, aim, asked), "questions": list(_QUESTIONS)}
    return subject.provider.auxiliary_request("decide", given)


def _ask(subject: Subject, scene: str, aim: Aim, kind: str, given: Mapping[str, Any]) -> Shown:
    return show(scene, aim.name, subject.provider.auxiliary_request, kind, given, model=aim.model, depth=2)


OBSERVERS: Mapping[str, Callable[[Subject], Iterator[Shown]]] = {
    "requests": observe_requests,
    "answers": observe_answers,
    "errors": observe_errors,
    "follow-ups": observe_follow_ups,
    "declarations": observe_declarations,
    "connections": observe_connections,
    "estimates": observe_estimates,
    "auxiliary": observe_auxiliary,
    "served requests": observe_served_requests,
    "served answers": observe_served_answers,
    "served errors": observe_served_errors,
}
"""Section -> what yields its results."""
