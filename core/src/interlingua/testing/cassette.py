"""Cassettes of applications: exchanges with services, recorded once and replayed without a network."""

from __future__ import annotations

import base64
import re
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from interlingua._http.body import Decompressor
from interlingua._http.transports import new_transport
from interlingua._json import dumps, loads
from interlingua.errors import CallerError, WireError
from interlingua.testing.memory import AsyncMemoryTransport, MemoryReply, MemoryTransport
from interlingua.transport import HttpRequest, TimeLimits, connection_failed

_KEPT_HEADERS = ("content-type", "retry-after", "request-id", "x-request-id")
_SECRET_NAME = re.compile(r"auth|key|token|secret|cookie|signature|credential|^sig$", re.IGNORECASE)
_FIELDS = "access_token|refresh_token|id_token|client_secret|assertion|api_key|SecretAccessKey|SessionToken"
_SECRET_FIELD = re.compile(rf'("(?:{_FIELDS})"\s*:\s*)"(?:[^"\\]|\\.)*"')
_SECRET_FORM = re.compile(rf"(?<![^&])((?:{_FIELDS})=)[^&]*")
_CALL_ID = re.compile(r"tu_[0-9A-Z]{26}")
_FORMAT = {"interlingua_cassette": 1}
_SHORTEST_SECRET = 6


class Cassette:
    """The exchanges of an application with services, in a file of JSON lines.

    While recording, requests are sent, and each exchange is appended once its answer is read. Keys, tokens and cookies
    of requests are left out, even if an answer repeats them; prompts and answers are in the file.
    While replaying, a request gets the answer of the first exchange not used yet whose method, address and body are
    the same, in any order, so that requests may run at once.

    Args:
        path: the file.
        record: True to record, replacing the file; False to replay.

    Attributes:
        sent: the bodies of the requests: parsed if they are JSON, otherwise strings.

    Raises:
        CallerError: the file does not exist or is not a cassette.
    """

    def __init__(self, path: str | Path, *, record: bool = False) -> None:
        self.path = Path(path)
        self.is_recording = record
        self.sent: list[Any] = []
        self._lock = threading.Lock()
        self._left: list[Mapping[str, Any]] = []
        if record:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_bytes(dumps(_FORMAT) + b"\n")
            return
        try:
            head, *lines = [loads(line) for line in self.path.read_bytes().splitlines() if line]
        except OSError as error:
            raise CallerError(f"{self.path}: {error.strerror}; record it first (record=True)") from None
        except ValueError:
            head, lines = None, []
        if head != _FORMAT:
            raise CallerError(f"{self.path} is not a cassette of this version")
        self._left = lines

    def transport(self) -> Any:
        """Return a transport for `Client(transport=…)`."""
        if not self.is_recording:
            return MemoryTransport(self._replay)
        return RecordingTransport(self, new_transport(None, blocking=True))

    def async_transport(self) -> Any:
        """Return a transport for `AsyncClient(transport=…)`; a recording one serves one event loop."""
        if not self.is_recording:
            return AsyncMemoryTransport(self._replay)
        return AsyncRecordingTransport(self, new_transport(None, blocking=False))

    def assert_done(self) -> None:
        """Raise an AssertionError if recorded exchanges were not used."""
        if self._left and not self.is_recording:
            first = self._left[0]
            text = f"{len(self._left)} recorded exchanges were not used; the first is {first['method']} {first['url']}"
            raise AssertionError(f"{self.path}: {text}")

    def _replay(self, request: HttpRequest) -> MemoryReply:
        asked = _described(request)
        with self._lock:
            self.sent.append(asked["body"])
            fits = (place for place, one in enumerate(self._left) if _same(one) == _same(asked))
            place = next(fits, None)
            if place is None:
                raise AssertionError(f"{self.path}: {self._explain(asked)}; record it again if that is right")
            found = self._left.pop(place)
        return MemoryReply(_pieces(found), status=found["status"], headers=found["headers"])

    def _explain(self, asked: Mapping[str, Any]) -> str:
        about = f"no exchange is left for {asked['method']} {asked['url']}"
        near = [one for one in self._left if (one["method"], one["url"]) == (asked["method"], asked["url"])]
        return f"{about}: {_difference(near[0]['body'], asked['body'], 'body')}" if near else about

    def append(self, exchange: Mapping[str, Any]) -> None:
        """Write an exchange at the end of the file."""
        with self._lock, self.path.open("ab") as file:
            file.write(dumps(exchange) + b"\n")
        self.sent.append(exchange["body"])


