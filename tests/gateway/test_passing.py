"""Requests that are no conversations reach the service of their API byte for byte, and are billed."""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import threading
from collections.abc import Iterator, Mapping
from decimal import Decimal
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import anthropic
import httpx
import openai
import pytest
from google import genai

from interlingua_gateway.activity import Activity
from interlingua_gateway.passing import PassedPath, _below
from tests.gateway.conftest import Upstream, gateway, new_store
from tests.support.loopback import loopback, send_bytes
from tests.support.waiting import until

EMBEDDINGS = {
    "object": "list", "model": "text-embedding-3-small", "usage": {"prompt_tokens": 8, "total_tokens": 8},
    "data": [{"object": "embedding", "index": 0, "embedding": [0.5, -0.25]}],
}  # fmt: skip
ALL = ("/v1/*", "/api/*")


class Service:
    """Answers any request, and notes what arrived."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, Mapping[str, str], bytes]] = []
        self.status, self.kind, self.body = 200, "application/json", json.dumps(EMBEDDINGS).encode()

    def __call__(self, handler: BaseHTTPRequestHandler, data: bytes) -> None:
        headers = {name.lower(): value for name, value in handler.headers.items()}
        self.seen.append((handler.command, handler.path, headers, data))
        send_bytes(handler, self.status, self.kind, self.body, **{"set-cookie": "a=b", "x-request-id": "r1"})


@pytest.fixture
def service() -> Iterator[tuple[Service, str]]:
    made = Service()
    with loopback(made) as url:
        yield made, url


def _config(url: str, place: str) -> dict[str, Any]:
    settings = {
        "openai": {"base_url": f"{url}/v1", "api_key": "operator"},
        "anthropic": {"base_url": url, "api_key": "operator"},
        "ollama": {"base_url": url},
    }
    return {"settings": settings, "auth": "keys", "store": place}


def test_bytes_are_untouched_and_the_key_is_replaced(
    upstream: Upstream, service: tuple[Service, str], tmp_path: Path
) -> None:
    made, url = service
    place = f"sqlite:///{tmp_path}/g.db"
    store = new_store(place)
    key, secret = store.add_key("Ann", passes=ALL)
    with gateway(upstream, **_config(url, place)) as address:
        body = b'{ "model" : "text-embedding-3-small",\n"input":"\xc3\xa9" , "x":1e5}'
        headers = {
            "authorization": f"Bearer {secret}",
            "content-type": "application/json",
            "cookie": "c=1",
            "x-own": "7",
        }
        answer = httpx.post(f"{address}/v1/embeddings?a=1&key={secret}", content=body, headers=headers)
        assert answer.content == made.body
        assert (answer.status_code, answer.headers["x-request-id"]) == (200, "r1")
        assert "set-cookie" not in answer.headers
        method, path, sent, data = made.seen[0]
        assert (method, path, data) == ("POST", "/v1/embeddings?a=1", body)
        assert (sent["authorization"], sent["x-own"]) == ("Bearer operator", "7")
        assert "cookie" not in sent
        assert secret not in repr(made.seen)
        until(lambda: store.spent(key).input_tokens == 8)

        made.body, made.kind = bytes(range(256)) * 100, "audio/mpeg"
        with openai.OpenAI(base_url=f"{address}/v1", api_key=secret) as client:
            assert client.audio.speech.create(model="tts-1", voice="alloy", input="Hi").read() == made.body
            made.body, made.kind = b'{"text": "Hi"}', "application/json"
            spoken = ("a.mp3", bytes(range(256)), "audio/mpeg")
            assert client.audio.transcriptions.create(model="whisper-1", file=spoken).text == "Hi"
            assert bytes(range(256)) in made.seen[-1][3]
            made.body = (
                b'{"id": "file-1", "object": "file", "bytes": 1, "created_at": 1, "filename": "a", "purpose": "x"}'
            )
            assert client.files.retrieve("file-1").id == "file-1"
            assert made.seen[-1][:2] == ("GET", "/v1/files/file-1")
        with anthropic.Anthropic(base_url=address, api_key=secret) as messages:
            made.body = b'{"data": [], "has_more": false, "first_id": null, "last_id": null}'
            assert list(messages.messages.batches.list()) == []
            assert made.seen[-1][2]["x-api-key"] == "operator"
            assert made.seen[-1][1].startswith("/v1/messages/batches")
        made.status, made.body = 429, b'{"error": {"message": "slow"}}'
        failed = httpx.post(f"{address}/v1/embeddings", json={"model": "m", "input": "x"}, headers=headers)
        assert (failed.status_code, failed.content) == (429, made.body)
    assert Activity(store.database).requests() == []
    rows = {row["model"]: row for row in Activity(store.database).spending(["model"], 1)}
    assert rows["openai:text-embedding-3-small"]["input_tokens"] == 8
    store.close()


def test_a_key_passes_only_what_it_may(upstream: Upstream, service: tuple[Service, str], tmp_path: Path) -> None:
    made, url = service
    place = f"sqlite:///{tmp_path}/g.db"
    store = new_store(place)
    _, none = store.add_key("none")
    _, some = store.add_key("some", passes=("/v1/embeddings",), models=("text-embedding-3-small",))
    _, budget = store.add_key("budget", passes=ALL, budget_usd=Decimal(1))
    embed = {"model": "text-embedding-3-small", "input": "x"}
    with gateway(upstream, **_config(url, place)) as address:

        def post(path: str, secret: str, body: Any = None) -> int:
            headers = {"authorization": f"Bearer {secret}"}
            return httpx.post(f"{address}{path}", json=body or embed, headers=headers).status_code

        assert post("/v1/embeddings", "wrong") == 401
        assert post("/v1/embeddings", none) == 403
        assert post("/v1/moderations", some) == 403
        assert post("/v1/embeddings", some, {"model": "text-embedding-3-large", "input": "x"}) == 403
        assert post("/v1/embeddings", some, {"input": "x"}) == 403
        assert post("/v1/embeddings", budget, {"model": "of-tomorrow", "input": "x"}) == 400
        for path in ("/v1/files/..", "/v1/files/%2e%2e", "/v1/files/a%2f..%2fb", "/v1/files/a%0d%0ab", "/v1/audio/%3f"):
            assert post(path, budget) in (400, 403, 404, 405), path
        assert made.seen == []
        assert post("/v1/embeddings", some) == 200
    with gateway(upstream) as address:
        assert httpx.post(f"{address}/v1/embeddings", json=embed).status_code == 403
    assert len(made.seen) == 1
    store.close()


def test_a_service_that_fails_is_an_error_of_the_callers_api(upstream: Upstream, tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path}/g.db"
    store = new_store(place)
    _, secret = store.add_key("Ann", passes=ALL)
    with gateway(upstream, **_config("http://127.0.0.1:9", place)) as address:
        headers = {"authorization": f"Bearer {secret}"}
        answer = httpx.post(f"{address}/v1/embeddings", json={"model": "m", "input": "x"}, headers=headers)
        assert answer.status_code >= 500
        assert "127.0.0.1" not in answer.text
        assert answer.json()["error"]["message"]
    assert Activity(store.database).requests() == []
    store.close()


def test_refusals_tell_a_client_what_to_do(
    upstream: Upstream, service: tuple[Service, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The statuses and headers of RFC 9110: 413 for content that is too large, 429 with `retry-after`."""
    _, url = service
    place = f"sqlite:///{tmp_path}/g.db"
    store = new_store(place)
    _, secret = store.add_key("Ann", passes=ALL)
    _, slow = store.add_key("Bob", passes=ALL, requests_per_minute=1)
    with gateway(upstream, **_config(url, place), body_limit=1_000) as address:

        def post(secret: str, text: str = "x") -> httpx.Response:
            headers = {"authorization": f"Bearer {secret}"}
            return httpx.post(f"{address}/v1/embeddings", json={"model": "m", "input": text}, headers=headers)

        large = post(secret, "x" * 2_000)
        assert post(slow).status_code == 200
        limited = post(slow)
        monkeypatch.setattr(PassedPath, "_model", Mock(side_effect=KeyError("a fault of ours")))
        failed = post(secret)
    assert [large.status_code, limited.status_code, failed.status_code] == [413, 429, 500]
    assert 1 <= int(limited.headers["retry-after"]) <= 60
    for answer in (large, limited, failed):
        assert answer.headers["x-interlingua-request-id"]
        assert answer.json()["error"]["message"]
    store.close()


