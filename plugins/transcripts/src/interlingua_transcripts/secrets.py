"""Secrets in session files, found by their form: agents read key files, and their sessions keep what they read.

A file is searched as it is written, in JSON: the `n` of an escaped line break is not a letter of a secret after it, and
strings inside strings are escaped twice. After a replacement the file is still valid JSON.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files

import attrs

# escaped white space, other escapes, colours of a terminal, escapes of addresses, the signs of a diff's line
_BREAK = re.compile(rb"(?:(?:\\[nrtbf]|\")[+-]?|\\u[0-9a-fA-F]{4}|\[[0-9;]{0,16}[mK]|%[0-9a-fA-F]{2})\Z")
_ESCAPE = re.compile(rb"\\(?:[nrtbf]|u[0-9a-fA-F]{4})")
_LETTERS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
# letters of base64: a short start between them begins nothing; only the alphabet without "/" has "_" and "-"
_ENCODED = _LETTERS | frozenset(b"+/_-")
_URL_ENCODED = _LETTERS | frozenset(b"_-")

_WORDS = bytes(byte if byte in _LETTERS or byte in b"_.~%+/=-" else 32 for byte in range(256))

_KEY_END = b" PRIVATE KEY"
# between two lines of a key: a line break, then the number or the place that a tool puts in front, a mark of Markdown,
# a colour; not what begins another key
_GAP = (
    rb"(?:(?!-----BEGIN)(?:\\+[nrt]|\\+u[0-9a-fA-F]{4}|\[[0-9;]{0,16}[mK]|\\+[\"']|[\"'`,|>:+*#\s-]|\xe2\x86\x92|\xe2\x94\x82"
    rb"|[0-9]{1,6}(?=\\+[tu]|[:|\t ]|\xe2)|[A-Za-z0-9_./-]{1,80}+:[0-9]{1,6}[:-]))"
)
_KEY_LINE = rb"[A-Za-z0-9+/=]{32,}+"
_WHOLE_KEY = re.compile(
    rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    rb"(?:(?:(?!-----BEGIN)[^\"]|(?<=\\)\"){20,8000}?-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    rb"|(?:" + _GAP + rb"{0,24}+" + _KEY_LINE + rb")++(?:" + _GAP + rb"{1,24}+[A-Za-z0-9+/=]{1,31}+(?![A-Za-z0-9]))?)"
)
_KEY_BEFORE_END = re.compile(
    rb"(?:" + _KEY_LINE + rb"(?:" + _GAP + rb"{1,24}+))++(?:[A-Za-z0-9+/=]{1,31}+" + _GAP + rb"{1,24}+)?\Z"
)

# a value that is assigned: behind its name, quotes of any depth, and a sign
_QUOTE = rb"(?:\\*[\"'`])?"
_ASSIGNED = (
    rb"[a-z0-9_]{0,24}(?:"
    + _QUOTE
    + rb"[ ]{0,3}(?:=>|:=|\?=|==?|:)[ ]{0,3}"
    + _QUOTE
    + rb"|\\*[\"'`],[ ]{0,3}\\*[\"'`])"
)
_VALUE = re.compile(rb"[A-Za-z0-9_+/=.~-]{12,300}+")
_NAMES = (
    b"api_key",
    b"apikey",
    b"api-key",
    b"_key",
    b"secret",
    b"token",
    b"passw",
    b"pwd",
    b"credential",
    b"accesskey",
)
_NAMED = {name: re.compile(re.escape(name) + _ASSIGNED) for name in _NAMES}
_NO_NAME = re.compile(
    rb"(?:public|cache|foreign|primary|partition|sort|idempotency|session|page|next|max|input|output|prompt|completion"
    rb"|reasoning|total|thinking|csrf|dedupe?|row|storage|dict|group|item|lookup|event|task|trace|content|object|s3"
    rb"|continuation|cursor|sync|resume|pagination|cancel\w*)[_-]?\Z"
)
_SCHEME = rb"(?:(?:bearer|basic|token|apikey)[ ]{1,3})?"
_HEADERS = (
    re.compile(rb"authorization" + _QUOTE + rb"[ ]{0,3}[:=,][ ]{0,3}" + _QUOTE + _SCHEME),
    re.compile(rb"bearer" + _QUOTE + rb"[ :=,]{1,3}" + _QUOTE),
)
_CREDENTIAL = re.compile(rb"[A-Za-z0-9_+/=.~|-]{16,2000}+")
_URL = re.compile(rb"(?:://|:\\/\\/)[A-Za-z0-9._~%+-]{0,64}:([^\s\"'\\@/:<>${}*\[\]()|`,]{3,128})@(?=[A-Za-z0-9\[])")
_FIELD = re.compile(rb";[ ]?(?:password|pwd)[ ]?=[ ]?")
_FIELD_VALUE = re.compile(rb"[^\s;\"'\\<>{}$*\[\]]{6,128}")
_UUID = re.compile(rb"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\Z")
_PLACEHOLDERS = re.compile(
    rb"example|xxxx|your|dummy|fake|placeholder|changeme|redacted|sample|test|mock|12345|abcdef|secret|password|invalid"
    rb"|\.\.\.|0000|insert|replace|here|token|hidden|string|none|null|undefined",
    re.IGNORECASE,
)


@attrs.frozen
class _Form:
    kind: str
    start: bytes
    rest: re.Pattern[bytes]
    front: re.Pattern[bytes] | None
    keep: bool
    in_word: bool


@cache
def _forms() -> tuple[_Form, ...]:
    text = files(__package__).joinpath("secret_forms.toml").read_text(encoding="utf-8")
    found = []
    for kind, form in tomllib.loads(text).items():
        rest = re.compile(form["rest"].encode())
        front = re.compile(form["front"].encode() + rb"\Z") if "front" in form else None
        for start in map(str.encode, form["starts"]):
            in_word = b" " not in start.translate(_WORDS)
            found.append(_Form(kind, start, rest, front, form.get("keep", False), in_word))
    return tuple(found)


_Found = tuple[int, int, str]  # where a secret starts and ends, and its kind


class SecretSearch:
    """Counts the different secrets of each kind in a file that passes through it.

    Args:
        redact: replace each secret by its kind in brackets; JSON stays JSON.
    """

    def __init__(self, *, redact: bool = False) -> None:
        self._redact = redact
        self._found: dict[str, set[bytes]] = {}

    def through(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the pieces of a file, which end at line ends; secrets are replaced if requested."""
        for piece in pieces:
            found = _search(piece)
            for start, end, kind in found:
                self._found.setdefault(kind, set()).add(piece[start:end])
            yield _replace(piece, found) if self._redact and found else piece

    @property
    def found(self) -> Mapping[str, int]:
        """The kinds of secrets, and how many different ones of each."""
        return {kind: len(secrets) for kind, secrets in self._found.items()}


