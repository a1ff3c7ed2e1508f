"""Rules on the cassettes: readable, this provider's, and without secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from interlingua.errors import CallerError, InterlinguaError, ProviderError
from interlingua.types import user
from interlingua_cli.cassettes import RecordedExchange, read_cassette
from interlingua_contract.recorder import exchange_path, is_secret_parameter, named_secrets, opaque_texts
from interlingua_contract.recordings import aim_for, read_answer
from interlingua_contract.rule import NotApplicable, RuleFinding, rule
from interlingua_contract.subject import Subject


@rule(
    "C46",
    "Every cassette is readable and has requests of our form; a good answer is a message or the provider's error.",
    source="docs/plugins/how-to/record-cassettes.md",
    fix="""Record with pytest-recording and `decode_compressed_response=True`. Traffic that matches no endpoint of
    the connection is ignored; an answer that cannot be read is a fault of the plugin.""",
)
def cassettes_are_readable(subject: Subject) -> Iterator[RuleFinding]:
    """Each file of the folder."""
    if subject.folder is None or not subject.folder.is_dir():
        raise NotApplicable("no cassette folder was passed")
    for path in sorted(subject.folder.rglob("*.yaml")):
        try:
            read_cassette(path)
        except CallerError as error:
            forms = "a body is `parsed_body`, `lines`, `string` or `base64`, in `request` and in `response.body`"
            yield RuleFinding(f"{error}; no other rule reads it ({forms})", path.name)
    if not subject.exchanges and subject.unwritten:
        raise NotApplicable("record an exchange once the plugin writes requests")
    if not subject.exchanges:
        yield RuleFinding("no recorded exchange matches an endpoint of this provider", subject.folder.name)
    yield from _check_headers(subject)
    for exchange in subject.exchanges:
        if exchange.good:
            found = read_answer(subject, exchange)
            if found.escaped or (found.error is not None and not isinstance(found.error, ProviderError)):
                yield RuleFinding(f"cannot be read: {found.error or repr(found.escaped)}", exchange.cassette)


def _check_headers(subject: Subject) -> Iterator[RuleFinding]:
    """A header that every recorded request of a wire has is one that we send."""
    for aim in {aim.api: aim for aim in subject.aims}.values():
        recorded = [set(one.request_headers) for one in subject.exchanges if subject.api_of(one) == aim.api]
        sent = {name.lower() for name in (*subject.connection.headers, *subject.write(aim, [user("q")]).headers)}
        if missing := set.intersection(*recorded) - sent - _REQUEST_HEADERS if recorded else set():
            yield RuleFinding(f"recorded requests have {', '.join(sorted(missing))}, ours do not", aim.api)


_REQUEST_HEADERS = frozenset({"content-type", "accept", "user-agent", "content-length", "host", "accept-encoding"})

_RESPONSE_HEADERS = frozenset(
    {"content-type", "content-length", "date", "retry-after", "retry-after-ms", "x-should-retry"}
)

_SECRET_NAME = re.compile(
    r"(^|[-_])(key|token|secret|signature|credential|auth|cookie|session|org|account)", re.IGNORECASE
)

_TOKEN_PATH = re.compile(r"/(?:[\w.-]*token|oauth2?|login|auth|identity)(?:/|:|$)", re.IGNORECASE)

_SHORTEST_VALUE = 16
"""Characters of a value that its name makes a secret: shorter ones are made up for tests."""

_SECRET = re.compile(
    r"""
    \b(?:[a-z]{1,2}k|x[a]i|hf|r8|fw|key)[-_](?:[a-z]+[-_])*[A-Za-z0-9_-]{20,}
    | \bAIza[0-9A-Za-z_-]{30,} | \bgh[po]_[0-9A-Za-z]{24,} | \bAKIA[0-9A-Z]{16}\b
    | \beyJ[A-Za-z0-9_-]{16,}\.eyJ[A-Za-z0-9_-]{16,}
    | (?i:bearer\s+[A-Za-z0-9._-]{16,})
    | -----BEGIN\ [A-Z ]*PRIVATE\ KEY
    # the exchange of a key for a token: a form's field, and a field of the answer, whatever the token looks like
    | \b(?i:api_?key|client_secret|assertion|password)=[A-Za-z0-9%._~+/-]{16,}
    | \b(?i:access_token|refresh_token|id_token|client_secret)['"]?:[ ]['"]?[A-Za-z0-9._~+/=-]{16,}
    """,
    re.VERBOSE,
)


@rule(
    "C47",
    "Cassettes hold no secret: headers by allowlist, bodies and query strings scanned.",
    source="docs/plugins/how-to/record-cassettes.md",
    fix="""Record with `interlingua_contract.recorder.vcr_config`: it keeps only the exchanges of your connection and
    the headers that a test needs (`quirks.headers` allows more by name), and removes secrets. Revoke any key that was
    ever committed.""",
)
def cassettes_hold_no_secret(subject: Subject) -> Iterator[RuleFinding]:
    """Each exchange's headers, addresses and bodies."""
    if subject.folder is None or not subject.folder.is_dir():
        raise NotApplicable("no cassette folder was passed")
    wire = {name.lower() for name in subject.connection.headers} | subject.quirks.headers | _REQUEST_HEADERS
    answered = (
        _RESPONSE_HEADERS | subject.quirks.headers | {name.lower() for name in subject.connection.request_id_headers}
    )
    if subject.exchanges:  # headers that the plugin itself writes are not secret: a request holds none
        wire |= {name.lower() for aim in subject.aims for name in subject.write(aim, [user("q")]).headers}
    exchange_of_key = exchange_path(subject.connection)
    for path in sorted(subject.folder.rglob("*.yaml")):
        if match := _SECRET.search(path.read_text(encoding="utf-8", errors="replace")):
            yield RuleFinding(f"what begins with {match[0][:6]!r} looks like a secret", path.name)
        exchanges = _read_or_none(path)
        asked = {api for exchange in exchanges if (api := subject.api_of(exchange)) is not None}
        if asked and asked.isdisjoint(subject.apis):
            continue  # another API has other headers
        for exchange in exchanges:
            extra = exchange.request_headers.keys() - wire
            extra |= exchange.headers.keys() - answered
            if extra:
                yield RuleFinding(f"headers that are not allowed: {', '.join(sorted(extra))}", path.stem)
            for why in _find_secrets(subject, exchange, exchange_of_key):
                yield RuleFinding(why, path.stem)


def _read_or_none(path: Path) -> list[RecordedExchange]:
    try:
        return read_cassette(path)
    except CallerError:  # C46 reports it
        return []


def _find_secrets(subject: Subject, exchange: RecordedExchange, exchange_of_key: str | None) -> Iterator[str]:
    """Yield what looks like a secret in the address and the bodies of one exchange."""
    place = urlsplit(exchange.uri)
    if "@" in place.netloc:
        yield "the address names a user"
    for name, value in parse_qsl(place.query):
        if (is_secret_parameter(name) or _SECRET_NAME.search(name)) and len(value) > 6:
            yield f"the query parameter {name} looks like a secret"
    for side, body in (("request", exchange.request_body), ("answer", exchange.body)):
        for name, value in named_secrets(body.decode("utf-8", "replace")):
            if len(value) >= _SHORTEST_VALUE:
                yield f"{name} of the {side} looks like a secret"
    asks_for_token = subject.connection.find_endpoint(place.path) is None and (
        _TOKEN_PATH.search(place.path) or _is_form(exchange)
    )
    if place.path == exchange_of_key or asks_for_token:  # a token may look like anything
        for body in (exchange.request_body, exchange.body):
            for text in opaque_texts(body):
                yield f"{place.path} exchanges a key, and {text[:4]!r}… may be the key or the token"


def _is_form(exchange: RecordedExchange) -> bool:
    return "form-urlencoded" in exchange.request_headers.get("content-type", "")


@rule(
    "C89",
    "A request goes where the recorded one went: the same path and query, and the same values of its headers.",
    source="hook to_wire; hook connection",
    fix="""Write the path, the version in it and the query as the recorded exchange has them. If the service has moved,
    record again.""",
)
def requests_go_where_they_went(subject: Subject) -> Iterator[RuleFinding]:
    """A request for the model of each recorded exchange, streamed if that was streamed."""
    for exchange in subject.exchanges:
        wrong = _differing_address(subject, exchange, exchange.streamed) if exchange.good else ""
        if wrong and (exchange.streamed or _differing_address(subject, exchange, streamed=True)):
            yield RuleFinding(wrong, exchange.cassette)  # a service may answer whole at its streaming address


def _differing_address(subject: Subject, exchange: RecordedExchange, streamed: bool) -> str:
    """Return what differs between a recorded address and the one of a request that is written now."""
    try:
        request = subject.write(aim_for(subject, exchange), [user("q")], stream=streamed)
    except InterlinguaError:
        return ""
    went, written = urlsplit(exchange.uri), urlsplit(request.path)
    own = subject.connection.url  # its addresses may depend on settings, which the recording does not show
    same_path = unquote(went.path).endswith(unquote(written.path))
    if not same_path and own is None:
        return f"it went to {went.path!r}, ours goes to {written.path!r}"
    for name, value in request.headers.items():
        recorded = exchange.request_headers.get(name.lower())
        dated = "version" in name.lower() or name.lower() in subject.connection.list_headers  # each feature has its own
        if recorded not in (None, value) and not dated:
            return f"the header {name} is {value!r}, recorded {recorded!r}"
    below_base = own is None or own(request) == subject.connection.base_url + request.path
    if exchange.streamed and same_path and below_base and _terms(went.query) != _terms(written.query):
        return f"its query was {went.query!r}, ours is {written.query!r}"
    return ""


def _terms(query: str) -> set[tuple[str, str]]:
    return {(name, value) for name, value in parse_qsl(query) if not _SECRET_NAME.search(name)}