class _Recorder:
    """Records one reply while it is read."""

    def __init__(self, cassette: Cassette, request: HttpRequest, reply: Any) -> None:
        self.status, self.headers = reply.status, dict(reply.headers)
        self._cassette, self._request, self._reply = cassette, request, reply
        self.abort = reply.abort
        self._pieces: list[bytes] = []
        self._broken: str | None = None
        self._kept = False
        encoding = self.headers.pop("content-encoding", "identity").strip().lower()
        self._inflate = None if encoding in ("", "identity") else Decompressor(encoding).pieces

    def note(self, piece: bytes) -> bytes:
        """Note a piece; return it decompressed."""
        piece = piece if self._inflate is None else b"".join(self._inflate(piece))
        self._pieces.append(piece)
        return piece

    def keep(self) -> None:
        """Append the exchange, once."""
        if self._kept:
            return
        self._kept = True
        secrets = [value for name, value in self._request.headers.items() if _SECRET_NAME.search(name)]
        secrets = sorted({word for value in secrets for word in value.split() if len(word) >= _SHORTEST_SECRET})
        asked = loads(_without(dumps(_described(self._request)).decode(), secrets))
        headers = {name: value for name, value in self.headers.items() if name in _KEPT_HEADERS}
        broken = {} if self._broken is None else {"broken": self._broken}
        body = _described_body(self._pieces, secrets)
        self._cassette.append({**asked, "status": self.status, "headers": headers, **body, **broken})


class _RecordedReply(_Recorder):
    def __iter__(self) -> Iterator[bytes]:
        try:
            for piece in self._reply:
                yield self.note(piece)
        except WireError as error:
            self._broken = error.message
            raise

    def close(self) -> None:
        self._reply.close()
        self.keep()


class _AsyncRecordedReply(_Recorder):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._reply:
                yield self.note(piece)
        except WireError as error:
            self._broken = error.message
            raise

    async def aclose(self) -> None:
        await self._reply.aclose()
        self.keep()


class RecordingTransport:
    """A transport that sends requests through another one and records the exchanges."""

    def __init__(self, cassette: Cassette, inner: Any) -> None:
        self._cassette, self._inner = cassette, inner

    def open(self, request: HttpRequest, limits: TimeLimits) -> Any:
        """Send a request and return its reply, which is recorded when it is closed."""
        return _RecordedReply(self._cassette, request, self._inner.open(request, limits))

    def close(self) -> None:
        """Close the connections."""
        self._inner.close()


class AsyncRecordingTransport:
    """As `RecordingTransport`, for `AsyncClient`."""

    def __init__(self, cassette: Cassette, inner: Any) -> None:
        self._cassette, self._inner = cassette, inner

    async def open(self, request: HttpRequest, limits: TimeLimits) -> Any:
        """See `RecordingTransport.open`."""
        return _AsyncRecordedReply(self._cassette, request, await self._inner.open(request, limits))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


def _described(request: HttpRequest) -> dict[str, Any]:
    """Return a request as a cassette holds it: without headers, and without secrets in its address and body."""
    parts = urlsplit(request.url)
    query = [(name, "" if _SECRET_NAME.search(name) else value) for name, value in parse_qsl(parts.query)]
    url = parts._replace(query=urlencode(query), netloc=parts.netloc.rpartition("@")[2]).geturl()
    text = (request.body or b"").decode("utf-8", "replace")
    text = _SECRET_FIELD.sub(r'\1"-"', _SECRET_FORM.sub(r"\1-", text))
    try:
        body: Any = loads(text.encode())
    except ValueError:
        body = text
    return {"method": request.method, "url": url, "body": body}


def _described_body(pieces: list[bytes], secrets: list[str]) -> dict[str, Any]:
    """Return the body of a reply as strings, one for each piece that arrived; binary data as base64."""
    whole = b"".join(pieces)
    for parts in (pieces, [whole]):  # a piece may end within a character
        with suppress(UnicodeDecodeError):
            return {"pieces": [_without(part.decode(), secrets) for part in parts if part]}
    return {"base64": base64.b64encode(whole).decode()}


def _without(text: str, secrets: list[str]) -> str:
    for secret in secrets:
        text = text.replace(secret, "-")
    return _SECRET_FIELD.sub(r'\1"-"', text)


def _same(exchange: Mapping[str, Any]) -> bytes:
    """Return what has to be the same for an answer to fit; newly minted ids are numbered."""
    text = dumps([exchange["method"], exchange["url"], exchange["body"]]).decode()
    seen: dict[str, str] = {}
    return _CALL_ID.sub(lambda found: seen.setdefault(found[0], f"tu_{len(seen)}"), text).encode()


def _pieces(exchange: Mapping[str, Any]) -> Iterator[bytes]:
    if "base64" in exchange:
        yield base64.b64decode(exchange["base64"])
    else:
        yield from (piece.encode() for piece in exchange["pieces"])
    if "broken" in exchange:
        raise connection_failed(ConnectionError(exchange["broken"]))


def _difference(recorded: Any, sent: Any, place: str) -> str:
    """Describe the first difference of two values."""
    if isinstance(recorded, Mapping) and isinstance(sent, Mapping):
        for name in [*recorded, *(name for name in sent if name not in recorded)]:
            if recorded.get(name) != sent.get(name):
                return _difference(recorded.get(name), sent.get(name), f"{place}.{name}")
    if isinstance(recorded, list) and isinstance(sent, list):
        for number, (one, other) in enumerate(zip(recorded, sent, strict=False)):
            if one != other:
                return _difference(one, other, f"{place}[{number}]")
        return f"{place} has {len(sent)} items, and {len(recorded)} in the cassette"
    return f"{place} is {sent!r:.80}, and {recorded!r:.80} in the cassette"