def _search(data: bytes) -> list[_Found]:
    """Return the secrets of JSON text in their order; of two that overlap, the longer one that starts first."""
    lower = data.lower()
    found = [*_keys(data), *_tokens(data), *_connections(data, lower), *_headers(data, lower), *_assigned(data, lower)]
    found.sort(key=lambda one: (one[0], -one[1]))
    kept: list[_Found] = []
    for one in found:
        if not kept or one[0] >= kept[-1][1]:
            kept.append(one)
    return kept


def _replace(data: bytes, found: Sequence[_Found]) -> bytes:
    pieces = []
    done = 0
    for start, end, kind in found:
        pieces += [data[done:start], b"[" + kind.encode() + b"]"]
        done = end
    return b"".join([*pieces, data[done:]])


def _places(data: bytes, letters: bytes) -> Iterator[int]:
    place = data.find(letters)
    while place >= 0:
        yield place
        place = data.find(letters, place + len(letters))


def _forms_in(data: bytes) -> Iterator[_Form]:
    """Yield the forms whose start is in the data: most files have few, and long words are soon searched for all."""
    words = {word[:400] for word in data.translate(_WORDS).split() if len(word) >= 12}
    long_words = b" ".join(words)
    for form in _forms():
        if form.start in (long_words if form.in_word else data):
            yield form


