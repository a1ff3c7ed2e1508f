"""Conversations recorded as sessions: grown ones are one session, tenants apart, cut answers kept."""

from __future__ import annotations

import gzip
import json
import logging
import os
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpx
import pytest

from interlingua.errors import CallerError
from interlingua.plugins import Registry, WireRequest
from interlingua.types import Message, MessageStatus, Role
from interlingua_gateway import config_of, create_app
from interlingua_gateway.record import digests_of
from interlingua_serving import ServeContext, find_serving_plugin
from interlingua_sessions import SessionRecord, open_store
from tests.gateway.apis import last_value
from tests.gateway.conftest import Upstream, chat_chunks, gateway, new_store, say, wait_for_metric
from tests.gateway.test_faults import Endless
from tests.gateway.test_recall import think
from tests.support.loopback import send_bytes

FOLDER = os.environ.get("INTERLINGUA_GATEWAY")
CAPTURED = (
    ("/v1/messages", "anthropic", "messages"), ("/v1/responses", "openai", "responses"),
    ("/chat/completions", "openai", "chat"), ("enerateContent", "google", "generate"),
)  # fmt: skip
HELLO: Any = {"role": "user", "content": "Say hello."}
AGAIN: Any = {"role": "user", "content": "Again."}


def _stores(tmp_path: Path) -> dict[str, Any]:
    return {"store": f"sqlite:///{tmp_path}/g.db", "record": str(tmp_path / "sessions.db")}


def _recorded(tmp_path: Path) -> list[tuple[SessionRecord, list[Message]]]:
    """Return the sessions, oldest first; fails where something is wrong with them."""
    with open_store(tmp_path / "sessions.db") as store:
        assert list(store.verify()) == []
        return [(each, list(store.messages(each.id))) for each in reversed(list(store.sessions()))]


def _said(messages: list[Message]) -> list[tuple[str, str]]:
    return [(message.role.value, message.text) for message in messages]


def _generate(url: str, contents: list[Any]) -> Any:
    answer = httpx.post(f"{url}/v1beta/models/m:generateContent", json={"contents": contents})
    return answer.json()["candidates"][0]["content"]


def _turns_messages(url: str) -> None:
    body = {"model": "m", "max_tokens": 9, "system": "Now it is ten."}
    first = httpx.post(f"{url}/v1/messages", json={**body, "messages": [HELLO]}).json()
    history = [HELLO, {"role": "assistant", "content": first["content"]}, AGAIN]
    later = {**body, "system": "Now it is eleven.", "messages": history}
    httpx.post(f"{url}/v1/messages", json=later).raise_for_status()


def _turns_chat(url: str) -> None:
    first = httpx.post(f"{url}/v1/chat/completions", json={"model": "m", "messages": [HELLO]}).json()
    history = [HELLO, first["choices"][0]["message"], AGAIN]
    httpx.post(
        f"{url}/v1/chat/completions", json={"model": "m", "stream": True, "messages": history}
    ).raise_for_status()


def _turns_responses(url: str) -> None:
    first = httpx.post(f"{url}/v1/responses", json={"model": "m", "input": [HELLO]}).json()
    httpx.post(f"{url}/v1/responses", json={"model": "m", "input": [HELLO, *first["output"], AGAIN]}).raise_for_status()


def _turns_generate(url: str) -> None:
    hello, again = [{"role": "user", "parts": [{"text": each["content"]}]} for each in (HELLO, AGAIN)]
    _generate(url, [hello, _generate(url, [hello]), again])


def _turns_interactions(url: str) -> None:
    hello, again = [
        {"type": "user_input", "content": [{"type": "text", "text": each["content"]}]} for each in (HELLO, AGAIN)
    ]
    first = httpx.post(f"{url}/v1/interactions", json={"model": "m", "input": [hello]}).json()
    later = {"model": "m", "stream": True, "input": [hello, *first["steps"], again]}
    httpx.post(f"{url}/v1/interactions", json=later).raise_for_status()


def _turns_ollama(url: str) -> None:
    first = last_value(httpx.post(f"{url}/api/chat", json={"model": "m", "stream": False, "messages": [HELLO]}).content)
    httpx.post(f"{url}/api/chat", json={"model": "m", "messages": [HELLO, first["message"], AGAIN]}).raise_for_status()