FREE = [
    ("POST", "/v1/files"), ("GET", "/v1/files"), ("GET", "/v1/files/f"),
    ("GET", "/v1/files/f/content"), ("GET", "/v1/batches"), ("GET", "/v1/batches/b"), ("POST", "/v1/batches/b/cancel"),
    ("POST", "/v1/moderations"),
]  # fmt: skip
PAID = [("POST", "/v1/batches"), ("POST", "/v1/images/edits"), ("POST", "/v1/audio/transcriptions")]


def test_what_costs_nothing_needs_no_price(upstream: Upstream, service: tuple[Service, str], tmp_path: Path) -> None:
    """A batch costs what its requests cost: https://developers.openai.com/api/docs/pricing."""
    made, url = service
    place = f"sqlite:///{tmp_path}/g.db"
    store = new_store(place)
    _, secret = store.add_key("Ann", passes=ALL, budget_usd=Decimal(1))
    with gateway(upstream, **_config(url, place)) as address:
        for version, paths in ((None, (FREE, PAID)), ("2023-06-01", ([("GET", "/v1/messages/batches")], []))):
            headers = {"authorization": f"Bearer {secret}", **({"anthropic-version": version} if version else {})}
            for expected, listed in zip((200, 400), paths, strict=True):
                for method, path in listed:
                    answer = httpx.request(method, address + path, headers=headers)
                    assert answer.status_code == expected, (method, path, answer.text)
        batch = httpx.post(f"{address}/v1/messages/batches", json={"requests": []}, headers=headers)
        assert batch.status_code == 400
    assert len(made.seen) == len(FREE) + 1


