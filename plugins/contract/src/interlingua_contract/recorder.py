"""Write cassettes: which exchanges are kept, which values are removed, and the form of the file."""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, ClassVar
from urllib.parse import quote_plus, unquote_plus, urlsplit

import yaml

from interlingua.plugins import Connection, ConnectionSettings, Provider, Registry
from interlingua_cli.cassettes import read_body

REQUEST_HEADERS = frozenset({"content-type", "accept"})
RESPONSE_HEADERS = frozenset({"content-type", "retry-after", "retry-after-ms", "x-should-retry"})
REMOVED = "-"
"""Text that replaces a secret."""

_FORMS = ("parsed_body", "lines", "string", "base64")
_SHORTEST = 6  # characters of a value that a secret's name makes a secret
_SHORTEST_WORD = 8  # characters of a secret that is removed wherever it is repeated
_NAME = re.compile(
    r".*(?:api|private|session|subscription|access)key(?:id)?"
    r"|.*(?:access|refresh|id|session|security|auth|bearer|subject|actor)token"
    r"|(?:client)?(?:secret|assertion)|passw(?:or)?d|credentials?|authorization"
)
_QUERY_NAME = re.compile(rf"(?:.*(?:key|token|secret|password|credential|signature|auth)|sig|{_NAME.pattern})")
_HEADER_NAME = re.compile(r"key|token|secret|signature|credential|auth|cookie|password", re.IGNORECASE)
_JSON_FIELD = re.compile(
    r'(?P<quote>\\*")(?P<name>[A-Za-z][\w-]*)(?P=quote)\s*:\s*(?P=quote)(?P<value>[^"\\\s]+)(?P=quote)'
)
_FORM_FIELD = re.compile(r"(?:^|[&?\s])(?P<name>[A-Za-z][\w-]*)=(?P<value>[^&\s\"'\\<>]+)")
_DATE = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d")
_FAR, _FAR_DATE = 4102444800, "2100-01-01T00:00:00Z"  # a token in a cassette never expires
_SECONDS = 1e11  # a greater time is in milliseconds


def vcr_config(headers: Collection[str] = (), provider: str | Provider | None = None) -> dict[str, Any]:
    """Return vcr's options: the body matched too, only allowed headers kept, secrets removed.

    Args:
        headers: names of request headers that the service requires and that are not secret.
        provider: a provider, or the key of an installed one. Only its exchanges are kept: those with an endpoint of its
            connection, the exchange of its key without the key and the token, and, if it implements `follow_up`,
            what goes to the service's hosts. None keeps all.
    """
    if isinstance(provider, str):
        provider = Registry().provider(provider)
    return {
        "match_on": ["method", "path", "body"],
        "serializer": SERIALIZER_NAME,
        "decode_compressed_response": True,
        "before_record_request": _Filter(provider, headers),
        "before_record_response": _keep_response_headers,
    }


class _Filter:
    """Returns a request as a cassette may hold it, or None if it does not belong there."""

    def __init__(self, provider: Provider | None, headers: Collection[str]) -> None:
        self._headers = REQUEST_HEADERS | {name.lower() for name in headers}
        self._connection: Connection | None = None
        self._answers_later = provider is not None and provider.answers_later
        self._exchange: str | None = None  # path of the key's exchange
        self._origins: set[tuple[str, str]] = set()
        if provider is not None:
            found = self._connection = provider.connection(ConnectionSettings(environ=os.environ))
            self._headers |= {name.lower() for name in found.headers}
            self._exchange = exchange_path(found)
            self._origins.add(urlsplit(found.base_url)[:2])
            for name in found.env_vars:
                if _HEADER_NAME.search(name):
                    Serializer.note(os.environ.get(name, ""))
        if self._exchange is not None:
            Serializer.exchanges.add(self._exchange)

    def __call__(self, request: Any) -> Any:
        if not self._belongs(request.uri):
            return None
        for name, value in request.headers.items():
            if name.lower() not in self._headers and _HEADER_NAME.search(name):
                for word in str(value).split():
                    Serializer.note(word)
        request.headers = {name: value for name, value in request.headers.items() if name.lower() in self._headers}
        exchange = urlsplit(request.uri).path == self._exchange
        request.uri = remove_from_address(request.uri)
        if request.body and exchange:
            for value in _opaque_words(unquote_plus(_text(request.body))):
                Serializer.note(value)
            remove_named(_text(request.body), Serializer.note)
            request.body = REMOVED.encode()
        elif request.body and (text := _text(request.body, "strict")):
            cleaned = remove_named(text, Serializer.note)
            if cleaned != text:
                request.body = cleaned.encode()
        return request

    def _belongs(self, uri: str) -> bool:
        if self._connection is None:
            return True
        place = urlsplit(uri)
        if self._connection.find_endpoint(place.path) is not None:
            self._origins.add(place[:2])
            return True
        if place.path == self._exchange:
            return True
        host = place.hostname or ""
        ours = any(re.fullmatch(re.escape(one).replace(r"\*", "[^.]+"), host) for one in self._connection.hosts)
        return self._answers_later and (ours or place[:2] in self._origins)


