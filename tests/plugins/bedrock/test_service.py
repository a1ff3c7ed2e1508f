"""The whole way to a server on this machine that checks every signature with botocore; and where keys come from."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

import interlingua as il
from interlingua.errors import AuthenticationError, ProviderError
from interlingua.plugins import ConnectionSettings, WireRequest
from interlingua_bedrock.credentials import find_credentials, read_profile
from interlingua_bedrock.plugin import connection
from interlingua_bedrock.request import model_path
from interlingua_bedrock.signature import AwsKey
from tests.plugins.bedrock.wire import frame
from tests.support.fake_provider import Got, Reply, served
from tests.support.retry_waits import without_waiting

MODEL = "bedrock:us.amazon.nova-pro-v1:0"
ARN = "arn:aws:bedrock:eu-west-3:123456789012:application-inference-profile/1arbu5hu2sjr"
WHOLE = json.dumps(
    {
        "output": {"message": {"role": "assistant", "content": [{"text": "hello"}]}},
        "stopReason": "end_turn",
        "usage": {"inputTokens": 3, "outputTokens": 1, "totalTokens": 4},
        "metrics": {"latencyMs": 1},
    }
).encode()
STREAM = (
    frame("messageStart", {"role": "assistant"}),
    frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "hello"}}),
    frame("contentBlockStop", {"contentBlockIndex": 0}),
    frame("messageStop", {"stopReason": "end_turn"}),
    frame("metadata", {"usage": {"inputTokens": 3, "outputTokens": 1, "totalTokens": 4}, "metrics": {"latencyMs": 1}}),
)
EXPIRED = Reply(
    status=403,
    headers={"x-amzn-errortype": "ExpiredTokenException", "x-amzn-requestid": "r-1"},
    body=(b'{"message":"The security token included in the request is expired"}',),
)
THROTTLED = Reply(
    status=429, headers={"x-amzn-errortype": "ThrottlingException"}, body=(b'{"message":"Too many requests"}',)
)


class Service:
    """Signs each request again with botocore and compares; `good` are the session tokens that are accepted."""

    def __init__(self, *good: str | None, first: tuple[Reply, ...] = (), region: str = "us-east-1") -> None:
        self.good, self.first, self.region, self.url = set(good), list(first), region, ""
        self.dates: list[str] = []

    def __call__(self, got: Got) -> Reply:
        given = got.headers["authorization"]
        names = given.partition("SignedHeaders=")[2].partition(",")[0].split(";")
        token = got.headers.get("x-amz-security-token")
        assert {"host", "x-amz-date", "content-type", *(["x-amz-security-token"] if token else [])} <= set(names)
        assert {name for name in got.headers if name.startswith("x-")} <= set(names), "a header was not signed"
        headers = {name: got.headers[name] for name in names}
        request = AWSRequest(
            method="POST" if got.body else "GET", url=self.url + got.path, headers=headers, data=got.body
        )
        request.context["timestamp"] = got.headers["x-amz-date"]
        signer = SigV4Auth(Credentials("AKID", "secret", token), "bedrock", self.region)
        text = signer.string_to_sign(request, signer.canonical_request(request))
        assert given.endswith(f"Signature={signer.signature(text, request)}"), "the signature is wrong"
        self.dates.append(got.headers["x-amz-date"])
        if token not in self.good:
            return EXPIRED
        if self.first:
            return self.first.pop(0)
        if got.path.startswith("/foundation-models"):
            return Reply(body=(b'{"modelSummaries":[{"modelId":"amazon.nova-pro-v1:0"}]}',))
        if got.path.endswith("/count-tokens"):
            assert json.loads(got.body)["input"]["converse"]["messages"]
            return Reply(body=(b'{"inputTokens":12}',))
        if got.path.endswith("/converse-stream"):
            return Reply(body=STREAM, headers={"content-type": "application/vnd.amazon.eventstream"})
        return Reply(body=(WHOLE,))


Call = Callable[..., list[str]]


def blocking(url: str, *, model: str = MODEL, settings: Any = None, **more: Any) -> list[str]:
    with il.Client(model, base_url=url, settings={"bedrock": {"options": settings}}, **more) as client:
        without_waiting(client)
        said = [client.send("hi", headers={"X-Extra": "mine,  too"}).text]
        with client.stream("hi") as stream:
            said.append(stream.message.text)
        return [*said, *client.list_models(), str(client.count_tokens("x"))]


def asynchronous(url: str, *, model: str = MODEL, settings: Any = None, **more: Any) -> list[str]:
    async def run() -> list[str]:
        async with il.AsyncClient(model, base_url=url, settings={"bedrock": {"options": settings}}, **more) as client:
            said = [(await client.send("hi", headers={"X-Extra": "mine,  too"})).text]
            async with client.stream("hi") as stream:
                said.append((await stream.message).text)
            return [*said, *await client.list_models(), str(await client.count_tokens("x"))]

    return asyncio.run(run())


BOTH = pytest.mark.parametrize("call", [blocking, asynchronous])
SAID = ["hello", "hello", "amazon.nova-pro-v1:0", "12"]
KEY = {"access_key_id": "AKID", "secret_access_key": "secret"}


class Source:
    """Gives keys in order; remembers what it was asked with."""

    def __init__(self, *tokens: str, wait: float = 0.0) -> None:
        self.tokens, self.wait = list(tokens), wait
        self.asked: list[ProviderError | None] = []
        self.from_to = (0.0, 0.0)

    def __call__(self, refused: ProviderError | None) -> AwsKey:
        self.asked.append(refused)
        began = time.perf_counter()
        time.sleep(self.wait)
        self.from_to = (began, time.perf_counter())
        token = self.tokens.pop(0) if len(self.tokens) > 1 else self.tokens[0]
        return AwsKey(**KEY, session_token=token)


@BOTH
def test_every_request_is_signed(call: Call) -> None:
    service = Service("t1", None)
    with served(choose=service) as server:
        service.url = server.url
        assert call(server.url, settings=KEY) == SAID
        assert call(server.url, settings={**KEY, "session_token": "t1"}) == SAID
    assert len(service.dates) == 8


@BOTH
def test_an_arns_region_is_signed_for(call: Call) -> None:
    service = Service(None, region="eu-west-3")
    with served(choose=service) as server:
        service.url = server.url
        with il.Client(f"bedrock:{ARN}", base_url=server.url, settings={"bedrock": {"options": KEY}}) as client:
            assert client.send("hi").text == "hello"
    assert server.got[0].path == f"/model/{ARN.replace(':', '%3A').replace('/', '%2F')}/converse"


@BOTH
def test_a_key_that_ran_out_is_replaced_once(call: Call) -> None:
    source, service = Source("old", "new"), Service("new")
    with served(choose=service) as server:
        service.url = server.url
        assert call(server.url, settings={"credentials": source}, retry=0) == SAID

    assert [type(error) for error in source.asked] == [type(None), AuthenticationError]
    assert [got.headers["x-amz-security-token"] for got in server.got] == ["old", "new", "new", "new", "new"]


@BOTH
def test_a_key_refused_twice_raises_the_services_words(call: Call) -> None:
    service = Service()
    with served(choose=service) as server:
        service.url = server.url
        with pytest.raises(AuthenticationError, match="expired") as caught:
            call(server.url, settings={"credentials": Source("old", "older")})
    assert (len(server.got), caught.value.code, caught.value.request_id) == (2, "ExpiredTokenException", "r-1")


@BOTH
def test_a_retry_is_signed_anew(call: Call) -> None:
    service = Service("t", first=(THROTTLED,))
    with served(choose=service) as server:
        service.url = server.url
        quick = il.Retry(initial_delay=0.001)
        assert call(server.url, settings={"credentials": Source("t")}, retry=quick) == SAID
    assert len(service.dates) == 5


def test_a_slow_source_of_keys_leaves_the_loop_free() -> None:
    service, source = Service("t"), Source("t", wait=0.5)
    ticks: list[float] = []

    async def run(url: str) -> str:
        async def watch() -> None:
            while True:
                await asyncio.sleep(0.005)
                ticks.append(time.perf_counter())

        watching = asyncio.create_task(watch())
        settings = {"credentials": source}
        async with il.AsyncClient(MODEL, base_url=url, settings={"bedrock": {"options": settings}}) as client:
            text = (await client.send("hi")).text
        watching.cancel()
        return text

    with served(choose=service) as server:
        service.url = server.url
        assert asyncio.run(run(server.url)) == "hello"
    began, ended = source.from_to
    during = [began, *(tick for tick in ticks if began < tick < ended), ended]
    longest = max(after - before for before, after in pairwise(during))
    assert longest < 0.25, f"the loop stood still for {longest:.3f} s"  # usually 0.01; a blocking call is 0.5


# ---- keys


def _settings(**more: Any) -> ConnectionSettings:
    return ConnectionSettings(**more)


def test_a_bearer_key_wins_and_signs_nothing() -> None:
    environ = {"AWS_BEARER_TOKEN_BEDROCK": "b-1", "AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "s"}
    request = WireRequest(path="/model/m/converse", body=b"", api="converse")
    for made in (connection(_settings(environ=environ)), connection(_settings(api_key="b-1"))):
        assert made.auth(request) == {"authorization": "Bearer b-1"}
        assert (made.sign, made.credentials, made.has_key) == (None, None, True)


def test_keys_of_the_environment() -> None:
    environ = {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "t"}
    made = find_credentials(_settings(environ=environ))(None)
    assert made == AwsKey(access_key_id="AKID", secret_access_key="s", session_token="t")
    assert connection(_settings(environ=environ)).has_key
    assert connection(_settings(environ={"AWS_PROFILE": "work"})).has_key
    assert connection(_settings(options={"credentials": "botocore"})).has_key
    assert not connection(_settings(environ={"HOME": "/nowhere"})).has_key


def test_keys_of_a_profile(tmp_path: Path) -> None:
    folder = tmp_path / ".aws"
    folder.mkdir()
    (folder / "credentials").write_text(
        "[default]\naws_access_key_id = A\naws_secret_access_key = S%1\n[work]\naws_access_key_id=B\n"
        "aws_secret_access_key=T\naws_session_token=U\n"
    )
    (folder / "config").write_text("[profile other]\naws_access_key_id = C\naws_secret_access_key = V\n")
    home = {"HOME": str(tmp_path)}
    assert find_credentials(_settings(environ=home))(None) == AwsKey(access_key_id="A", secret_access_key="S%1")
    work = AwsKey(access_key_id="B", secret_access_key="T", session_token="U")
    assert find_credentials(_settings(environ={**home, "AWS_PROFILE": "work"}))(None) == work
    keys = {"AWS_ACCESS_KEY_ID": "X", "AWS_SECRET_ACCESS_KEY": "Y"}
    assert find_credentials(_settings(environ={**home, **keys}, options={"profile": "work"}))(None) == work
    assert read_profile("other", home) == AwsKey(access_key_id="C", secret_access_key="V")
    elsewhere = {"AWS_SHARED_CREDENTIALS_FILE": str(folder / "credentials")}
    assert read_profile("work", elsewhere) == work
    assert read_profile("nobody", home) is None


def test_a_profile_file_that_cannot_be_read_shows_nothing_of_it(tmp_path: Path) -> None:
    (tmp_path / "c").write_text("aws_secret_access_key = hunter2\n")
    with pytest.raises(AuthenticationError) as caught:
        read_profile("default", {"AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "c")})
    assert "hunter2" not in str(caught.value)


def test_without_a_key_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "botocore.session", None)
    with pytest.raises(AuthenticationError, match=r"AWS_ACCESS_KEY_ID.*install interlingua-bedrock\[aws\]") as caught:
        find_credentials(_settings(environ={"HOME": str(tmp_path)}))(None)
    assert not caught.value.retryable


def test_botocore_is_asked_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that prints a key is one of the sources that botocore alone knows."""
    printed, process = tmp_path / "key.py", tmp_path / "config"
    printed.write_text('print(\'{"Version": 1, "AccessKeyId": "P", "SecretAccessKey": "Q", "SessionToken": "R"}\')\n')
    process.write_text(f"[profile p]\ncredential_process = {sys.executable} {printed}\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(process))
    monkeypatch.setenv("AWS_PROFILE", "p")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    environ = {"AWS_CONFIG_FILE": str(process), "AWS_PROFILE": "p", "HOME": str(tmp_path)}
    for settings in (_settings(environ=environ), _settings(environ=environ, options={"credentials": "botocore"})):
        made = find_credentials(settings)(None)
        assert made == AwsKey(access_key_id="P", secret_access_key="Q", session_token="R")


# ---- addresses


@pytest.mark.parametrize(
    ("model", "settings", "host"),
    [
        ("amazon.nova-pro-v1:0", {}, "bedrock-runtime.us-east-1.amazonaws.com"),
        ("amazon.nova-pro-v1:0", {"environ": {"AWS_REGION": "eu-west-1"}}, "bedrock-runtime.eu-west-1.amazonaws.com"),
        (
            "amazon.nova-pro-v1:0",
            {"environ": {"AWS_DEFAULT_REGION": "eu-west-1"}, "options": {"region": "eu-west-2"}},
            "bedrock-runtime.eu-west-2.amazonaws.com",
        ),
        (ARN, {"options": {"region": "us-west-2"}}, "bedrock-runtime.eu-west-3.amazonaws.com"),
        (ARN, {"base_url": "https://vpce.example/"}, "vpce.example"),
        ("m", {"environ": {"AWS_ENDPOINT_URL_BEDROCK_RUNTIME": "https://own.example"}}, "own.example"),
        ("m", {"options": {"region": "cn-north-1"}}, "bedrock-runtime.cn-north-1.amazonaws.com.cn"),
    ],
)
def test_the_address_follows_region_and_arn(model: str, settings: dict[str, Any], host: str) -> None:
    made = connection(_settings(**settings))
    assert made.url is not None
    path = model_path(model, "converse")
    assert made.url(WireRequest(path=path, body=b"{}", api="converse")) == f"https://{host}{path}"


def test_the_list_of_models_is_asked_of_the_control_plane() -> None:
    made = connection(_settings(options={"region": "eu-west-1"}))
    assert made.url is not None
    url = made.url(WireRequest(method="GET", path="/foundation-models", body=b"", api="converse"))
    assert url == "https://bedrock.eu-west-1.amazonaws.com/foundation-models"