def test_the_official_sdk_sends_and_gets_files_and_sound(
    upstream: Upstream, service: tuple[Service, str], tmp_path: Path
) -> None:
    made, url = service
    place = f"sqlite:///{tmp_path}/g.db"
    _, secret = new_store(place).add_key("Ann", passes=ALL)
    sound, lines = random.Random(1).randbytes(3 << 20), b'{"custom_id": "1"}\n' * 1000
    with gateway(upstream, **_config(url, place)) as address:
        client = openai.OpenAI(base_url=f"{address}/v1", api_key=secret, max_retries=0)
        made.body = b'{"text": "Hello.", "usage": {"type": "tokens", "input_tokens": 3, "output_tokens": 2}}'
        assert client.audio.transcriptions.create(model="gpt-4o-transcribe", file=("a.mp3", sound)).text == "Hello."
        assert sound in made.seen[-1][3]
        made.body = b'{"id": "file-1", "object": "file", "purpose": "batch"}'
        assert client.files.create(file=("a.jsonl", lines), purpose="batch").id == "file-1"
        assert lines in made.seen[-1][3]
        made.kind, made.body = "audio/mpeg", sound
        assert client.audio.speech.create(model="tts-1", voice="alloy", input="Hi").read() == sound
        assert client.files.content("file-1").read() == sound
        made.kind, made.status, made.body = "application/json", 404, b'{"error": {"message": "No such file"}}'
        with pytest.raises(openai.NotFoundError, match="No such file"):
            client.files.retrieve("file-2")
    assert {headers["authorization"] for _, _, headers, _ in made.seen} == {"Bearer operator"}


def test_the_path_names_the_model_of_googles_embeddings(
    upstream: Upstream, service: tuple[Service, str], tmp_path: Path
) -> None:
    made, url = service
    made.body = b'{"embeddings": [{"values": [0.5]}], "usageMetadata": {"promptTokenCount": 4}}'
    place = f"sqlite:///{tmp_path}/g.db"
    store = new_store(place)
    key, secret = store.add_key("Ann", passes=("/v1*/models/*:*mbedContent*",), models=("gemini-embedding-001",))
    settings = {"google": {"base_url": f"{url}/v1beta", "api_key": "operator"}}
    with gateway(upstream, settings=settings, auth="keys", store=place) as address:
        client = genai.Client(api_key=secret, http_options={"base_url": address})
        given: Any = client.models.embed_content(model="gemini-embedding-001", contents="Hi")
        assert given.embeddings[0].values == [0.5]
        with pytest.raises(genai.errors.ClientError, match="may not use"):
            client.models.embed_content(model="gemini-embedding-2", contents="Hi")
        for path in ("/v1beta/models/../files:embedContent", "/v1beta/models/gemini-embedding-001/../x:embedContent"):
            with contextlib.closing(http.client.HTTPConnection(address.removeprefix("http://"))) as connection:
                connection.request("POST", path, b"{}", {"x-goog-api-key": secret, "content-type": "application/json"})
                assert connection.getresponse().status in (400, 403, 404)
        until(lambda: store.spent(key).input_tokens == 4)
    [(_, path, headers, body)] = made.seen
    assert path == "/v1beta/models/gemini-embedding-001:batchEmbedContents"
    assert headers["x-goog-api-key"] == "operator"
    assert json.loads(body)["requests"][0]["content"]["parts"] == [{"text": "Hi"}]