def exchange_path(connection: Connection) -> str | None:
    """Return the path of the request that exchanges the key, or None."""
    if connection.key_exchange is None:
        return None
    with suppress(Exception):  # without a key the plugin may refuse to write it
        return urlsplit(connection.key_exchange.request(datetime.now(UTC)).url).path
    return None


def _is_secret(field: re.Match[str]) -> bool:
    return _NAME.fullmatch(_plain(field["name"])) is not None and len(field["value"]) >= _SHORTEST


def named_secrets(text: str) -> Iterator[tuple[str, str]]:
    """Yield name and value of each field that its name marks as secret: members of JSON, fields of forms, queries."""
    for pattern in (_JSON_FIELD, _FORM_FIELD):
        for field in pattern.finditer(text):
            if _is_secret(field):
                yield field["name"], field["value"]


def remove_named(text: str, note: Callable[[str], None] = lambda _value: None) -> str:
    """Return the text without the values of `named_secrets`; each is passed to `note`."""

    def removed(field: re.Match[str]) -> str:
        if not _is_secret(field):
            return field[0]
        note(unquote_plus(field["value"]))
        start, end = field.span("value")
        return field[0][: start - field.start()] + REMOVED + field[0][end - field.start() :]

    return _FORM_FIELD.sub(removed, _JSON_FIELD.sub(removed, text))


def remove_from_address(uri: str) -> str:
    """Return an address without a user and without the parameters whose names say that they are secret."""
    place = urlsplit(uri)
    terms = [term for term in place.query.split("&") if not is_secret_parameter(unquote_plus(term.partition("=")[0]))]
    for term in place.query.split("&"):
        if term not in terms:
            Serializer.note(unquote_plus(term.partition("=")[2]))
    return place._replace(netloc=place.netloc.rpartition("@")[2], query="&".join(terms)).geturl()


def is_secret_parameter(name: str) -> bool:
    """Return True if the name of an address's parameter says that its value is secret."""
    return _QUERY_NAME.fullmatch(_plain(name)) is not None


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").removeprefix("x")


def _text(body: Any, errors: str = "replace") -> str:
    try:
        return body.decode("utf-8", errors) if isinstance(body, bytes) else str(body)
    except UnicodeDecodeError:
        return ""


def is_opaque(word: str) -> bool:
    """Return True for text that may be a key or a token: long, without spaces, and no address or date."""
    if any(sign in word for sign in (" ", "://", "\n")) or word.startswith("urn:") or _DATE.match(word):
        return False
    mixed = any(sign.isdigit() for sign in word) and any(sign.isalpha() for sign in word)
    return len(word) >= (12 if mixed else 20)


def _opaque_words(text: str) -> Iterator[str]:
    yield from (word for word in re.split(r"[\s\"'&=,{}\[\]]+", text) if is_opaque(word))


def opaque_texts(body: bytes) -> Iterator[str]:
    """Yield what may be a key or a token in the body of a request or an answer."""
    yield from _opaque_words(unquote_plus(body.decode("utf-8", "replace")))


def _keep_response_headers(response: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in response["headers"].items() if name.lower() in RESPONSE_HEADERS}
    return {**response, "headers": kept}


# -- the file -------------------------------------------------------------------------------------------------------

SERIALIZER_NAME = "yaml"
"""vcr's own name, so that pytest-recording finds the file when it rewrites a cassette."""


def register(vcr: Any) -> None:
    """Make the form known to a VCR object (pytest-recording's `pytest_recording_configure` hook)."""
    vcr.register_serializer(SERIALIZER_NAME, Serializer)


