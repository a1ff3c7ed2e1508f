"""Credentials and signatures over a real connection: a server here checks the signature of every attempt.

The scheme is a small one of these tests, shaped as AWS's (docs.aws.amazon.com, Signature Version 4): a digest over
method, URL, all headers, body and the time, with a session token that runs out.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import pytest

import interlingua as il
from interlingua.plugins import Connection, HttpRequest, WireRequest
from tests.support.fake_provider import STREAM, WHOLE, Fake, Got, Reply, registry, served
from tests.support.retry_waits import without_waiting

ANSWER = json.dumps({"models": ["one"], "count_tokens": 12}).encode()
EXPIRED = Reply(status=401, body=(b"the token has expired",))
FORGED = Reply(status=403, body=(b"the signature does not match",))


@attrs.frozen
class Secret:
    """A key with a session token, as a metadata endpoint gives it."""

    key: bytes
    token: str
    expires_at: datetime | None = None


def digest(key: bytes, method: str, url: str, headers: Mapping[str, str], body: bytes) -> str:
    text = "\n".join([method, url, *(f"{name}:{headers[name]}" for name in sorted(headers))])
    return hmac.new(key, text.encode() + b"\n" + body, hashlib.sha256).hexdigest()


def sign(outgoing: HttpRequest, secret: Secret) -> Mapping[str, str]:
    added = {"x-token": secret.token, "x-date": outgoing.time.isoformat()}
    signed = digest(secret.key, outgoing.method, outgoing.url, outgoing.headers | added, outgoing.body)
    names = ";".join(sorted(outgoing.headers | added))
    return added | {"Authorization": f"TEST {names} {signed}"}


class Service:
    """Checks signatures; `good` are the session tokens that are accepted."""

    def __init__(self, *good: str, key: bytes = b"k1", then: Callable[[Got], Reply] | None = None) -> None:
        self.good, self.key, self.then, self.url = set(good), key, then, ""
        self.signatures: list[str] = []

    def __call__(self, got: Got) -> Reply:
        _, names, signed = got.headers["authorization"].split(" ")
        headers = {name: got.headers[name] for name in names.split(";")}
        method = "POST" if got.body else "GET"
        assert {"content-type", "x-token", "x-date"} <= headers.keys()
        assert {name for name in got.headers if name.startswith("x-")} <= headers.keys(), "a header was not signed"
        if signed != digest(self.key, method, self.url + got.path, headers, got.body):
            return FORGED
        self.signatures.append(signed)
        if got.headers["x-token"] not in self.good:
            return EXPIRED
        if self.then is not None:
            return self.then(got)
        if got.path in ("/models", "/count"):
            return Reply(body=(ANSWER,))
        return Reply(body=STREAM if json.loads(got.body)["texts"] == ["stream"] else (WHOLE,))


Call = Callable[[str, Any, Fake], list[str]]


def blocking(url: str, more: Any, fake: Fake) -> list[str]:
    with il.Client("fake:known", api_key="-", base_url=url, registry=registry(fake), **more) as client:
        without_waiting(client)
        said = [client.send("whole", headers={"X-Extra": "mine"}).text]
        with client.stream("stream") as stream:
            said.append(stream.message.text)
        return [*said, *client.list_models(), str(client.count_tokens("x"))]


def asynchronous(url: str, more: Any, fake: Fake) -> list[str]:
    async def run() -> list[str]:
        async with il.AsyncClient("fake:known", api_key="-", base_url=url, registry=registry(fake), **more) as client:
            said = [(await client.send("whole", headers={"X-Extra": "mine"})).text]
            async with client.stream("stream") as stream:
                said.append((await stream.message).text)
            return [*said, *await client.list_models(), str(await client.count_tokens("x"))]

    return asyncio.run(run())


BOTH = pytest.mark.parametrize("call", [blocking, asynchronous])
SAID = ["hello", "hello", "one", "12"]


class Source:
    """Gives secrets in order; remembers what it was asked with."""

    def __init__(self, *secrets: Any) -> None:
        self.secrets = list(secrets)
        self.asked: list[Any] = []

    def __call__(self, error: Any) -> Any:
        self.asked.append(error)
        found = self.secrets.pop(0) if len(self.secrets) > 1 else self.secrets[0]
        if isinstance(found, Exception):
            raise found
        return found


class AsyncSource(Source):
    async def __call__(self, error: Any) -> Any:
        await asyncio.sleep(0.001)
        return super().__call__(error)


@BOTH
@pytest.mark.parametrize("kind", [Source, AsyncSource])
def test_the_secret_is_asked_for_once_and_every_request_is_signed(call: Call, kind: type[Source]) -> None:
    source, service = kind(Secret(b"k1", "t1")), Service("t1")
    with served(choose=service) as server:
        service.url = server.url
        assert call(server.url, {}, Fake(credentials=source, sign=sign)) == SAID

    assert (source.asked, len(service.signatures), server.got[0].headers["x-extra"]) == ([None], 4, "mine")


@BOTH
@pytest.mark.parametrize("kind", [Source, AsyncSource])
def test_a_token_that_expired_is_replaced_once(call: Call, kind: type[Source]) -> None:
    source, service = kind(Secret(b"k1", "old"), Secret(b"k1", "new")), Service("new")
    with served(choose=service) as server:
        service.url = server.url
        assert call(server.url, {"retry": 0}, Fake(credentials=source, sign=sign)) == SAID

    assert [type(error) for error in source.asked] == [type(None), il.errors.AuthenticationError]
    assert source.asked[1].status == 401
    assert [got.headers["x-token"] for got in server.got] == ["old", "new", "new", "new", "new"]


@BOTH
def test_a_secret_refused_twice_raises(call: Call) -> None:
    source, service = Source(Secret(b"k1", "old"), Secret(b"k1", "older")), Service()
    with served(choose=service) as server:
        service.url = server.url
        with pytest.raises(il.errors.AuthenticationError, match="expired") as caught:
            call(server.url, {}, Fake(credentials=source, sign=sign))

    assert (len(server.got), len(source.asked), caught.value.provider) == (2, 2, "fake")


@BOTH
def test_a_secret_that_runs_out_soon_is_replaced_before_it_is_refused(call: Call) -> None:
    now = datetime.now(UTC)
    soon, later = (Secret(b"k1", name, now + timedelta(seconds=left)) for name, left in (("a", 20), ("b", 900)))
    source, service = Source(soon, later), Service("a", "b")
    with served(choose=service) as server:
        service.url = server.url
        assert call(server.url, {}, Fake(credentials=source, sign=sign)) == SAID

    assert [got.headers["x-token"] for got in server.got] == ["a", "b", "b", "b"]
    assert source.asked == [None, None]


@BOTH
def test_retries_are_signed_anew(call: Call) -> None:
    busy = iter([Reply(status=503, body=(b"busy",)), Reply(status=503, body=(b"busy",))])
    quick = il.Retry(initial_delay=0.001)

    def then(got: Got) -> Reply:
        if got.path in ("/models", "/count"):
            return Reply(body=(ANSWER,))
        return next(busy, Reply(body=STREAM if json.loads(got.body)["texts"] == ["stream"] else (WHOLE,)))

    service = Service("t1", then=then)
    with served(choose=service) as server:
        service.url = server.url
        assert call(server.url, {"retry": quick}, Fake(credentials=Source(Secret(b"k1", "t1")), sign=sign)) == SAID

    assert len(service.signatures) == len(set(service.signatures)) == 6
    dates = [got.headers["x-date"] for got in server.got]
    assert dates == sorted(dates)
    assert len(set(dates)) == 6


def test_a_replaced_secret_takes_no_attempt_from_the_retries() -> None:
    source = Source(Secret(b"k1", "old"), Secret(b"k1", "new"))
    busy = iter([Reply(status=503, body=(b"busy",)), Reply(body=(WHOLE,))])
    service = Service("new", then=lambda _got: next(busy))
    with served(choose=service) as server:
        service.url = server.url
        fake = Fake(credentials=source, sign=sign)
        with il.Client("fake:known", api_key="-", base_url=server.url, registry=registry(fake), retry=1) as client:
            without_waiting(client)
            assert client.send("whole").text == "hello"

    assert [got.headers["x-token"] for got in server.got] == ["old", "new", "new"]
    assert len(source.asked) == 2


@pytest.mark.parametrize("asking", [Source, AsyncSource])
def test_a_slow_source_never_blocks_the_loop_and_is_asked_once_by_many_tasks(asking: type[Source]) -> None:
    class Slow(asking):  # type: ignore[misc,valid-type]
        def __call__(self, error: Any) -> Any:
            if asking is Source:
                time.sleep(0.4)
            return super().__call__(error)

    async def longest_block(source: Source) -> tuple[float, list[str]]:
        longest, stop = 0.0, False

        async def beat() -> None:
            nonlocal longest
            last = time.perf_counter()
            while not stop:
                await asyncio.sleep(0.005)
                now = time.perf_counter()
                longest, last = max(longest, now - last - 0.005), now

        fake = registry(Fake(credentials=source, sign=sign))
        async with il.AsyncClient("fake:known", api_key="-", base_url=server.url, registry=fake) as client:
            await client.list_models()  # making the first connection takes its time
            service.good = {"new"}
            beating = asyncio.create_task(beat())
            said = await asyncio.gather(*(client.send("whole") for _ in range(5)))
            stop = True
            await beating
        return longest, [message.text for message in said]

    times = []
    for _ in range(5):  # what else runs on this machine holds the loop up too
        source, service = Slow(Secret(b"k1", "old"), Secret(b"k1", "new")), Service("old")
        with served(choose=service) as server:
            service.url = server.url
            longest, said = asyncio.run(longest_block(source))
        assert (said, len(source.asked)) == (["hello"] * 5, 2)
        times.append(longest)
        if longest < 0.05:
            break

    assert min(times) < 0.05


@BOTH
@pytest.mark.parametrize("kind", [Source, AsyncSource])
def test_what_a_source_raises_is_typed_and_keeps_the_secret(call: Call, kind: type[Source]) -> None:
    with served() as server:
        with pytest.raises(
            il.errors.AuthenticationError, match="obtaining the credentials failed with ValueError"
        ) as c:
            call(server.url, {}, Fake(credentials=kind(ValueError("bad key hunter2")), sign=sign))
        assert "hunter2" not in str(c.value)
        assert (c.value.__cause__, c.value.__suppress_context__) == (None, True)
        own = il.errors.AuthenticationError("no profile of that name")
        with pytest.raises(il.errors.AuthenticationError, match="no profile of that name"):
            call(server.url, {}, Fake(credentials=kind(own), sign=sign))
        with pytest.raises(il.errors.AuthenticationError, match="returned no secret"):
            call(server.url, {}, Fake(credentials=kind(None), sign=sign))

    assert server.got == []


@BOTH
def test_what_a_signer_raises_is_typed_and_keeps_the_secret(call: Call) -> None:
    def broken(_outgoing: HttpRequest, secret: Secret) -> Mapping[str, str]:
        raise KeyError(secret.token)

    failure = pytest.raises(il.errors.AuthenticationError, match="signing the request failed with KeyError")
    with served() as server, failure as caught:
        call(server.url, {}, Fake(credentials=Source(Secret(b"k1", "hunter2")), sign=broken))

    assert "hunter2" not in str(caught.value)


@BOTH
def test_a_source_that_cannot_be_reached_is_tried_again(call: Call) -> None:
    source = Source(il.errors.APIConnectionError("no metadata service"), Secret(b"k1", "t1"))
    service = Service("t1")
    with served(choose=service) as server:
        service.url = server.url
        assert call(server.url, {"retry": il.Retry(initial_delay=0.001)}, Fake(credentials=source, sign=sign)) == SAID


@BOTH
def test_the_signature_covers_the_url_that_is_sent(call: Call) -> None:
    """The HTTP library encodes what a plugin did not: the signer sees the result."""

    def url(request: WireRequest) -> str:
        return f"{service.url}{request.path}?q=a b&arn=arn:aws:x/ü"

    service = Service("t1", then=lambda got: Reply(body=(ANSWER,)) if got.path[1] in "mc" else answer(got))

    def answer(got: Got) -> Reply:
        return Reply(body=STREAM if json.loads(got.body)["texts"] == ["stream"] else (WHOLE,))

    with served(choose=service) as server:
        service.url = server.url
        fake = Fake(credentials=Source(Secret(b"k1", "t1")), sign=sign, url=url)
        assert call("http://127.0.0.1:9", {}, fake) == SAID

    assert {got.path.partition("?")[2] for got in server.got} == {"q=a%20b&arn=arn:aws:x/%C3%BC"}


def test_a_source_is_asked_again_after_another_client_was_made() -> None:
    source, service = Source(Secret(b"k1", "t1")), Service("t1")
    with served(choose=service) as server:
        service.url = server.url
        for _ in range(2):
            fake = Fake(credentials=source, sign=sign)
            with il.Client("fake:known", api_key="-", base_url=server.url, registry=registry(fake)) as client:
                client.send("whole")

    assert source.asked == [None, None]


def test_a_signer_needs_no_credentials() -> None:
    def fixed(outgoing: HttpRequest, secret: object) -> Mapping[str, str]:
        return sign(outgoing, Secret(b"k1", "t1")) if secret is None else {}

    service = Service("t1")
    with served(choose=service) as server:
        service.url = server.url
        assert blocking(server.url, {}, Fake(sign=fixed)) == SAID


def test_an_outgoing_request_does_not_show_its_headers() -> None:
    made = HttpRequest("POST", "https://a.test/x", {"authorization": "hunter2"}, b"{}", datetime.now(UTC))
    assert repr(made) == "<HttpRequest POST https://a.test/x, 2 bytes>"
    assert Connection(base_url="https://a.test").sign is None