def test_an_answer_that_breaks_off_or_is_left_ends_on_both_sides(
    upstream: Upstream, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = f"sqlite:///{tmp_path}/g.db"
    _, secret = new_store(place).add_key("Ann", passes=ALL)
    ended = threading.Event()

    def write(handler: BaseHTTPRequestHandler, _data: bytes) -> None:
        handler.send_response(200)
        if handler.path.startswith("/v1/files/cut"):
            handler.send_header("content-length", "1000000")
            handler.end_headers()
            handler.wfile.write(b"x" * 1000)
            handler.close_connection = True
            return
        handler.send_header("content-type", "application/octet-stream")
        handler.end_headers()
        try:
            while not ended.wait(0.02):
                handler.wfile.write(b"y" * 1024)
        except OSError:
            ended.set()

    headers = {"authorization": f"Bearer {secret}"}
    with loopback(write) as url, gateway(upstream, **_config(url, place)) as address:
        with pytest.raises(httpx.RemoteProtocolError):
            httpx.get(f"{address}/v1/files/cut/content", headers=headers)
        with httpx.stream("GET", f"{address}/v1/files/endless/content", headers=headers) as answer:
            next(answer.iter_raw())
        left = ended.wait(10)
        ended.set()
    assert left, "the service still writes for a caller that has left"
    assert [record.exc_info for record in caplog.records if record.exc_info] == []


@pytest.mark.parametrize(
    ("base", "path", "rest"),
    [
        ("https://a/v1", "/v1/embeddings", "/embeddings"),
        ("https://a/x/v1/", "/v1/files/1", "/files/1"),
        ("https://a", "/v1/files", "/v1/files"),
        ("https://a/v1beta", "/v1/models/m:embedContent", "/models/m:embedContent"),
        ("https://a/v1beta", "/v1beta/models/m:embedContent", "/models/m:embedContent"),
        ("https://a/v2", "/v1/files", "/files"),
    ],
)
def test_the_path_follows_the_base(base: str, path: str, rest: str) -> None:
    assert _below(base, path) == rest


@pytest.mark.parametrize(
    "body",
    [
        b'{"model": "text-embedding-3-large", "model": "text-embedding-3-small", "input": "x"}',
        b'{"model": "text-embedding-3-large", "mod\\u0065l": "text-embedding-3-small", "input": "x"}',
        b'{"MODEL": "text-embedding-3-large", "model": "text-embedding-3-small", "input": "x"}',
        b'{"input": [{"a": 1, "a": 2}], "model": "text-embedding-3-small"}',
        '{"model": "text-embedding-3-small", "input": "x"}'.encode("utf-16"),
        b'{"model": "text-embedding-3-small", "input": "\xff"}',
        b"[" * 100_000,
    ],
    ids=range(7),
)
def test_a_body_of_which_a_service_may_read_another_model_is_refused(
    upstream: Upstream, service: tuple[Service, str], tmp_path: Path, body: bytes
) -> None:
    made, url = service
    place = f"sqlite:///{tmp_path}/g.db"
    _, secret = new_store(place).add_key("Ann", passes=ALL, models=("text-embedding-3-small",))
    headers = {"authorization": f"Bearer {secret}", "content-type": "application/json"}
    with gateway(upstream, **_config(url, place)) as address:
        answer = httpx.post(f"{address}/v1/embeddings", content=body, headers=headers)
        plain = httpx.post(f"{address}/v1/embeddings", content=b'{"model": "text-embedding-3-small"}', headers=headers)
    assert (answer.status_code, plain.status_code) == (400, 200), answer.text
    assert len(made.seen) == 1
