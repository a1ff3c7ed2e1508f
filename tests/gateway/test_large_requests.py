"""A large request does not hold up others; requests above a limit are refused in the caller's own form."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import attrs
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.types import TextBlock
from interlingua_gateway import config_of, create_app
from interlingua_gateway.body import BodyTooLargeError, check_values
from interlingua_gateway.server import _OneWrite, open_listener
from interlingua_gateway.services import NO_FULL_COLLECTION
from tests.core.codec.values import json_values
from tests.gateway.apis import APIS, Api, error_message
from tests.gateway.conftest import Upstream, gateway, say, serving
from tests.support.counts import SKIP_REASON, chosen
from tests.support.waiting import until


def _conversation(count: int, size: int) -> dict[str, Any]:
    text = "word " * (size // 5)
    roles = ("user", "assistant")
    return {
        "model": "m",
        "max_tokens": 5,
        "messages": [{"role": roles[at % 2], "content": text} for at in range(count)],
    }


def test_health_answers_while_large_bodies_are_read(upstream: Upstream) -> None:
    body = json.dumps(_conversation(9_001, 3_300)).encode()  # 30 MB
    waits: list[float] = []
    statuses: list[int] = []
    with gateway(upstream, environ={}) as url, httpx.Client() as health:

        def post() -> None:
            headers = {"content-type": "application/json"}
            statuses.append(httpx.post(f"{url}/v1/messages", content=body, headers=headers, timeout=300).status_code)

        senders = [threading.Thread(target=post) for _ in range(2)]
        for sender in senders:
            sender.start()
        while any(sender.is_alive() for sender in senders):
            begin = time.perf_counter()
            assert health.get(f"{url}/health", timeout=60).status_code == 200
            waits.append(time.perf_counter() - begin)
            time.sleep(0.01)
    assert statuses == [200, 200]
    waits.sort()
    print(f"{len(waits)} requests: median {waits[len(waits) // 2]:.3f} s, p99 {waits[len(waits) * 99 // 100]:.3f} s")
    assert waits[len(waits) // 2] < 0.05  # on a machine that runs other tests; read on the event loop, it takes seconds


class _Watched:
    """An application whose event loop is watched.

    Attributes:
        longest: the most seconds of the processor that the loop's thread has used without turning to other requests.
    """

    def __init__(self, app: Any) -> None:
        self._app, self.longest = app, 0.0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        watching = asyncio.ensure_future(self._watch()) if scope["type"] == "lifespan" else None
        await self._app(scope, receive, send)
        if watching is not None:
            watching.cancel()

    async def _watch(self) -> None:
        while True:
            begin = time.thread_time()
            await asyncio.sleep(0.001)  # waiting takes no time of the processor
            self.longest = max(self.longest, time.thread_time() - begin)


def _large_body(api: Api, shape: str) -> bytes:
    """Return a body of 30 MB: many messages, or one with a long text."""
    count, text = (8_999, "word " * 660) if shape == "many" else (1, "word " * 6_000_000)
    answers = {"generate": "model", "interactions": "model"}.get(api.name, "assistant")
    roles = [("user", answers)[at % 2] for at in range(count)]
    if api.name == "generate":
        body: dict[str, Any] = {"contents": [{"role": role, "parts": [{"text": text}]} for role in roles]}
    else:
        messages = [{"role": role, "content": text} for role in roles]
        body = {**api.body, ("input" if "input" in api.body else "messages"): messages}
    return json.dumps({**body, **({"stream": False} if "stream" in api.body else {})}).encode()


def _post(url: str, api: Api, body: bytes, pause: float) -> int:
    def parts() -> Iterator[bytes]:
        for at in range(0, len(body), 1 << 18):
            yield body[at : at + (1 << 18)]
            time.sleep(pause)

    headers = {"content-type": "application/json", "content-length": str(len(body))}
    return httpx.post(url + api.path, content=parts(), headers=headers, timeout=300).status_code


def _longest_turn(upstream: Upstream, tmp_path: Path, api: Api, *bodies: tuple[bytes, float]) -> float:
    routes: Any = [{"match": "*", "to": ["llamacpp:up-1"], "retries": 0}]
    settings = {"llamacpp": {"base_url": f"{upstream.url}/v1"}}
    environ = {"XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}  # with a store, which finds states
    watched = _Watched(create_app(config_of({"routes": routes}), settings=settings, environ=environ))
    with serving(watched) as url:
        assert httpx.post(url + api.path, json=api.asking("Hi"), timeout=60).status_code == 200  # loads modules
        gc.collect()
        gc.freeze()  # as `serve` does
        usual = gc.get_threshold()
        # nor does the gateway make full collections: between requests they would search what the upstream has read
        gc.set_threshold(*usual[:2], NO_FULL_COLLECTION - 1)
        watched.longest = 0.0
        assert [_post(url, api, *body) for body in bodies] == [200] * len(bodies)
    gc.set_threshold(*usual)
    gc.unfreeze()
    return watched.longest


@pytest.mark.parametrize("api", APIS, ids=[api.name for api in APIS])
@pytest.mark.parametrize("shape", ["many", "one"])
def test_the_event_loop_turns_to_others_while_a_large_body_is_handled(
    upstream: Upstream, tmp_path: Path, api: Api, shape: str
) -> None:
    if not chosen(f"large {api.name} {shape}", 3):
        pytest.skip(SKIP_REASON)
    body = _large_body(api, shape)
    longest = _longest_turn(upstream, tmp_path, api, (body, 0.0), (body, 0.002))
    print(f"{api.name} {shape}: {longest * 1000:.0f} ms")
    assert longest < 0.1  # 0.06 s on a machine with other work; read on the loop, it is above the next test's bound


@pytest.mark.parametrize("api", APIS, ids=[api.name for api in APIS])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_the_event_loop_turns_to_others_while_a_large_answer_is_handled(
    upstream: Upstream, tmp_path: Path, api: Api, stream: bool
) -> None:
    if not chosen(f"large answer {api.name} {stream}", 3):
        pytest.skip(SKIP_REASON)
    upstream.answers = [say("Hello."), say('He said "no".\n' * 1_500_000)]  # 21 MB; in a stream, one event
    asked = api.asking("Hi")
    if not stream:
        api = attrs.evolve(api, path=api.path.replace("streamGenerateContent?alt=sse", "generateContent"))
        asked = {**asked, **({} if api.name == "generate" else {"stream": False})}
    body = json.dumps(asked).encode()
    longest = _longest_turn(upstream, tmp_path, api, (body, 0.0), (body, 0.0))
    print(f"{api.name} {stream}: {longest * 1000:.0f} ms")
    assert longest < 0.06  # 0.02 s; 0.1 to 0.3 if it is handled on the loop


def test_the_watch_sees_a_body_that_is_read_on_the_event_loop(
    upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interlingua_gateway.services._LARGE", 1 << 30)
    assert _longest_turn(upstream, tmp_path, APIS[0], (_large_body(APIS[0], "many"), 0.0)) > 0.15


@pytest.mark.parametrize("api", [api for api in APIS if "messages" in api.body], ids=lambda api: api.name)
def test_too_many_messages_are_refused(upstream: Upstream, api: Api) -> None:
    body = {**api.body, **_conversation(301, 5), "stream": False}
    tools = {
        **api.body,
        "tools": [
            {"name": f"t{at}", "input_schema": {"type": "object"}} if api.name == "messages"
            else {"type": "function", "function": {"name": f"t{at}", "parameters": {"type": "object"}}}
            for at in range(21)
        ],
    }  # fmt: skip
    with gateway(upstream, message_limit=300, tool_limit=20) as url:
        answers = [httpx.post(url + api.path, json=one) for one in (body, tools)]
    assert [answer.status_code for answer in answers] == [413, 413]
    assert "300 messages" in error_message(api, answers[0].json())
    assert "20 tools" in error_message(api, answers[1].json())
    assert upstream.requests == []


def _count(value: Any) -> int:
    items = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if items is None else max(len(items), 1) + sum(map(_count, items))


@given(json_values, st.integers(1, 40), st.booleans())
def test_values_are_counted_without_the_contents_of_strings(value: Any, piece: int, is_ascii: bool) -> None:
    body = json.dumps({"a": value, '\\",[': ['\\"', "[,{", "\\\\"]}, ensure_ascii=is_ascii).encode()
    count = _count(json.loads(body))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("interlingua_gateway.body._PIECE", piece)
        check_values(body, count)
        with pytest.raises(BodyTooLargeError, match=f"{count - 1} values"):
            check_values(body, count - 1)


@pytest.mark.parametrize("api", APIS, ids=[api.name for api in APIS])
def test_too_many_values_are_refused(upstream: Upstream, api: Api) -> None:
    for more in ([[]] * 200, [{"a": None}] * 100, dict.fromkeys(map(str, range(200)))):
        with gateway(upstream, value_limit=200) as url:
            answer = httpx.post(url + api.path, json={**api.body, "metadata": {"more": more}})
        assert answer.status_code == 413, answer.text
        assert "200 values" in error_message(api, answer.json())
    assert upstream.requests == []


def test_garbage_is_collected_while_no_large_request_is_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    collected: list[bool] = []
    monkeypatch.setattr(gc, "collect", lambda: collected.append(True))
    services = create_app(environ={}).state.services
    services._collect()
    assert not collected  # the collector does it by itself
    monkeypatch.setattr(gc, "get_threshold", lambda: (700, 10, NO_FULL_COLLECTION))
    services._collect()
    assert len(collected) == 1
    services.held = 30_000_000
    services._collect()
    assert len(collected) == 1
    services._collected -= 601
    services._collect()
    assert len(collected) == 2


@pytest.mark.parametrize("api", APIS, ids=[api.name for api in APIS])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_no_request_is_in_memory_after_its_answer(upstream: Upstream, tmp_path: Path, api: Api, stream: bool) -> None:
    """Full collections search all objects, and hold up all requests meanwhile."""

    def is_left(text: str) -> bool:
        return any(isinstance(each, TextBlock) and each.text == text for each in gc.get_objects())

    environ = {"XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    text = f"asked by {api.name}"
    body, path = api.asking(text), api.path
    if not stream:
        path = path.replace("streamGenerateContent?alt=sse", "generateContent")
        body |= {} if api.name == "generate" else {"stream": False}
    with gateway(upstream, environ=environ) as url:
        kept = TextBlock(text=text)
        assert is_left(text), "the check finds what is kept"
        del kept
        assert httpx.post(url + path, json=body, timeout=60).status_code == 200
        until(lambda: not is_left(text))
    assert text in str(upstream.requests[-1])


def test_no_request_counts_as_held_after_its_end(upstream: Upstream) -> None:
    routes: Any = [{"match": "*", "to": ["llamacpp:up-1"], "retries": 0}]
    app = create_app(
        config_of({"routes": routes, "message_limit": 3, "body_limit": 10_000}),
        settings={"llamacpp": {"base_url": f"{upstream.url}/v1"}}, environ={},
    )  # fmt: skip
    asked = [(1, 5), (4, 5), (1, 20_000), (1, 50)]
    with serving(app) as url:
        found = [httpx.post(f"{url}/v1/messages", json=_conversation(*one)).status_code for one in asked]
        streamed = httpx.post(f"{url}/v1/messages", json={**_conversation(1, 5), "stream": True})
        assert streamed.text.endswith("\n\n")
        until(lambda: app.state.services.held == 0)
    assert found == [200, 413, 413, 200]


class _Written:
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.writes.append(data)

    def close(self) -> None:
        self.writes.append(b"closed")


@pytest.mark.parametrize(
    ("steps", "writes"),
    [
        (["HTTP/1.1 200", "body"], [b"HTTP/1.1 200body"]),
        (["HTTP/1.1 200", None, "delta", "delta"], [b"HTTP/1.1 200", b"delta", b"delta"]),  # a stream's head is first
        (["HTTP/1.1 200", "x" * 70_000], [b"HTTP/1.1 200", b"x" * 70_000]),
        (["HTTP/1.1 100", "HTTP/1.1 200", "body"], [b"HTTP/1.1 100HTTP/1.1 200", b"body"]),
        (["HTTP/1.1 200", "closed"], [b"HTTP/1.1 200", b"closed"]),
        (["HTTP/1.1 200", "a", "HTTP/1.1 200", "b"], [b"HTTP/1.1 200a", b"HTTP/1.1 200b"]),
    ],
    ids=range(6),
)
def test_the_head_of_an_answer_is_written_with_what_follows_at_once(
    steps: list[str | None], writes: list[bytes]
) -> None:
    kept = _Written()

    async def run() -> None:
        transport = _OneWrite(kept, asyncio.get_running_loop())  # type: ignore[arg-type]
        for step in steps:
            if step is None:
                await asyncio.sleep(0)
            elif step == "closed":
                transport.close()
            else:
                transport.write(step.encode())
        await asyncio.sleep(0)

    asyncio.run(run())
    assert kept.writes == writes


def test_connections_send_without_waiting_for_acknowledgements() -> None:
    """Two writes of one answer would be 40 ms apart."""
    with open_listener("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        connection, _address = listener.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_request_that_is_nested_too_deeply_is_refused(upstream: Upstream) -> None:
    for depth in (400, 900, 99_000):
        value = "[" * depth + "]" * depth
        call = f'{{"type":"tool_use","id":"t","name":"f","input":{{"a":{value}}}}}'
        result = '{"type":"tool_result","tool_use_id":"t","content":"x"}'
        body = (
            f'{{"model":"m","max_tokens":5,"messages":[{{"role":"user","content":"Hi"}},'
            f'{{"role":"assistant","content":[{call}]}},{{"role":"user","content":[{result}]}}]}}'
        )
        with gateway(upstream) as url:
            answer = httpx.post(f"{url}/v1/messages", content=body, headers={"content-type": "application/json"})
        assert answer.status_code in (200, 400), answer.text


@pytest.mark.parametrize(
    "head",
    [b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\nx-a: " + b"x" * 200_000,
     b"POST /v1/messages HTTP/1.1\r\n" + b"".join(b"x-%d: %s\r\n" % (at, b"x" * 1_000) for at in range(200)) + b"\r\n",
     b"GET /" + b"x" * 200_000],
    ids=["value", "headers", "line"],
)  # fmt: skip
def test_a_head_that_is_too_large_is_refused(upstream: Upstream, head: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    with gateway(upstream) as url, socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as caller:
        caller.sendall(head)
        caller.settimeout(10)
        assert b" 431 " in caller.recv(1_000)


def test_a_head_that_does_not_come_is_refused(upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interlingua_gateway.server._HEAD_SECONDS", 0.3)
    with gateway(upstream) as url, socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as caller:
        caller.sendall(b"POST /v1/mess")
        caller.settimeout(10)
        assert b" 408 " in caller.recv(1_000)


def test_an_answer_may_take_longer_than_a_head(upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interlingua_gateway.server._HEAD_SECONDS", 0.3)

    def slowly(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        time.sleep(1)
        say("Hello.")(handler, body)

    upstream.answers = [slowly]
    with gateway(upstream) as url, httpx.Client() as client:
        for _ in range(2):
            assert client.post(f"{url}/v1/messages", json=_conversation(1, 5)).status_code == 200
        until(lambda: client.get(f"{url}/health").status_code == 200)