@pytest.mark.parametrize(
    "turns",
    [_turns_messages, _turns_chat, _turns_responses, _turns_generate, _turns_interactions, _turns_ollama],
    ids=lambda each: each.__name__,
)
def test_a_conversation_that_grows_is_one_session(
    upstream: Upstream, tmp_path: Path, turns: Callable[[str], None]
) -> None:
    upstream.answers = [say("Hel", "lo."), say("Hello again.")]
    with gateway(upstream, **_stores(tmp_path)) as url:
        turns(url)

    [(session, messages)] = _recorded(tmp_path)
    assert (session.workspace_path, session.active_model) == ("gateway:local", "llamacpp:up-1")
    assert [pair for pair in _said(messages) if pair[0] != "system"] == [
        ("user", "Say hello."), ("assistant", "Hello."), ("user", "Again."), ("assistant", "Hello again."),
    ]  # fmt: skip
    answer = messages[-1].metadata
    assert answer.provider == "llamacpp"
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (7, 3)


def test_nothing_is_recorded_unless_asked_for(upstream: Upstream, tmp_path: Path) -> None:
    with gateway(upstream, store=f"sqlite:///{tmp_path}/g.db") as url:
        _turns_chat(url)

    assert config_of({}).record == ""
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"Say hello." not in kept
    assert b"Hello." not in kept


def test_calls_and_results_are_recorded(upstream: Upstream, tmp_path: Path) -> None:
    """The ids that callers use are replaced, so that no two conversations have the same."""
    upstream.answers = [think]
    settings = {"anthropic": {"base_url": upstream.url, "api_key": "k"}}
    routes = [{"match": "*", "to": ["anthropic:claude-opus-4-5"], "retries": 0}]
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
    with gateway(upstream, settings=settings, routes=routes, **_stores(tmp_path)) as url:
        for _ in range(2):
            body = {"model": "m", "tools": [tool], "messages": [HELLO]}
            message = httpx.post(f"{url}/v1/chat/completions", json=body).json()["choices"][0]["message"]
            result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "3643"}
            httpx.post(f"{url}/v1/chat/completions", json={**body, "messages": [HELLO, message, result]})

    sessions = _recorded(tmp_path)
    assert [[each.role for each in messages] for _, messages in sessions] == [
        [Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT]
    ] * 2
    for _, (_question, called, result, _end) in sessions:
        [call] = called.tool_calls
        assert result.tool_results[0].tool_use_id == call.id == result.metadata.parent_tool_use_id
        assert called.thinking_blocks[0].signature


def test_another_answer_or_another_question_is_a_session_of_its_own(upstream: Upstream, tmp_path: Path) -> None:
    with gateway(upstream, **_stores(tmp_path)) as url:
        for _ in range(2):
            httpx.post(f"{url}/v1/chat/completions", json={"model": "m", "messages": [HELLO]})
        edited = [{**HELLO, "content": "Say it."}, {"role": "assistant", "content": "Hello."}, AGAIN]
        httpx.post(f"{url}/v1/chat/completions", json={"model": "m", "messages": edited})

    sessions = _recorded(tmp_path)
    assert [len(messages) for _, messages in sessions] == [2, 2, 4]


def test_pictures_are_part_of_what_is_recognised(upstream: Upstream, tmp_path: Path) -> None:
    def asked(data: str) -> dict[str, Any]:
        image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
        return {"role": "user", "content": [{"type": "text", "text": "What is it?"}, image]}

    one, two = asked("iVBORw0KGgo="), asked("iVBORw0KGgoA")
    with gateway(upstream, **_stores(tmp_path)) as url:
        httpx.post(f"{url}/v1/chat/completions", json={"model": "m", "messages": [one]})
        history = [two, {"role": "assistant", "content": "Hello."}, AGAIN]
        httpx.post(f"{url}/v1/chat/completions", json={"model": "m", "messages": history})

    assert [len(messages) for _, messages in _recorded(tmp_path)] == [2, 4]


def test_tenants_have_sessions_of_their_own(upstream: Upstream, tmp_path: Path) -> None:
    store = new_store(f"sqlite:///{tmp_path}/g.db")
    (ann, first), (bob, second) = store.add_key("Ann"), store.add_key("Bob")
    store.close()
    history = [HELLO, {"role": "assistant", "content": "Hello."}, AGAIN]
    with gateway(upstream, auth="keys", **_stores(tmp_path)) as url:
        for secret, messages in ((first, [HELLO]), (second, history), (first, history)):
            headers = {"authorization": f"Bearer {secret}"}
            httpx.post(f"{url}/v1/chat/completions", json={"model": "m", "messages": messages}, headers=headers)

    found = {session.workspace_path: len(messages) for session, messages in _recorded(tmp_path)}
    assert found == {f"gateway:{ann.id}": 4, f"gateway:{bob.id}": 4}