def _tokens(data: bytes) -> Iterator[_Found]:
    for form in _forms_in(data):
        inside = _LETTERS
        if len(form.start) <= 4 and form.front is None:
            inside = _URL_ENCODED if b"_" in form.start or b"-" in form.start else _ENCODED
        for place in _places(data, form.start):
            rest = form.rest.match(data, place + len(form.start))
            if rest is None:
                continue
            start = place
            if form.front is not None:
                escapes = [match.end() for match in _ESCAPE.finditer(data, max(0, place - 90), place)]
                before = form.front.search(data, max([0, place - 90, *escapes]), place)
                if before is None:
                    continue
                start = before.start()
            if form.keep:
                yield rest.start(), rest.end(), form.kind
            elif _begins(data, start, inside) and _entropy(data[start : rest.end()]) >= 1.4:
                yield start, rest.end(), form.kind


def _begins(data: bytes, place: int, inside: frozenset[int]) -> bool:
    """Return whether a secret can begin at a place: not among letters, except behind an escape."""
    return (
        place == 0
        or data[place] not in _LETTERS
        or data[place - 1] not in inside
        or _BREAK.search(data, max(0, place - 20), place) is not None
    )


def _keys(data: bytes) -> Iterator[_Found]:
    """Yield private keys: whole, without their end, and without their beginning."""
    if _KEY_END not in data:
        return
    done = 0
    for match in _WHOLE_KEY.finditer(data):
        yield match.start(), match.end(), "private key"
    for place in _places(data, b"-----END "):
        if data.find(_KEY_END, place, place + 60) > 0:
            rest = _KEY_BEFORE_END.search(data, max(done, place - 8_000), place)
            if rest is not None:
                start = rest.start()
                if data[start - 1 : start] == b"\\":  # the rest of an escape looks like letters of the key
                    start += 5 if data[start] == ord("u") else 1
                yield start, rest.end(), "private key"
        done = place


def _connections(data: bytes, lower: bytes) -> Iterator[_Found]:
    if b"://" in data or b":\\/\\/" in data:
        for match in _URL.finditer(data):
            if not _PLACEHOLDERS.search(match[1]):
                yield match.start(1), match.end(1), "password in a URL"
    for match in _FIELD.finditer(lower):
        value = _FIELD_VALUE.match(data, match.end())
        if value is not None and not _PLACEHOLDERS.search(value[0]):
            yield value.start(), value.end(), "password in a connection string"


def _headers(data: bytes, lower: bytes) -> Iterator[_Found]:
    for pattern in _HEADERS:
        for match in pattern.finditer(lower):
            value = _CREDENTIAL.match(data, match.end())
            if value is not None and _is_random(value[0]):
                yield value.start(), value.end(), "Authorization header"


def _assigned(data: bytes, lower: bytes) -> Iterator[_Found]:
    for name, pattern in _NAMED.items():
        for match in pattern.finditer(lower):
            value = _VALUE.match(data, match.end())
            if value is None or not _is_random(value[0]):
                continue
            if name in (b"_key", b"token") and _NO_NAME.search(lower, max(0, match.start() - 24), match.start()):
                continue
            if _UUID.match(value[0]) and name == b"_key":
                continue
            yield value.start(), value.end(), "assigned secret"


def _is_random(value: bytes) -> bool:
    """Return whether a value looks as if a program made it: no words, no name of a file or a class, no example."""
    if _PLACEHOLDERS.search(value) or _entropy(value) < 3:
        return False
    letters = sum(byte in _LETTERS and not 48 <= byte <= 57 for byte in value)
    digits = sum(48 <= byte <= 57 for byte in value)
    if not letters or not digits:
        return False
    changes = sum(1 for _ in re.finditer(rb"[0-9][A-Za-z]|[A-Za-z][0-9]|[a-z][A-Z]", value))
    return changes >= max(3, len(value) // 12)


def _entropy(value: bytes) -> float:
    """Return the bits of information in a letter of a string (Shannon)."""
    return -sum(n / len(value) * math.log2(n / len(value)) for n in Counter(value).values())
