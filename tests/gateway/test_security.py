"""A seal that was altered, or is another tenant's, is dropped, with a row; keys take constant time to compare."""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import attrs
import httpx
import pytest

from tests.gateway.conftest import Upstream, gateway, new_store
from tests.gateway.test_recall import PARAMETERS, THOUGHT, think
from tests.support.loopback import send_bytes

MARK = base64.urlsafe_b64encode(b"ils1")[:5].decode()  # what every seal begins with
KEYS = [base64.b64encode(bytes([number]) * 32).decode() for number in (1, 2)]
QUESTION = "How wide is Io?"
Change = Callable[[str], str]


def think_in_chat(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
    """Answer as services of Chat Completions do that show their reasoning."""
    function = {"name": "look", "arguments": '{"moon": "Io"}'}
    call = {"id": "call_0123456789abcdef", "type": "function", "function": function}
    message = {"role": "assistant", "content": None, "reasoning_content": THOUGHT["thinking"], "tool_calls": [call]}
    if any(message["role"] == "tool" for message in body["messages"]):
        message = {"role": "assistant", "content": "3,643 km."}
    whole = {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "up-1",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    }  # fmt: skip
    send_bytes(handler, 200, "application/json", json.dumps(whole).encode())


@attrs.frozen
class Caller:
    """A caller's API.

    Attributes:
        path: where it asks.
        first: the first request.
        second: makes the second of the first answer, which the caller has changed.
        held: text of the service's own that the seal holds: only by it does the service get that back.
    """

    path: str
    first: Mapping[str, Any]
    second: Callable[[Any], Mapping[str, Any]]
    held: str = THOUGHT["signature"]


_SAID = {"role": "user", "content": QUESTION}
_FUNCTION = {"name": "look", "parameters": PARAMETERS}
_CHAT = {"model": "m", "tools": [{"type": "function", "function": _FUNCTION}]}
_RESPONSES = {"model": "m", "tools": [{"type": "function", **_FUNCTION}], "include": ["reasoning.encrypted_content"]}
_GENERATE = {"tools": [{"functionDeclarations": [_FUNCTION]}]}
_INTERACTION = {"model": "m", "tools": [{"type": "function", **_FUNCTION}]}
_INPUT = {"type": "user_input", "content": [{"type": "text", "text": QUESTION}]}
_MESSAGES = {"model": "m", "max_tokens": 99, "tools": [{"name": "look", "input_schema": PARAMETERS}]}


def _chat_again(answer: Any) -> Mapping[str, Any]:
    message = answer["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "3643"}
    return {**_CHAT, "messages": [_SAID, message, result]}


def _responses_again(answer: Any) -> Mapping[str, Any]:
    [call] = [item for item in answer["output"] if item["type"] == "function_call"]
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "3643"}
    return {**_RESPONSES, "input": [_SAID, *answer["output"], result]}


def _generate_again(answer: Any) -> Mapping[str, Any]:
    content = answer["candidates"][0]["content"]
    [call] = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
    result = {"functionResponse": {"id": call.get("id"), "name": "look", "response": {"width": 3643}}}
    said = {"role": "user", "parts": [{"text": QUESTION}]}
    return {**_GENERATE, "contents": [said, content, {"role": "user", "parts": [result]}]}


def _interactions_again(answer: Any) -> Mapping[str, Any]:
    [call] = [step for step in answer["steps"] if step["type"] == "function_call"]
    result = {"type": "function_result", "call_id": call["id"], "result": "3643"}
    return {**_INTERACTION, "input": [_INPUT, *answer["steps"], result]}


def _messages_again(answer: Any) -> Mapping[str, Any]:
    [call] = [block for block in answer["content"] if block["type"] == "tool_use"]
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": "3643"}
    said = {"role": "assistant", "content": answer["content"]}
    return {**_MESSAGES, "messages": [_SAID, said, {"role": "user", "content": [result]}]}


CALLERS = {
    "chat": Caller("/v1/chat/completions", {**_CHAT, "messages": [_SAID]}, _chat_again),
    "responses": Caller("/v1/responses", {**_RESPONSES, "input": [_SAID]}, _responses_again),
    "generate": Caller(
        "/v1beta/models/m:generateContent",
        {**_GENERATE, "contents": [{"role": "user", "parts": [{"text": QUESTION}]}]},
        _generate_again,
    ),
    "interactions": Caller("/v1beta/interactions", {**_INTERACTION, "input": [_INPUT]}, _interactions_again),
    "messages": Caller("/v1/messages", {**_MESSAGES, "messages": [_SAID]}, _messages_again, "call_0123456789abcdef"),
}
each_caller = pytest.mark.parametrize("name", CALLERS)


def _with_seals(value: Any, change: Change, found: list[str]) -> Any:
    """Return the value with every seal in it changed; `found` gets the seals."""
    if isinstance(value, dict):
        return {key: _with_seals(inner, change, found) for key, inner in value.items()}
    if isinstance(value, list):
        return [_with_seals(inner, change, found) for inner in value]
    if isinstance(value, str) and value.startswith(MARK):
        found.append(value)
        return change(value)
    return value


def _flip(at: int) -> Change:
    def change(seal: str) -> str:
        data = bytearray(base64.urlsafe_b64decode(seal))
        data[at] ^= 1
        return base64.urlsafe_b64encode(data).decode()

    return change


def _setup(name: str, upstream: Upstream) -> dict[str, Any]:
    upstream.answers = [think_in_chat if name == "messages" else think]
    target = "llamacpp:up-1" if name == "messages" else "anthropic:claude-opus-4-5"
    return {
        "settings": {
            "anthropic": {"base_url": upstream.url, "api_key": "k"}, "llamacpp": {"base_url": f"{upstream.url}/v1"},
        },
        "routes": [{"match": "*", "to": [target], "retries": 0}],
    }  # fmt: skip


def _two_turns(name: str, urls: tuple[str, str], change: Change, keys: tuple[str, str] = ("", "")) -> list[Any]:
    """Ask, change the seals in the answer, send them back; return the rows of the second answer's ledger."""
    caller = CALLERS[name]
    headers = [{"authorization": f"Bearer {key}"} if key else {} for key in keys]
    first = httpx.post(urls[0] + caller.path, json=dict(caller.first), headers=headers[0])
    assert first.status_code == 200, first.text
    found: list[str] = []
    body = caller.second(_with_seals(first.json(), change, found))
    assert found
    second = httpx.post(urls[1] + caller.path, json=dict(body), headers=headers[1])
    assert second.status_code == 200, second.text
    rows: list[Any] = json.loads(second.headers["x-interlingua-losses"])
    return rows


def _check_refused(name: str, upstream: Upstream, rows: list[Any]) -> None:
    got = json.dumps(upstream.requests[1][1])
    assert CALLERS[name].held not in got
    assert MARK not in got, "a seal went on to the service"
    assert "3643" in got
    assert any("seal" in row["reason"] for row in rows), rows


@each_caller
def test_a_seal_brings_state_back(upstream: Upstream, name: str) -> None:
    with gateway(upstream, **_setup(name, upstream)) as url:
        _two_turns(name, (url, url), lambda seal: seal)
    got = json.dumps(upstream.requests[1][1])
    assert CALLERS[name].held in got
    assert MARK not in got


@each_caller
@pytest.mark.parametrize("at", [4, 20, 60, -1], ids=["nonce", "state", "later", "tag"])
def test_an_altered_seal_is_refused(upstream: Upstream, name: str, at: int) -> None:
    with gateway(upstream, **_setup(name, upstream)) as url:
        rows = _two_turns(name, (url, url), _flip(at))
    _check_refused(name, upstream, rows)


@each_caller
def test_a_shortened_seal_is_refused(upstream: Upstream, name: str) -> None:
    with gateway(upstream, **_setup(name, upstream)) as url:
        rows = _two_turns(name, (url, url), lambda seal: seal[: len(seal) // 8 * 4])
    _check_refused(name, upstream, rows)


@each_caller
def test_a_seal_of_another_key_is_refused_and_of_an_older_one_opened(upstream: Upstream, name: str) -> None:
    config = _setup(name, upstream)
    variable = "INTERLINGUA_GATEWAY_SEAL_KEYS"
    with gateway(upstream, {variable: KEYS[0]}, **config) as first:
        with gateway(upstream, {variable: KEYS[1]}, **config) as other:
            rows = _two_turns(name, (first, other), lambda seal: seal)
        _check_refused(name, upstream, rows)
        with gateway(upstream, {variable: f"{KEYS[1]} {KEYS[0]}"}, **config) as newer:
            _two_turns(name, (first, newer), lambda seal: seal)
    assert CALLERS[name].held in json.dumps(upstream.requests[3][1])


@each_caller
def test_another_tenants_seal_is_refused(upstream: Upstream, name: str, tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path}/g.db"
    store = new_store(place)
    ann, bob = store.add_key("Ann")[1], store.add_key("Bob")[1]
    store.close()
    with gateway(upstream, auth="keys", store=place, **_setup(name, upstream)) as url:
        rows = _two_turns(name, (url, url), lambda seal: seal, (ann, bob))
        _check_refused(name, upstream, rows)
        _two_turns(name, (url, url), lambda seal: seal, (ann, ann))
    assert CALLERS[name].held in json.dumps(upstream.requests[3][1])


def test_secrets_are_compared_in_constant_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = new_store(f"sqlite:///{tmp_path}/g.db")
    key, secret = store.add_key("tests")
    compared: list[tuple[int, int]] = []
    real = hmac.compare_digest

    def compare(left: Any, right: Any) -> bool:
        compared.append((len(left), len(right)))
        return real(left, right)

    monkeypatch.setattr("interlingua_gateway.store.hmac.compare_digest", compare)
    assert store.find_key(secret) == key
    assert store.find_key(f"{secret}x") is None
    assert store.find_key(f"ilg-00000000-{'x' * 43}") is None  # of no key: compared all the same
    assert compared == [(64, 64)] * 3
    store.close()
