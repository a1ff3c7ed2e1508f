"""Results of a serving plugin's hooks: requests as they are read, answers and errors as they are written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import attrs

from interlingua import errors
from interlingua.errors import CapabilityError, InterlinguaError, OverloadedError, ServerError
from interlingua.plugins import WireRequest, WireResponse
from interlingua.types import ErrorEvent, Message, Usage
from interlingua_contract.approved.histories import COUNTED, fixed_answers
from interlingua_contract.approved.shown import (
    DEPTHS,
    Shown,
    name_of,
    read_messages,
    requests_for,
    result_of,
    show,
    write,
)
from interlingua_contract.approved.values import digest, plain
from interlingua_contract.scenes import FOREIGN, own_origin
from interlingua_contract.served import (
    ASKED,
    Seals,
    decode_stream,
    read_request,
    serve_context,
    served_apis,
    written_again,
)
from interlingua_contract.subject import Subject
from interlingua_serving import ServeContext, answer_events

_RECENT = "2026-01-01"


def observe_served_requests(subject: Subject) -> Iterator[Shown]:
    """Yield readings of the requests that the plugin writes, and of recorded ones."""
    served = served_apis(subject)
    done: dict[tuple[str, str, bytes], Shown] = {}
    for aim in subject.aims:
        for asked in requests_for(subject, aim) if aim.api in served else ():
            try:
                request = write(subject, aim, asked)
            except CapabilityError:
                continue
            key = (asked.scene, request.path.replace(aim.model, ""), request.body.replace(aim.model.encode(), b""))
            if key not in done:
                depth = min(2, DEPTHS.get(asked.scene, 99) - 1)
                done[key] = show(asked.scene, "", _read, subject, request, model=aim.model, depth=depth)
            yield done[key]._replace(where=aim.name)
    for exchange in subject.exchanges:
        api = subject.api_of(exchange)
        if exchange.good and api in served and isinstance(exchange.request, dict):
            request = WireRequest(path=exchange.uri, body=json.dumps(exchange.request).encode(), api=str(api))
            model = subject.model_of(exchange)
            yield show(name_of(exchange), "", _read_and_write, subject, request, model, model=model, depth=1)


def _read_and_write(subject: Subject, request: WireRequest, model: str) -> Any:
    """Return a request as it is read, and as the plugin writes it again, with its echo."""
    return {**_read(subject, request), "again": written_again(subject, request, model)}


def _read(subject: Subject, request: WireRequest) -> Any:
    arrived = WireRequest(path=request.path, headers=request.headers, body=request.body, api=request.api)
    found = plain(read_request(subject, arrived))
    for message in found["messages"]:
        message.pop("id")  # core's
        if str(message.get("created_at", "")) > _RECENT:  # when it was read
            del message["created_at"]
    return found


def observe_served_answers(subject: Subject) -> Iterator[Shown]:
    """Yield answers of this provider and another as they are written, whole and streamed, and read again."""
    served = served_apis(subject)
    yield show("apis", "", lambda: subject.serving.apis)
    aims = {aim.api: aim for aim in reversed(subject.aims) if aim.api in served}
    for api, aim in aims.items():
        for name, message in fixed_answers(own_origin(subject, aim)).items():
            yield from _written(subject, api, name, message, 1 if message.metadata.stop_reason_raw else 3)
            bare = serve_context(subject, api, message.metadata.origin)
            yield show(f"unsealed: {name}", api, subject.serving.to_wire_response, message, bare, depth=2)
    for exchange, message in read_messages(subject):
        if (at := subject.api_of(exchange)) in served:
            yield from _written(subject, str(at), name_of(exchange), message, 1)


def _written(subject: Subject, api: str, name: str, message: Message, depth: int) -> Iterator[Shown]:
    if message.metadata.usage is None or message.metadata.usage == Usage():
        message = attrs.evolve(message, metadata=attrs.evolve(message.metadata, usage=COUNTED))
    model = message.metadata.origin.model if message.metadata.origin else ""
    yield show(f"whole: {name}", api, _write_whole, subject, api, message, model=model, depth=depth)
    yield show(f"streamed: {name}", api, _write_stream, subject, api, message, model=model, depth=min(depth, 2))


def _write_whole(subject: Subject, api: str, message: Message) -> Any:
    response = subject.serving.to_wire_response(message, _sealing(subject, api, message))
    return {"response": response, "read": result_of(_read_again, subject, api, response)}


def _read_again(subject: Subject, api: str, response: WireResponse) -> Message:
    return subject.provider.from_wire_response(response, subject.context_for(api, ASKED))


def _write_stream(subject: Subject, api: str, message: Message) -> Any:
    writer = subject.serving.stream_to_wire(_sealing(subject, api, message))
    body = b"".join([writer.feed([event]) for event in answer_events(message)]) + writer.end()
    frames = body.split(b"\n\n" if b"\n\n" in body else b"\n")
    other = subject.serving.stream_to_wire(_sealing(subject, api, message))
    return {
        "frames": [_frame(plain(each)) for each in frames if each],
        "at once": digest((other.feed(answer_events(message)) + other.end()).hex()),
        "read": result_of(_decode, subject, api, body),
        "losses": list(writer.losses),
    }


def _decode(subject: Subject, api: str, body: bytes) -> Any:
    return decode_stream(subject, api, body).message()


def _frame(data: Any) -> str:
    """Return a frame as its first line, if that is a name, and a digest."""
    word = data.split("\n")[0] if isinstance(data, str) and data.startswith("event: ") else ""
    return f"{word} {digest(data)}".strip()


def _sealing(subject: Subject, api: str, message: Message) -> ServeContext:
    seals = Seals()
    return serve_context(subject, api, message.metadata.origin, seal=seals.seal, unseal=seals.unseal)


def observe_served_errors(subject: Subject) -> Iterator[Shown]:
    """Yield errors and auxiliary answers as they are written."""
    for api in served_apis(subject):
        serving = subject.serving
        for kind in _kinds():
            error = kind("Contract words7", retry_after=7.0)
            yield show(f"error {kind.__name__}", api, serving.to_wire_error, error, serve_context(subject, api))
        message = fixed_answers(FOREIGN)["foreign calls"]
        for at in (0, 2, 6, -1):
            for failed in (OverloadedError("Contract words7"), ServerError("Contract words8"), None):
                scene = f"stream cut at {at} with {type(failed).__name__}"
                yield show(scene, api, _cut, subject, api, message, at, failed)
        yield show("streams that fail before their end", api, _fail_late, subject, api)
        for name, value in (("models", ["Model_1", "model-2", "m3"]), ("count_tokens", 4321)):
            yield show(name, api, serving.to_wire_auxiliary, name, value, serve_context(subject, api))


def _cut(subject: Subject, api: str, message: Message, at: int, error: InterlinguaError | None) -> list[str]:
    """Return the frames of a stream that fails after some events, or that only ends."""
    writer = subject.serving.stream_to_wire(_sealing(subject, api, message))
    given = [*answer_events(message)[:at], *([ErrorEvent(error=error)] if error is not None else [])]
    return [plain(each) for each in (writer.feed(given) + writer.end()).split(b"\n\n")[-3:]]


def _fail_late(subject: Subject, api: str) -> dict[str, str]:
    """Return, for each fixed answer, the end of a stream that fails when the answer is there."""
    error = ServerError("Contract words9")
    answers = fixed_answers(FOREIGN)
    return {name: digest(result_of(_cut, subject, api, each, -1, error)) for name, each in answers.items()}


def _kinds() -> list[Any]:
    """Return every class of errors."""
    found = [getattr(errors, name) for name in sorted(dir(errors))]
    return [
        each
        for each in found
        if isinstance(each, type) and issubclass(each, InterlinguaError) and each.__module__ == errors.__name__
    ]
