"""Rules on errors: each failure is a typed error by status and body, with what a caller needs to decide."""

from __future__ import annotations

import json
from collections.abc import Iterator

import attrs

from interlingua.errors import InterlinguaError, ProviderError, RateLimitError
from interlingua.plugins import WireResponse, error_class_for_status
from interlingua_cli.cassettes import RecordedExchange
from interlingua_contract.json_paths import strings
from interlingua_contract.recordings import Frames, read_stream
from interlingua_contract.rule import NotApplicable, RuleFinding, rule
from interlingua_contract.subject import Subject

_BODIES = (b"", b"{}", b"null", b"[]", b"<html>502 Bad Gateway</html>", b'{"error": null}', b"\xff\xfe", b'"no"')
_STATUSES = (400, 401, 402, 403, 404, 408, 409, 413, 418, 422, 429, 500, 502, 503, 504, 529)


@rule(
    "C40",
    "A failure without a readable body has the error class of its status, and is retryable as that class is.",
    source="errors.md; hook from_wire_error",
    fix="""Start from `interlingua.plugins.error_class_for_status(response.status)` and let the body only refine it.
    A gateway's HTML page or an empty body must not raise an exception.""",
)
def status_alone_decides_without_a_body(subject: Subject) -> Iterator[RuleFinding]:
    """Sixteen statuses, eight bodies."""
    for api in subject.apis:
        for status in _STATUSES:
            for body in _BODIES:
                context = subject.context_for(api, "m")
                expected = error_class_for_status(status)
                try:
                    error = subject.provider.from_wire_error(WireResponse(status=status, body=body), context)
                except Exception as escaped:
                    yield RuleFinding(f"{type(escaped).__name__}: {escaped}", f"{api} {status} {body!r}")
                    continue
                wrong = type(error) is not expected or error.retryable is not expected.default_retryable
                if wrong or error.status != status:
                    got = f"{type(error).__name__} retryable={error.retryable} status={error.status}"
                    yield RuleFinding(f"{got}, expected as {expected.__name__}", f"{api} {status} {body!r}")


@rule(
    "C41",
    "A recorded failure has its documented class, and its status, body, message and requested delay.",
    source="errors.md; hook from_wire_error",
    fix="""Take the message from the body's own text, `code` and `request_id` from the fields that the service
    documents, and the delay from `interlingua.plugins.retry_after(response.headers)`. If the body makes the class
    more exact than the status does, list the documented class of each cassette in `quirks.errors`.""",
)
def recorded_failures_keep_their_words(subject: Subject) -> Iterator[RuleFinding]:
    """Each cassette with a status of 400 or more; the delay also on a made-up answer."""
    failed = [exchange for exchange in subject.exchanges if not exchange.good]
    for api in subject.apis:
        answer = WireResponse(status=429, headers={"retry-after": "7"}, body=b"{}")
        error = subject.provider.from_wire_error(answer, subject.context_for(api, "m"))
        if not isinstance(error, RateLimitError) or error.retry_after != 7 or not error.retryable:
            yield RuleFinding(
                f"429 with retry-after: 7 leads to {type(error).__name__} with retry_after={error.retry_after}", api
            )
        yield from _check_delays(subject, api)
    if not failed:
        raise NotApplicable("no cassette holds a failure; record one, or write one from the documentation")
    for exchange in failed:
        response = WireResponse(status=exchange.status, headers=exchange.headers, body=exchange.body)
        error = subject.provider.from_wire_error(response, subject.context(exchange))
        if not isinstance(error, ProviderError) or type(error) is ProviderError:
            yield RuleFinding(f"{type(error).__name__} is not one of the error classes for failures", exchange.cassette)
        if (error.status, error.body) != (exchange.status, exchange.body):
            yield RuleFinding("status or body is not kept", exchange.cassette)
        wanted = subject.quirks.errors.get(exchange.cassette)
        if wanted is not None and type(error).__name__ != wanted:
            yield RuleFinding(f"{type(error).__name__}, quirks.errors says {wanted}", exchange.cassette)
        elif wanted is None and type(error) is not error_class_for_status(exchange.status):
            why = f"{type(error).__name__} at status {exchange.status}: say in quirks.errors why it is that"
            yield RuleFinding(why, exchange.cassette)
        words = _sentences(exchange.body)
        if words and not any(word in str(error) for word in words):
            yield RuleFinding(f"the provider's words {words[0][:60]!r} are not in the error", exchange.cassette)


def _check_delays(subject: Subject, api: str) -> Iterator[RuleFinding]:
    """Milliseconds, and a date that is over."""
    forms = {"retry-after-ms": ("1500", 1.5), "retry-after": ("Sat, 21 Nov 2020 00:00:00 GMT", 0.0)}
    for name, (text, seconds) in forms.items():
        answer = WireResponse(status=429, headers={name: text}, body=b"{}")
        error = subject.provider.from_wire_error(answer, subject.context_for(api, "m"))
        if error.retry_after != seconds:
            yield RuleFinding(f"429 with {name}: {text} leads to retry_after={error.retry_after}", api)


