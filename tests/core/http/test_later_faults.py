"""Laws of answers that come later and of exchanged keys, under faults at each request but the creation.

Whatever fails: the work is created and billed once, the key goes to the exchange alone and its token to the service
alone, a call ends in its time, and an error after the creation holds what another client takes up, unless the work was
cancelled.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import attrs
import pytest

import interlingua as il
from interlingua import codec
from interlingua._http import exchange as exchanges
from interlingua._http import io, pending
from interlingua._plugins.hookspecs import hookimpl
from interlingua.errors import APITimeoutError
from interlingua.plugins import Connection, ConnectionSettings, HttpRequest, KeyExchange, WireResponse
from tests.core.http.test_follow_up import COUNTED, Later, asynchronous, blocking
from tests.support.fake_provider import STREAM, Got, Reply, served

KEY = "the-key-0123456789"
TOTAL, SHORT, LAST, SLACK = (
    0.8,
    0.3,
    0.4,
    1.5,
)  # seconds: of a call, of one to cancel, of its last request; on a busy machine
RETRY = il.Retry(initial_delay=0.01)
PLACES = ("poll", "stream", "usage", "cancel", "token")


@attrs.frozen
class Token:
    text: str
    expires_at: datetime


class Exchanging(Later):
    """A provider whose answers are jobs, whose counts are in another request, and whose key is exchanged."""

    def __init__(self) -> None:
        super().__init__(usage=True)

    @hookimpl
    def connection(self, settings: ConnectionSettings) -> Connection:
        base, key = settings.base_url, settings.api_key

        def request(time: datetime) -> HttpRequest:
            return HttpRequest("POST", f"{base}/token", {}, f"key={key}".encode(), time)

        def read(response: WireResponse) -> Token:
            body = json.loads(response.body)
            return Token(body["token"], datetime.fromtimestamp(body["until"], UTC))

        def sign(_request: HttpRequest, token: Token) -> Mapping[str, str]:
            return {"authorization": f"Bearer {token.text}"}

        return Connection(base_url=str(base), key_exchange=KeyExchange(request=request, read=read), sign=sign)


class Service:
    """Jobs that take two polls; `fault` answers at one place, so many times. `slow` jobs never end."""

    def __init__(self, place: str = "", fault: Reply | None = None, times: int = 0) -> None:
        self.place, self.fault, self.times = place, fault or Reply(), times
        self.url, self.polls, self.slow, self.tokens, self.revoked = "", 2, place == "cancel", 0, set[str]()
        self.asked: list[str] = []
        self.odd: list[str] = []  # requests that show the key, or no token
        self.lock = threading.Lock()

    def __call__(self, got: Got) -> Reply:
        with self.lock:
            place = self.place_of(got)
            self.asked.append(place)
            shown = f"{got.path} {got.headers} {got.body!r}"
            if (KEY in shown) != (place == "token") or ("Bearer t" in shown) != (place != "token"):
                self.odd.append(shown)
            if place == self.place and self.times > 0:
                self.times -= 1
                if self.fault.status == 401:
                    self.revoked.add(f"Bearer t{self.tokens}")
                return self.fault
            if got.headers.get("authorization") in self.revoked:
                return Reply(status=401)
            return self.answer(place)

    def place_of(self, got: Got) -> str:
        last = got.path.rpartition("/")[2]
        named = {"jobs": "create", "token": "token", "cancel": "cancel", "stream": "stream"}.get(last)
        return named or ("usage" if "stream" in self.asked else "poll")

    def answer(self, place: str) -> Reply:
        if place == "token":
            self.tokens += 1
            return _json({"token": f"t{self.tokens}", "until": (datetime.now(UTC) + timedelta(hours=1)).timestamp()})
        if place == "stream":
            return Reply(body=[STREAM[0], 9.0, *STREAM[1:]] if self.slow else [STREAM[0], STREAM[1], STREAM[3]])
        self.polls -= place == "poll"
        if place in ("poll", "usage") and (self.polls <= 0 or place == "usage") and not self.slow:
            return _json(COUNTED)
        urls = {"get": f"{self.url}/jobs/j1", "stream": f"{self.url}/jobs/j1/stream"}
        return _json({"id": "j1", "status": "processing", "urls": urls})


def _json(value: Any) -> Reply:
    return Reply(body=(json.dumps(value).encode(),))


FAULTS = {
    "500": Reply(status=500),
    "503, soon": Reply(status=503, headers={"retry-after": "0.01"}),
    "429, much later": Reply(status=429, headers={"retry-after": "30"}),
    "401": Reply(status=401),
    "404": Reply(status=404),
    "a redirect": Reply(status=307),
    "a close before the answer": Reply(cut=True),
    "a close within the body": Reply(body=(b'{"id"', None)),
    "an empty body": Reply(body=(b"",)),
    "a page": Reply(body=(b"<html><title>Sign in</title></html>",)),
    "a list": Reply(body=(b"[]",)),
    "not gzip": Reply(headers={"content-encoding": "gzip"}),
    "no answer in time": Reply(wait=TOTAL + 1.0),
    "a body without end": Reply(body=(b"[" * 100_000,)),
}
Run = Callable[..., Any]


@contextmanager
def running(service: Service) -> Iterator[tuple[Service, list[Got]]]:
    """Run a service, and another host that redirects lead to; yield what that one got."""
    with served() as foreign, served(choose=service) as server:
        service.url = server.url
        service.fault.headers |= {"location": f"{foreign.url}/x"} if service.fault.status == 307 else {}
        yield service, foreign.got


def ask(run: Run, service: Service, work: str, *given: Any) -> tuple[il.Message | None, Any]:
    """Return the message or the error of one call."""
    total = 10.0 if work == "resume" else SHORT if service.slow else TOTAL
    settings = {"timeout": total, "retry": RETRY, "max_response_bytes": 50_000}
    try:
        made = run(service.url, Exchanging(), work, *given, api_key=KEY, **settings)
    except il.InterlinguaError as error:
        return None, error
    return made[1] if work == "stream" else made, None


def check(run: Run, service: Service, foreign: list[Got], work: str) -> None:
    """Ask once under the fault, and check the laws."""
    began = time.monotonic()
    message, error = ask(run, service, work)
    taken = time.monotonic() - began

    assert taken < TOTAL + SLACK + (LAST if "cancel" in service.asked else 0.0)
    assert not foreign, "something was sent to another host"
    assert service.odd == [], "the key left the exchange, or a request had no token"
    created, cancelled = service.asked.count("create"), service.asked.count("cancel")
    assert created <= 1, "created twice"
    if message is not None:
        assert (message.text, created, cancelled) == ("hello", 1, 0)
        return
    assert created == 1 or service.place == "token"
    assert bool(cancelled) == (created == 1 and isinstance(error, APITimeoutError))
    if created and not cancelled:
        service.times = 0  # it works again
        stored = codec.loads_message(codec.dumps_message(error.partial))
        taken_up, _ = ask(run, service, "resume", stored)
        assert taken_up is not None
        assert (taken_up.text, service.asked.count("create")) == ("hello", 1)
        assert not foreign


@pytest.fixture(autouse=True)
def _short_last_request(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (exchanges, io):
        monkeypatch.setattr(module, "LAST_SECONDS", LAST)


CASES = [(place, times) for place in PLACES for times in (1, 99) if (place, times) != ("cancel", 99)]  # it is sent once


@pytest.mark.parametrize("run", [blocking, asynchronous])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(("place", "times"), CASES)
def test_laws_hold_under_faults(place: str, fault: str, times: int, run: Run) -> None:
    reply = attrs.evolve(FAULTS[fault], headers=dict(FAULTS[fault].headers))
    for work in {"poll": ("send",), "stream": ("stream",), "usage": ("stream",)}.get(place, ("send", "stream")):
        with running(Service(place, reply, times)) as (service, foreign):
            check(run, service, foreign, work)


@pytest.mark.parametrize("run", [blocking, asynchronous])
def test_a_token_that_expires_again_and_again_is_replaced_between_polls(run: Run) -> None:
    class Expiring(Service):
        def answer(self, place: str) -> Reply:
            if place == "poll":
                self.revoked.add(f"Bearer t{self.tokens}")
            return super().answer(place)

    with running(Expiring()) as (service, _):
        service.polls = 4
        message, error = ask(run, service, "send")

    assert error is None
    assert (message and message.text, service.tokens) == ("hello", 4)
    polls = [place for place in service.asked if place != "token"]
    assert polls == ["create", *["poll"] * 7]
    assert ("token", "token") not in pairwise(service.asked)


def test_the_laws_notice_a_key_that_follows_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: addresses are not checked."""
    monkeypatch.setattr(pending, "check_address", lambda *_given: None)
    with served() as other, running(Service("create")) as (service, _):
        urls = {"get": f"{other.url}/jobs/j1"}
        service.fault, service.times = _json({"id": "j1", "status": "processing", "urls": urls}), 1
        with pytest.raises(AssertionError):
            check(blocking, service, other.got, "send")


def test_the_laws_notice_a_repeated_creation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a failed follow-up begins the request again."""
    send = exchanges.Exchange.send

    async def forgetful(self: Any, waits: Any) -> Any:
        if self._tries > 0:
            self._next = None
        return await send(self, waits)

    monkeypatch.setattr(exchanges.Exchange, "send", forgetful)
    with running(Service("poll", Reply(status=500), 1)) as (service, foreign), pytest.raises(AssertionError):
        check(blocking, service, foreign, "send")
