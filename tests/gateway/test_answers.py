"""The official SDKs, pointed at the gateway, get answers of a service that speaks another API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import anthropic
import httpx
import openai
import pytest

from tests.gateway.conftest import Upstream, chat_chunks, gateway, refuse, say
from tests.support.loopback import send_bytes

QUESTION: Any = [{"role": "user", "content": "Say hello."}]


_open: list[anthropic.Anthropic | openai.OpenAI] = []


@pytest.fixture(autouse=True)
def _closed_clients() -> Iterator[None]:
    yield
    while _open:
        _open.pop().close()


def _anthropic(url: str) -> anthropic.Anthropic:
    client = anthropic.Anthropic(base_url=url, api_key="x", max_retries=0)
    _open.append(client)
    return client


def _openai(url: str) -> openai.OpenAI:
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0)
    _open.append(client)
    return client


def test_messages_are_answered_whole_and_streamed(upstream: Upstream) -> None:
    upstream.answers = [say("Hel", "lo.")]
    with gateway(upstream) as url:
        client = _anthropic(url)
        whole = client.messages.create(model="claude-x", max_tokens=20, messages=QUESTION)
        with client.messages.stream(model="claude-x", max_tokens=20, messages=QUESTION) as stream:
            pieces = list(stream.text_stream)
            last = stream.get_final_message()

    assert [(message.model, message.stop_reason) for message in (whole, last)] == [("claude-x", "end_turn")] * 2
    assert [message.content[0].text for message in (whole, last)] == ["Hello."] * 2  # type: ignore[union-attr]
    assert pieces == ["Hel", "lo."]
    assert [(message.usage.input_tokens, message.usage.output_tokens) for message in (whole, last)] == [(7, 3)] * 2
    assert whole.id != last.id
    assert [path for path, _ in upstream.requests] == ["/v1/chat/completions"] * 2
    assert {body["model"] for _, body in upstream.requests} == {"up-1"}


def test_chat_completions_are_answered_whole_and_streamed(upstream: Upstream) -> None:
    upstream.answers = [say("Hel", "lo.")]
    with gateway(upstream) as url:
        whole = _openai(url).chat.completions.create(model="gpt-x", messages=QUESTION)
        chunks = list(_openai(url).chat.completions.create(model="gpt-x", messages=QUESTION, stream=True))

    assert (whole.model, whole.choices[0].message.content) == ("gpt-x", "Hello.")
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "Hello."
    assert {chunk.model for chunk in chunks} == {"gpt-x"}


def test_headers_say_who_answered_and_what_was_lost(upstream: Upstream) -> None:
    body = {"model": "claude-x", "max_tokens": 5, "messages": QUESTION, "metadata": {"user_id": "u", "more": 1}}
    with gateway(upstream) as url:
        answer = httpx.post(f"{url}/v1/messages?beta=true", json=body, headers={"x-api-key": "secret-key-of-caller"})

    assert answer.status_code == 200
    assert answer.headers["x-interlingua-model"] == "llamacpp:up-1"
    rows = json.loads(answer.headers["x-interlingua-losses"])
    assert [(row["path"], row["verdict"]) for row in rows] == [
        ("options.provider_options.metadata", "dropped"),
        ("options.user_id", "dropped"),
    ]
    assert "secret-key-of-caller" not in json.dumps(upstream.requests) + json.dumps(list(map(dict, upstream.headers)))


def test_the_next_model_answers_where_one_fails(upstream: Upstream) -> None:
    upstream.answers = [refuse(503), say("Here.")]
    routes = [{"match": "*", "to": ["llamacpp:first", "llamacpp:second"], "retries": 0}]
    with gateway(upstream, routes=routes) as url:
        answer = _anthropic(url).messages.create(model="claude-x", max_tokens=5, messages=QUESTION)

    assert answer.content[0].text == "Here."  # type: ignore[union-attr]
    assert [body["model"] for _, body in upstream.requests] == ["first", "second"]


@pytest.mark.parametrize("stream", [False, True])
def test_errors_have_the_callers_form(upstream: Upstream, stream: bool) -> None:
    upstream.answers = [refuse(429, retry_after="7")]
    with gateway(upstream) as url:
        with pytest.raises(anthropic.RateLimitError) as first:
            _anthropic(url).messages.create(model="claude-x", max_tokens=5, messages=QUESTION, stream=stream)
        with pytest.raises(openai.RateLimitError) as second:
            _openai(url).chat.completions.create(model="gpt-x", messages=QUESTION, stream=stream)

    assert first.value.response.headers["retry-after"] == "7"
    assert first.value.response.json()["error"]["type"] == "rate_limit_error"
    assert second.value.response.json()["error"]["message"]


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/chat/completions"])
@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"model": 5}', b"\xff\xfe", b'{"model":"m","messages":"x"}'])
def test_a_body_that_cannot_be_read_is_the_callers_error(upstream: Upstream, path: str, body: bytes) -> None:
    with gateway(upstream) as url:
        answer = httpx.post(url + path, content=body, headers={"content-type": "application/json"})

    assert answer.status_code == 400
    assert answer.json()["error"]["message"]
    assert upstream.requests == []


def test_a_body_larger_than_allowed_is_refused(upstream: Upstream) -> None:
    with gateway(upstream, body_limit=1_000) as url:
        answer = httpx.post(f"{url}/v1/messages", content=b"x" * 2_000, headers={"content-type": "application/json"})

    assert (answer.status_code, upstream.requests) == (413, [])


def test_a_cut_answer_does_not_look_finished(upstream: Upstream) -> None:
    def cut(handler: BaseHTTPRequestHandler, _body: dict[str, Any]) -> None:
        chunk = json.dumps(chat_chunks({"role": "assistant", "content": "Hel"})[0]).encode()
        send_bytes(handler, 200, "text/event-stream", b"data: " + chunk + b"\n\n")

    upstream.answers = [cut]
    with gateway(upstream) as url:
        with pytest.raises(anthropic.APIStatusError):
            _anthropic(url).messages.create(model="m", max_tokens=5, messages=QUESTION)
        with (
            pytest.raises(anthropic.APIStatusError),
            _anthropic(url).messages.stream(model="m", max_tokens=5, messages=QUESTION) as stream,
        ):
            assert list(stream.text_stream) == ["Hel"]
        with pytest.raises(openai.APIError):
            list(_openai(url).chat.completions.create(model="m", messages=QUESTION, stream=True))


def test_small_requests_agents_make(upstream: Upstream) -> None:
    with gateway(upstream) as url:
        assert httpx.head(url).status_code == 200
        assert httpx.get(f"{url}/v1/responses").status_code == 426
        assert httpx.get(f"{url}/health").json() == {"status": "ok"}
        tokens = _anthropic(url).messages.count_tokens(model="m", messages=QUESTION).input_tokens
    assert tokens > 0


@pytest.mark.parametrize("fetch_urls", [False, True])
def test_images_by_address_are_not_fetched(upstream: Upstream, fetch_urls: bool) -> None:
    """The address is of this machine, so that it is not fetched even by a gateway that fetches public ones."""
    image = {"type": "image", "source": {"type": "url", "url": f"{upstream.url}/secret.png"}}
    body = {"model": "ollama:m", "max_tokens": 5, "messages": [{"role": "user", "content": [image]}]}
    with gateway(upstream, routes=[], fetch_urls=fetch_urls) as url:
        answer = httpx.post(f"{url}/v1/messages", json=body)

    assert answer.status_code == 400, answer.text
    assert ("not public" if fetch_urls else "send the data itself") in answer.json()["error"]["message"]
    assert upstream.requests == []
