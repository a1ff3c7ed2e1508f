"""Keys that a service exchanges for tokens, and values of the connection in requests, over a real connection."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, quote_plus

import attrs
import pytest

import interlingua as il
from interlingua._plugins.hookspecs import hookimpl
from interlingua.errors import APITimeoutError, AuthenticationError, PluginError, ServerError
from interlingua.plugins import Connection, ConnectionSettings, HttpRequest, KeyExchange, WireRequest, WireResponse
from tests.support.fake_provider import WHOLE, Fake, Got, Reply, registry, served
from tests.support.retry_waits import without_waiting

KEY = "apikey-+/=0123456789"


@attrs.frozen
class Token:
    text: str
    expires_at: datetime


class Exchanging(Fake):
    """A provider whose key is exchanged; its project, from the environment, is in the body."""

    @hookimpl
    def connection(self, settings: ConnectionSettings) -> Connection:
        base = settings.base_url or "http://127.0.0.1:9"
        key = settings.api_key or ""

        def request(time: datetime) -> HttpRequest:
            headers = {"content-type": "application/x-www-form-urlencoded"}
            return HttpRequest("POST", f"{base}/token", headers, f"apikey={quote_plus(key)}".encode(), time)

        def sign(_request: HttpRequest, token: Token) -> Mapping[str, str]:
            return {"authorization": f"Bearer {token.text}"}

        return Connection(
            base_url=base,
            key_exchange=KeyExchange(request=request, read=read_token),
            sign=sign,
            env_vars=("FAKE_KEY", "FAKE_PROJECT"),
            options={"project": settings.options.get("project") or settings.environ.get("FAKE_PROJECT")},
        )

    @hookimpl
    def to_wire(self, messages: Sequence[Any], tools: Sequence[Any], options: Any) -> WireRequest:
        wire = super().to_wire(messages, tools, options)
        return attrs.evolve(wire, body=json.dumps(json.loads(wire.body) | dict(options.connection)).encode())


def read_token(response: WireResponse) -> Token:
    body = json.loads(response.body)
    return Token(body["access_token"], datetime.fromtimestamp(body["expiration"], UTC))


class Service:
    """Gives `t1`, `t2`, … valid for `seconds`; `refusals` answer the first requests for a token instead."""

    def __init__(self, *refusals: Reply, seconds: float = 3600.0) -> None:
        self.refusals, self.seconds, self.tokens, self.revoked = list(refusals), seconds, 0, set[str]()
        self.bodies: list[Any] = []
        self.lock = threading.Lock()

    def __call__(self, got: Got) -> Reply:
        with self.lock:
            if got.path == "/token":
                assert parse_qs(got.body.decode()) == {"apikey": [KEY]}
                if self.refusals:
                    return self.refusals.pop(0)
                self.tokens += 1
                expires = (datetime.now(UTC) + timedelta(seconds=self.seconds)).timestamp()
                return Reply(body=(json.dumps({"access_token": f"t{self.tokens}", "expiration": expires}).encode(),))
            assert KEY not in repr((got.body, got.headers))
            if got.headers["authorization"].removeprefix("Bearer ") in self.revoked:
                return Reply(status=401)
            self.bodies.append(json.loads(got.body))
            return Reply(body=(WHOLE,))


def blocking(url: str, calls: int = 2, **more: Any) -> None:
    with il.Client("fake:known", api_key=KEY, base_url=url, registry=registry(Exchanging()), **more) as client:
        without_waiting(client)
        for _ in range(calls):
            assert client.send("x").text == "hello"


def asynchronous(url: str, calls: int = 2, **more: Any) -> None:
    async def run() -> None:
        made = il.AsyncClient("fake:known", api_key=KEY, base_url=url, registry=registry(Exchanging()), **more)
        async with without_waiting(made) as client:
            assert {one.text for one in await asyncio.gather(*(client.send("x") for _ in range(calls)))} == {"hello"}

    asyncio.run(run())


BOTH = pytest.mark.parametrize("call", [blocking, asynchronous])


@BOTH
def test_the_key_is_exchanged_once_for_all_requests(call: Any) -> None:
    with served(choose=(service := Service())) as server:
        call(server.url, calls=6)
    assert (service.tokens, len(service.bodies)) == (1, 6)


def test_threads_share_an_exchange_and_its_time() -> None:
    def at_once(service: Service, **more: Any) -> list[str]:
        ended: list[str] = []

        def ask(client: il.Client) -> None:
            try:
                ended.append(client.send("x").text)
            except APITimeoutError:
                ended.append("no time")

        with (
            served(choose=service) as server,
            il.Client(
                "fake:known", api_key=KEY, base_url=server.url, registry=registry(Exchanging()), **more
            ) as client,
        ):
            threads = [threading.Thread(target=ask, args=(client,)) for _ in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        return ended

    assert at_once(service := Service()) == ["hello"] * 6
    assert service.tokens == 1
    began = time.monotonic()
    assert at_once(Service(*[Reply(wait=2.0)] * 6), timeout=0.4, retry=0) == ["no time"] * 6
    assert time.monotonic() - began < 1.8, "they waited one after the other"


@BOTH
def test_the_time_of_a_call_has_its_exchange(call: Any) -> None:
    with (
        served(choose=(service := Service(Reply(wait=2.0)))) as server,
        pytest.raises(APITimeoutError, match=r"0\.4 s"),
    ):
        call(server.url, calls=1, timeout=0.4)
    assert service.bodies == []


@BOTH
def test_an_exchange_is_not_redirected(call: Any) -> None:
    with served() as foreign:
        moved = Reply(status=307, headers={"location": f"{foreign.url}/token"})
        with served(choose=Service(moved)) as server, pytest.raises(AuthenticationError, match="not followed"):
            call(server.url, calls=1)
    assert foreign.got == []


@BOTH
def test_a_token_that_ends_soon_is_replaced(call: Any) -> None:
    with served(choose=(service := Service(seconds=20))) as server:
        call(server.url, calls=1)
        call(server.url, calls=3)
    assert service.tokens == 4


@BOTH
def test_a_token_that_was_revoked_is_replaced_once(call: Any) -> None:
    service = Service()
    service.revoked = {"t1"}
    with served(choose=service) as server:
        call(server.url, calls=1, retry=0)
        assert service.tokens == 2
        service.revoked = {f"t{number}" for number in range(20)}
        with pytest.raises(AuthenticationError):
            call(server.url, calls=1, retry=0)
    assert service.tokens == 4


@BOTH
def test_an_exchange_that_failed_for_a_while_is_tried_again(call: Any) -> None:
    with served(choose=(service := Service(Reply(status=503), Reply(cut=True)))) as server:
        call(server.url, calls=1)
        assert (service.tokens, len(service.bodies)) == (1, 1)
        service.refusals = [Reply(status=500)]
        with pytest.raises(ServerError, match="could not be exchanged"):
            call(server.url, calls=1, retry=0)
    assert len(service.bodies) == 1, "nothing was sent without a token"


@BOTH
def test_a_refused_key_is_said_without_it(call: Any) -> None:
    refusal = Reply(status=400, body=(json.dumps({"errorMessage": f"Provided API key {KEY} not found"}).encode(),))
    with served(choose=Service(refusal)) as server, pytest.raises(AuthenticationError, match="not found") as caught:
        call(server.url, calls=1)
    assert KEY not in f"{caught.value} {caught.value!r} {caught.value.body!r}"


@BOTH
def test_an_answer_without_a_token_is_no_secret_in_an_error(call: Any) -> None:
    odd = Reply(body=(b'{"token": "super-secret-token"}',))
    with served(choose=Service(odd)) as server, pytest.raises(AuthenticationError, match="KeyError") as caught:
        call(server.url, calls=1)
    assert "super-secret" not in f"{caught.value!r} {caught.value.body!r} {caught.value.__cause__!r}"


@BOTH
def test_values_of_the_connection_are_in_the_body(call: Any) -> None:
    with served(choose=(service := Service())) as server:
        call(server.url, calls=1, environ={"FAKE_PROJECT": "p-7"})
        call(server.url, calls=1, environ={"FAKE_PROJECT": "p-7"}, settings={"fake": {"options": {"project": "p-8"}}})
    assert [body["project"] for body in service.bodies] == ["p-7", "p-8"]


@BOTH
def test_secrets_among_the_options_are_not(call: Any) -> None:
    options = {
        "project": "p",
        "access_token": "s1",
        "client_secret": "s2",
        "api_key": "s3",
        "key": "s4",
        "region": "eu",
    }
    with served(choose=(service := Service())) as server:
        call(server.url, calls=1, settings={"fake": {"options": options}})
    assert {name: service.bodies[0].get(name) for name in options} == dict.fromkeys(options) | {
        "project": "p",
        "region": "eu",
    }


@pytest.mark.parametrize("name", ["project", "token"])
def test_a_plugin_cannot_pass_a_secret_on(name: str) -> None:
    class Leaking(Exchanging):
        @hookimpl
        def connection(self, settings: ConnectionSettings) -> Connection:
            value = settings.environ["FAKE_KEY"] if name == "project" else "other"
            return attrs.evolve(super().connection(settings), options={name: value})

    client = il.Client("fake:known", registry=registry(Leaking()), environ={"FAKE_KEY": KEY})
    with client, pytest.raises(PluginError, match=r"a secret in Connection\.options"):
        client.send("x")