def _cut(handler: BaseHTTPRequestHandler, _body: dict[str, Any]) -> None:
    chunk = json.dumps(chat_chunks({"role": "assistant", "content": "Hel"})[0]).encode()
    send_bytes(handler, 200, "text/event-stream", b"data: " + chunk + b"\n\n")


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_an_answer_that_was_cut_is_kept_and_the_next_one_follows_it(
    upstream: Upstream, tmp_path: Path, stream: bool
) -> None:
    upstream.answers = [_cut, say("Hello.")]
    body = {"model": "m", "stream": True, "messages": [HELLO]}
    with gateway(upstream, **_stores(tmp_path)) as url:
        httpx.post(f"{url}/v1/chat/completions", json=body)
        httpx.post(f"{url}/v1/chat/completions", json={**body, "stream": stream})

    [(_, messages)] = _recorded(tmp_path)
    assert _said(messages) == [("user", "Say hello."), ("assistant", "Hel"), ("assistant", "Hello.")]
    assert [each.metadata.status for each in messages[1:]] == [MessageStatus.ERROR, MessageStatus.COMPLETE]


def test_what_came_until_the_caller_left_is_kept(upstream: Upstream, tmp_path: Path) -> None:
    endless = Endless()
    upstream.answers = [endless]
    body = {"model": "m", "stream": True, "messages": [HELLO]}
    with gateway(upstream, **_stores(tmp_path)) as url:
        with httpx.stream("POST", f"{url}/v1/chat/completions", json=body) as answer:
            pieces = answer.iter_raw()
            while endless.written < 40:
                next(pieces)
        assert endless.broken.wait(5)

    [(_, messages)] = _recorded(tmp_path)
    assert messages[-1].metadata.status is MessageStatus.CANCELLED
    assert "xxxx" in messages[-1].text


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_an_answer_comes_though_it_cannot_be_recorded(
    upstream: Upstream, tmp_path: Path, caplog: pytest.LogCaptureFixture, stream: bool
) -> None:
    config = _stores(tmp_path)
    routes = [{"match": "*", "to": ["llamacpp:up-1"], "retries": 0}]
    settings = {"llamacpp": {"base_url": f"{upstream.url}/v1"}}
    with gateway(upstream, settings=settings, routes=routes, **config) as url, caplog.at_level(logging.DEBUG):
        with open_store(tmp_path / "sessions.db") as store:
            store.database.rows("DROP TABLE messages")
        body = {"model": "m", "stream": stream, "messages": [HELLO]}
        answer = httpx.post(f"{url}/v1/chat/completions", json=body)
        unrecorded = 'interlingua_gateway_unrecorded_total{api="openai"} 1.0'
        metrics = wait_for_metric(url, unrecorded)

    assert answer.status_code == 200
    assert "Hello." in answer.text
    assert unrecorded in metrics
    said = [record.getMessage() for record in caplog.records if "was not recorded" in record.getMessage()]
    assert said == ["a conversation was not recorded: StoreError"]
    assert "Say hello." not in caplog.text


def test_without_the_extra_the_start_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "interlingua_sessions", None)

    with pytest.raises(CallerError, match=r"interlingua-gateway\[record\]"):
        create_app(config_of(_stores(tmp_path)), environ={})


@pytest.mark.skipif(not FOLDER, reason="INTERLINGUA_GATEWAY names no folder of captured requests")
def test_requests_of_agents_that_go_on_are_recognised() -> None:
    """The second request of a tool turn continues the first, for each agent and API, as its files hold them."""
    assert FOLDER is not None
    found: dict[str, list[bool]] = {}
    for file in sorted(Path(FOLDER).glob("*.jsonl.gz")):
        before: dict[str, list[str]] = {}
        for line in gzip.decompress(file.read_bytes()).splitlines():
            entry = json.loads(line)
            wanted = next((each for each in CAPTURED if each[0] in entry.get("path", "")), None)
            if wanted is None or not entry.get("body"):
                continue
            _, key, api = wanted
            wire = WireRequest(path=entry["path"], body=json.dumps(entry["body"]).encode(), api=api)
            read = find_serving_plugin(Registry(), key).from_wire_request(wire, ServeContext(provider=key, api=api))
            digests = list(digests_of(read.messages))
            if any(message.role is Role.TOOL for message in read.messages[-2:]) and api in before:
                found.setdefault(api, []).append(before[api][-1] in digests)
            before[api] = digests
    assert {api: all(each) for api, each in found.items()} == dict.fromkeys(found, True)
    assert set(found) == {"messages", "responses", "chat", "generate"}