def _sentences(body: bytes) -> list[str]:
    try:
        parsed = json.loads(body)
    except ValueError:
        return []
    return [leaf for _, leaf in strings(parsed) if " " in leaf]


@rule(
    "C77",
    "The request id in the body of a failure is in its error; an id in a named header is not replaced.",
    source="errors.md; hook from_wire_error; hook connection",
    fix="""Name the headers in `Connection.request_id_headers`, and pass the id to the error as `request_id` if the body
    has it: without it a service's support cannot find the request. The body's id may be under `request_id`, in the
    error or beside it.""",
)
def request_ids_are_kept(subject: Subject) -> Iterator[RuleFinding]:
    """Each recorded failure that has an id in its body, and one with an id in each header that is named."""
    failed = [exchange for exchange in subject.exchanges if not exchange.good]
    if not failed:
        raise NotApplicable("no cassette holds a failure; record one, or write one from the documentation")
    for exchange in failed:
        for name, leaf in _recorded_ids(exchange.body):
            found = _error_of(subject, exchange).request_id
            if leaf != found and leaf not in exchange.headers.values():
                yield RuleFinding(f"{name} {leaf!r} is not in the error, which has {found!r}", exchange.cassette)
    for exchange in failed:
        for name in sorted({*subject.connection.request_id_headers, "request-id", "x-request-id"}):
            for body in (b"{}", exchange.body):
                answer = WireResponse(status=exchange.status, headers={name: "req-contract-1"}, body=body)
                found = subject.provider.from_wire_error(answer, subject.context(exchange)).request_id
                known = [leaf for _, leaf in _recorded_ids(body)]
                if found not in (None, "req-contract-1", *known):  # None: core fills it in
                    yield RuleFinding(f"the id in the header {name} is read as {found!r}", exchange.cassette)


def _recorded_ids(body: bytes) -> Iterator[tuple[str, str]]:
    try:
        parsed = json.loads(body)
    except ValueError:
        return
    for path, leaf in strings(parsed):
        if leaf and str(path[-1] if path else "").lower().replace("_", "") == "requestid":
            yield str(path[-1]), leaf


def _error_of(subject: Subject, exchange: RecordedExchange, status: int = 0) -> InterlinguaError:
    response = WireResponse(status=status or exchange.status, headers=exchange.headers, body=exchange.body)
    return subject.provider.from_wire_error(response, subject.context(exchange))


@rule(
    "C78",
    "An error in a stream has the class that the same body has as a failure: first, in the middle, or at the end.",
    source="format.md, Status and errors; hook stream_response",
    fix="""Classify an error event with the function that reads failures, by its own type and code, not by the status
    200 of the stream. An error event may arrive after the text has ended; a message that the service took back is not
    finished.""",
)
def errors_in_streams_have_their_class(subject: Subject) -> Iterator[RuleFinding]:
    """The recorded error bodies as an event at the beginning, in the middle, and before the last event of a stream."""
    failed = [exchange for exchange in subject.exchanges if not exchange.good and _is_object(exchange.body)]
    streams = [
        one for one in subject.exchanges if one.good and one.streamed and read_stream(subject, one).error is None
    ]
    if not failed or not streams:
        raise NotApplicable("no cassette holds a failure and a stream; record them")
    for exchange in failed:
        stream = next((one for one in streams if subject.api_of(one) == subject.api_of(exchange)), None)
        if stream is None:
            continue
        where = f"{exchange.cassette} in {stream.cassette}"
        found = _classes_by_place(subject, exchange, stream)
        missed = [place for place, kind in found.items() if kind is None]
        if len(missed) == len(found):
            continue  # C34 reports a body that is never read as an error
        bare = attrs.evolve(exchange, headers={})
        stated = {type(_error_of(subject, bare, status)) for status in (exchange.status, 400, 500, 418)}
        wanted = stated if len(stated) == 1 else {next(iter(found.values()))}  # else only the status says it
        wrong = [f"{place} {kind.__name__}" for place, kind in found.items() if kind and kind not in wanted]
        if missed:
            yield RuleFinding(f"{missed[0]} it is not an error of the provider", where)
        elif wrong:
            yield RuleFinding(f"{', '.join(wrong)}; as a failure {type(_error_of(subject, exchange)).__name__}", where)


def _classes_by_place(subject: Subject, exchange: RecordedExchange, stream: RecordedExchange) -> dict[str, type | None]:
    frames = Frames(subject, stream)
    event = frames.event(exchange.body.strip(), "error")
    found: dict[str, type | None] = {}
    for place, at in (("first", 0), ("in the middle", len(frames.events) // 2), ("before the end", -1)):
        read = read_stream(subject, stream, frames.join([*frames.events[:at], event]))
        found[place] = type(read.error) if isinstance(read.error, ProviderError) else None
    return found


def _is_object(body: bytes) -> bool:
    try:
        return isinstance(json.loads(body), dict)
    except ValueError:
        return False
