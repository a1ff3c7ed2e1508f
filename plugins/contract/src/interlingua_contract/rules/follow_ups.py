"""Rules on what follows an answer, and on keys that are exchanged before a request."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import attrs

from interlingua._http.pending import check_address
from interlingua.errors import InterlinguaError, PluginError
from interlingua.plugins import (
    Connection,
    ConnectionSettings,
    FollowUp,
    HttpRequest,
    KeyExchange,
    WireRequest,
    WireResponse,
)
from interlingua.types import user
from interlingua_cli.cassettes import RecordedExchange
from interlingua_contract.follow_ups import SHORTEST_ID, Step, find_follow_up, names_next, read_chains, texts_of
from interlingua_contract.json_paths import leaves
from interlingua_contract.recordings import aim_for
from interlingua_contract.rule import NotApplicable, RuleFinding, around_difference, rule
from interlingua_contract.signing import CLOCK
from interlingua_contract.subject import Subject

_KEY = "contract-made-up-key-0123456789"
_OTHER_KEY = "contract-other-key-9876543210"


def _chains(subject: Subject) -> list[list[Step]]:
    if not subject.provider.answers_later:
        raise NotApplicable("the plugin has no hook `follow_up`")
    found = list(read_chains(subject))
    if not found:
        raise NotApplicable("no cassette has several requests: record one whose answer comes later")
    return found


@rule(
    "C105",
    "Follow-ups are sent as recorded, at the service's own address, and the creation is not repeated.",
    source="hook follow_up; how-to/answer-later.md",
    fix="""Take the address of the next request from the answer that was just read, and return None for the answer that
    ends the work, and only for that. Never return the request that created it: it would be done, and billed, twice.
    `cancel` and `usage` are about the same work.""",
)
def follow_ups_are_as_recorded(subject: Subject) -> Iterator[RuleFinding]:
    """Each cassette of several requests, step by step; then with another id in the first answer."""
    for steps in _chains(subject):
        for number, step in enumerate(steps, 1):
            for why in _faults_of(subject, steps[0].sent, step):
                yield RuleFinding(why, f"{step.sent.cassette}, answer {number}")
        yield from _check_other_id(subject, steps[0])


def _faults_of(subject: Subject, created: RecordedExchange, step: Step) -> Iterator[str]:
    found, following = step.found, step.following
    if found is None:
        if following is not None and names_next(subject, step.sent, following):
            yield f"{following.method} {following.uri} is recorded next, and nothing follows"
        return
    for name, request in _requests_of(found):
        if why := _misplaced(subject, created, request):
            yield f"{name}: {why}"
        if _is_same(request, created):
            yield f"{name} repeats the request that created the work"
    expected = step.after or following
    if expected is None:
        yield f"{found.request.method} {found.request.path} is asked for, and the recording ends here"
        return
    if found.cancel is not None and _is_same(found.cancel, expected):
        return  # it was left here
    wanted, asked = _shown(expected.method, expected.uri, expected.request_body), _of(found.request, expected)
    if wanted != asked and (again := _ask_as_streamed(subject, created, step)) is not None:
        asked = _of(again.request, expected)
    if wanted != asked:
        difference = around_difference(wanted, asked)
        yield f"the next request is not the recorded one: {difference['found']} instead of {difference['expected']}"


def _ask_as_streamed(subject: Subject, created: RecordedExchange, step: Step) -> FollowUp | None:
    """Return what follows if the caller wants a stream, which only the echo of the request may say."""
    given = created.request if isinstance(created.request, dict) else {}
    plain = {name: value for name, value in given.items() if isinstance(value, (bool, int, float, str))}
    try:
        request = subject.write(aim_for(subject, created), [user("q")], stream=True, provider_options=plain)
    except InterlinguaError:
        return None
    context = attrs.evolve(step.context, echo={**request.echo, **step.context.echo})
    return find_follow_up(subject, step.answer, context)


def _requests_of(found: FollowUp) -> list[tuple[str, WireRequest]]:
    every = {"request": found.request, "cancel": found.cancel, "usage": found.usage}
    return [(name, request) for name, request in every.items() if request is not None]


def _misplaced(subject: Subject, created: RecordedExchange, request: WireRequest) -> str:
    """Return why core would refuse an address, or an empty string; the service is where the cassette was recorded."""
    place = urlsplit(created.uri)
    made = subject.provider.connection(ConnectionSettings(api=request.api))
    made = attrs.evolve(made, base_url=f"{place.scheme}://{place.netloc}")
    path = request.path
    try:
        check_address(path if "://" in path.partition("?")[0] else made.base_url + path, made)
    except PluginError as error:
        return error.message
    return "" if path.startswith(("/", "http")) else f"{path!r} is neither a path nor an address"


def _is_same(request: WireRequest, exchange: RecordedExchange) -> bool:
    return _of(request, exchange) == _shown(exchange.method, exchange.uri, exchange.request_body)


def _of(request: WireRequest, near: RecordedExchange) -> str:
    """Return a request in words; a path without a host is at the end of the address that is recorded."""
    place, path = urlsplit(near.uri), request.path
    if "://" not in path.partition("?")[0]:
        recorded = f"{place.path}?{place.query}" if place.query else place.path
        before = recorded.removesuffix(path) if recorded.endswith(path) else ""
        path = f"{place.scheme}://{place.netloc}{before}{path}"
    return _shown(request.method, path, request.body)


def _shown(method: str, url: str, body: bytes) -> str:
    try:
        said = json.dumps(json.loads(body), sort_keys=True) if body else ""
    except ValueError:
        said = body.decode(errors="replace")
    return f"{method} {url} {said}".strip()


def _check_other_id(subject: Subject, first: Step) -> Iterator[RuleFinding]:
    """Find a request that is about other work than the answer: of another answer, or of an earlier request."""
    if first.found is None or first.answer.streamed:
        return
    path, before = first.found.request.path, urlsplit(first.sent.uri).path
    ids = [text for text in texts_of(first.answer.body) if "/" not in text and text in path and text not in before]
    name = max(ids, key=len, default="")
    if len(name) < SHORTEST_ID:
        return
    other = f"{name[:-1]}{'8' if name[-1] != '8' else '9'}7"
    body = first.answer.body.replace(name.encode(), other.encode())
    found = find_follow_up(subject, first.answer, first.context, body)
    asked = {} if found is None else dict(_requests_of(found))
    for what, request in _requests_of(first.found):
        now = asked.get(what)
        if name not in request.path or now is None or now.path != request.path.replace(name, other):
            place = "nothing" if now is None else now.path
            yield RuleFinding(f"{what}: of the work {other!r} it is {place}", first.sent.cassette)


@rule(
    "C106",
    "An answer that is asked for again is waited for in between, and work that is left is cancelled.",
    source="hook follow_up; how-to/answer-later.md",
    fix="""Set `after` to the seconds that the service wants between two requests for the same answer, and `cancel` to
    the request that ends the work: core sends it when the caller leaves or a time limit passes. A service that cannot
    end it is a declared deviation.""",
)
def waits_and_cancels(subject: Subject) -> Iterator[RuleFinding]:
    """Each request of the cassettes that asks for work that continues at the service."""
    for steps in _chains(subject):
        for number, step in enumerate(steps, 1):
            found, where = step.found, f"{step.sent.cassette}, answer {number}"
            if found is None or found.request.method != "GET":
                continue
            sent = step.context.request
            if not found.request.stream and sent is not None and sent.method == "GET" and found.after <= 0:
                yield RuleFinding("it asks again at once: `after` is 0", where)
            if found.cancel is None:
                yield RuleFinding("the work cannot be cancelled: `cancel` is None", where)


@rule(
    "C107",
    "A key is exchanged in a request that holds it in no address; the token of the answer signs, until it expires.",
    source="Connection.key_exchange; how-to/own-framing-and-signing.md",
    fix="""Write the key into the body or a header of the exchange, to an https address. `read` returns the token of the
    answer, with `expires_at` (a datetime with time zone) if the service names a time, and raises for an answer without
    a token. `sign` writes this token, never the key. Give the answer in quirks.toml, with made-up values.""",
    needs=("key_exchange",),
)
def keys_are_exchanged(subject: Subject) -> Iterator[RuleFinding]:
    """A made-up key, a good answer, one with another token, and answers that lack a member."""
    made = subject.provider.connection(ConnectionSettings(api_key=_KEY, options=dict(subject.quirks.connection)))
    other = subject.provider.connection(ConnectionSettings(api_key=_OTHER_KEY, options=dict(subject.quirks.connection)))
    if made.key_exchange is None or other.key_exchange is None:
        raise NotApplicable("the connection exchanges no key")
    request = made.key_exchange.request(CLOCK)
    yield from _check_exchange_request(request, other.key_exchange.request(CLOCK))
    given = subject.quirks.key_exchange
    if not {"answer", "secret"} <= given.keys():
        yield RuleFinding("quirks.toml has no [key_exchange] with `answer` and `secret`: its reading is not checked")
        return
    yield from _check_reading(made, made.key_exchange, given)


def _check_exchange_request(request: HttpRequest, other: HttpRequest) -> Iterator[RuleFinding]:
    place = urlsplit(request.url)
    if place.scheme != "https" and place.hostname not in ("localhost", "127.0.0.1", "::1"):
        yield RuleFinding(f"the key is sent to {request.url!r}, which is neither https nor local", "request")
    if _KEY in request.url:
        yield RuleFinding("the key is in the address, which servers write to their logs", "request")
    if (request.headers, request.body) == (other.headers, other.body):
        yield RuleFinding("another key makes the same request", "request")


def _check_reading(made: Connection, exchange: KeyExchange, given: Any) -> Iterator[RuleFinding]:
    answer, secret = json.loads(given["answer"]), str(given["secret"])
    found = exchange.read(_answer(answer))
    if made.sign is None:
        yield RuleFinding("there is no `sign` for the token", "connection")
        return
    outgoing = HttpRequest("POST", f"{made.base_url}/contract", {}, b"{}", CLOCK)
    signed = json.dumps(dict(made.sign(outgoing, found)))
    if secret not in signed or _KEY in signed:
        what = "the key" if _KEY in signed else "not the token"
        yield RuleFinding(f"the signed headers hold {what}", "sign")
    expires = getattr(found, "expires_at", None)
    if expires != given.get("expires_at") or (isinstance(expires, datetime) and expires.tzinfo is None):
        yield RuleFinding(f"the token expires at {expires}, the answer says {given.get('expires_at')}", "read")
    swapped = json.loads(given["answer"].replace(secret, f"{secret}-other"))
    if f"{secret}-other" not in json.dumps(dict(made.sign(outgoing, exchange.read(_answer(swapped))))):
        yield RuleFinding("the token of another answer does not sign", "read")
    for path, leaf in leaves(answer):
        if leaf != secret or len(path) != 1:
            continue
        less = {name: value for name, value in answer.items() if name != path[0]}
        for lacking in (less, {**less, "error": "refused"}, {**less, path[0]: None}):
            try:
                read = exchange.read(_answer(lacking))
            except Exception:  # noqa: S112  core reports it
                continue
            if read is not None:
                yield RuleFinding(f"an answer without {path[0]!r} is read as a token", "read")
                break


def _answer(body: Any) -> WireResponse:
    return WireResponse(status=200, headers={}, body=json.dumps(body).encode())
