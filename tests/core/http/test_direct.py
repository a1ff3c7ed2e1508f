"""Our own requests go to httpx's transports directly: what still holds of httpx's clients, and what does not.

Expected headers are HTTP's own (RFC 9110, RFC 7617), not this code's.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

import interlingua as il
from interlingua._http.httpx_transport import HttpxTransport
from interlingua.transport import HttpRequest, TimeLimits
from tests.support.fake_provider import Got, Reply, Server, registry, served

Ask = Callable[..., None]


def ask(server: Server, url: str = "", **options: Any) -> None:
    with il.Client("fake:known", api_key="k", base_url=url or server.url, registry=registry()) as client:
        for headers in options.pop("each", ({},)):
            client.send("hi", headers=headers, **options)


def ask_async(server: Server, url: str = "", **options: Any) -> None:
    async def run() -> None:
        async with il.AsyncClient("fake:known", api_key="k", base_url=url or server.url, registry=registry()) as client:
            for headers in options.pop("each", ({},)):
                await client.send("hi", headers=headers, **options)

    asyncio.run(run())


@pytest.fixture(params=[ask, ask_async])
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Ask:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    ask: Ask = request.param
    return ask


def test_headers_of_one_request_are_not_the_next_ones(either: Ask) -> None:
    with served() as server:
        either(server, each=({"x-turn": "1"}, {"x-turn": "2", "x-more": "yes"}, {}, {}))
    assert [(got.headers.get("x-turn"), got.headers.get("x-more")) for got in server.got] == [
        ("1", None),
        ("2", "yes"),
        (None, None),
        (None, None),
    ]
    lengths = {int(got.headers["content-length"]) == len(got.body) for got in server.got}
    assert lengths == {True}
    assert all("gzip" in got.headers["accept-encoding"] for got in server.got)


def test_a_name_and_password_in_the_address_are_sent(either: Ask) -> None:
    with served() as server:
        either(server, server.url.replace("http://", "http://me:pass@"))
    wanted = "Basic " + base64.b64encode(b"me:pass").decode()
    assert [got.headers.get("authorization") for got in server.got] == [wanted]


def test_a_proxy_of_the_environment_is_used(either: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    with served() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        either(proxy, "http://service.invalid")
    assert [got.headers["host"] for got in proxy.got] == ["service.invalid"]


def test_cookies_are_not_kept(either: Ask) -> None:
    with served(Reply(headers={"set-cookie": "seen=1"})) as server:
        either(server, each=({}, {}))
    assert [got.headers.get("cookie") for got in server.got] == [None, None]


def test_who_watches_httpx_at_its_transports_sees_the_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """As recorders, mocks and tracers do; they see the request that was sent."""
    seen: list[tuple[str, bytes]] = []
    sent = httpx.HTTPTransport.handle_request

    def watched(self: httpx.HTTPTransport, request: httpx.Request) -> httpx.Response:
        seen.append((request.method, request.read()))
        return sent(self, request)

    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", watched)
    with served() as server:
        ask(server)
        (got,) = server.got
    assert isinstance(got, Got)
    assert seen == [("POST", got.body)]


@pytest.mark.parametrize("content", [b"", b"{}", b"x" * 5000])
@pytest.mark.parametrize("url", ["http://h.test/a?b=%20c", "https://h.test:8443/", "http://[::1]:1/x"])
def test_requests_are_those_of_httpx(url: str, content: bytes) -> None:
    ours = HttpxTransport()
    with httpx.Client() as client:
        for headers in ({"x-a": "1", "content-type": "text/plain"}, {"x-a": "2"}, {"x-a": "2"}):
            request = HttpRequest("POST", url, headers, content, datetime.now(UTC))
            made = ours._build(request, TimeLimits(None))
            wanted = client.build_request("POST", url, content=content or None, headers=headers)
            assert (made.method, made.url, made.content) == (wanted.method, wanted.url, wanted.content)
            assert dict(made.headers) == dict(wanted.headers)
            assert made.headers["host"] == wanted.headers["host"]
    ours.close()