def pytest_recording_configure(config: Any, vcr: Any) -> None:
    """pytest-recording's hook: a conftest imports it; `ProviderContract` registers this module."""
    register(vcr)


class Serializer:
    """vcr's serializer interface: bodies go to the file parsed and come back as the bytes that were sent.

    Attributes:
        secrets: values that requests of this process had as secrets; no file that is written contains them.
        exchanges: paths of requests that exchange a key.
    """

    secrets: ClassVar[set[str]] = set()
    exchanges: ClassVar[set[str]] = set()

    @classmethod
    def note(cls, value: str) -> None:
        """Remove a value from every file that is written from now on."""
        if len(value) >= _SHORTEST_WORD:
            cls.secrets.add(value)

    @classmethod
    def serialize(cls, cassette: dict[str, Any]) -> str:
        """Write a cassette."""
        for interaction in cassette["interactions"]:
            answer = interaction["response"]["body"]
            text = _text(answer.get("string") or b"", "strict")
            if urlsplit(interaction["request"]["uri"]).path in cls.exchanges:
                answer["string"] = _without_token(text, cls.note).encode()
            elif text and (cleaned := remove_named(text, cls.note)) != text:
                answer["string"] = cleaned.encode()
        forms = {form for secret in cls.secrets for form in (secret, quote_plus(secret), json.dumps(secret)[1:-1])}
        longest_first = sorted(forms, key=len, reverse=True)
        for interaction in cassette["interactions"]:
            request, response = interaction["request"], interaction["response"]
            request["uri"] = _replaced(request["uri"], longest_first)
            request.update(_readable(_replaced(request.pop("body", None), longest_first)))
            response["body"] = _readable(_replaced(response["body"].get("string"), longest_first))
        return yaml.safe_dump(cassette, sort_keys=False, allow_unicode=True, width=120)

    @staticmethod
    def deserialize(text: str) -> dict[str, Any]:
        """Read a cassette."""
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, if PyYAML has it
        cassette: dict[str, Any] = yaml.load(text, loader)  # noqa: S506 a safe loader
        for interaction in cassette["interactions"]:
            request, response = interaction["request"], interaction["response"]
            request["body"] = read_body(request) or None
            for form in _FORMS:  # vcr knows only its own fields
                request.pop(form, None)
            response["body"] = {"string": read_body(response["body"])}
        return cassette


def _replaced(body: Any, secrets: list[str]) -> Any:
    """Return a body or an address without the secrets."""
    for secret in secrets if body else ():
        if isinstance(body, bytes):
            body = body.replace(secret.encode(), REMOVED.encode())
        else:
            body = body.replace(secret, REMOVED)
    return body


def _without_token(text: str, note: Callable[[str], None]) -> str:
    """Return the answer to a key's exchange without what may be a token; what is left never expires."""
    try:
        return json.dumps(_without_token_in(json.loads(text), "", note), ensure_ascii=False, separators=(",", ":"))
    except ValueError:
        return REMOVED


def _without_token_in(value: Any, name: str, note: Callable[[str], None]) -> Any:
    if isinstance(value, dict):
        return {key: _without_token_in(one, key, note) for key, one in value.items()}
    if isinstance(value, list):
        return [_without_token_in(one, name, note) for one in value]
    plain = _plain(name)
    if isinstance(value, str):
        if plain.startswith("exp") and _DATE.match(value):
            return _FAR_DATE
        if is_opaque(value) or (_NAME.fullmatch(plain) and len(value) >= _SHORTEST):
            note(value)
            return REMOVED
    elif isinstance(value, (int, float)) and plain.startswith("exp") and value > _FAR / 10:
        return _FAR * (1000 if value > _SECONDS else 1)
    return value


def _readable(body: Any) -> dict[str, Any]:
    """Choose the most readable form that yields the same bytes."""
    if body in (None, b"", ""):
        return {}
    try:
        text = body.decode("utf-8") if isinstance(body, bytes) else str(body)
    except UnicodeDecodeError:  # a binary framing
        return {"base64": b64encode(body).decode()}
    try:
        parsed = json.loads(text)
    except ValueError:
        parsed = None
    if parsed is not None and json.dumps(parsed, ensure_ascii=False, separators=(",", ":")) == text:
        return {"parsed_body": parsed}
    if parsed is None and "\n\n" in text and "\r" not in text:
        return {"lines": text.split("\n")}
    return {"string": text}
