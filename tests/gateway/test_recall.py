"""State of the model that answered comes back to it, by a seal or from the store, whatever the caller's API holds."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpx
import pytest

from interlingua_gateway import config_of, create_app
from interlingua_gateway.recall import Recall
from interlingua_gateway.store import GatewayStore
from tests.gateway.conftest import Upstream, gateway
from tests.support.loopback import send_bytes

THOUGHT = {"type": "thinking", "thinking": "Look it up.", "signature": "c2lnbmF0dXJlIG9mIHRoZSBzZXJ2aWNl"}
CALL = {"type": "tool_use", "id": "toolu_01A09q90qw90lq917835lq9", "name": "look", "input": {"moon": "Io"}}
PARAMETERS = {"type": "object", "properties": {"moon": {"type": "string"}}}
QUESTION = {"role": "user", "content": "How wide is Io?"}
ROUTES: Any = [{"match": "*", "to": ["anthropic:claude-opus-4-5"], "retries": 0}]


def think(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
    """Answer as the Messages API does: with thinking and a call, then with text."""
    turn = sum(message["role"] == "assistant" for message in body["messages"])
    content = [THOUGHT, CALL] if turn == 0 else [{"type": "text", "text": "3,643 km."}]
    whole = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-up", "content": content,
        "stop_reason": "tool_use" if turn == 0 else "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": 7, "output_tokens": 3},
    }  # fmt: skip
    send_bytes(handler, 200, "application/json", json.dumps(whole).encode())


def _post(url: str, path: str, body: dict[str, Any]) -> Any:
    answer = httpx.post(url + path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def _chat(url: str, echo: Any) -> None:
    tool = {"type": "function", "function": {"name": "look", "parameters": PARAMETERS}}
    body = {"model": "gpt-x", "tools": [tool], "messages": [QUESTION]}
    message = _post(url, "/v1/chat/completions", body)["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "3643"}
    _post(url, "/v1/chat/completions", {**body, "messages": [QUESTION, echo(message), result]})


def _ollama(url: str, echo: Any) -> None:
    tool = {"type": "function", "function": {"name": "look", "parameters": PARAMETERS}}
    body = {"model": "qwen-x", "stream": False, "tools": [tool], "messages": [QUESTION]}
    message = _post(url, "/api/chat", body)["message"]
    result = {"role": "tool", "tool_name": "look", "content": "3643"}
    _post(url, "/api/chat", {**body, "messages": [QUESTION, echo(message), result]})


def _generate(url: str, echo: Any) -> None:
    tools = [{"functionDeclarations": [{"name": "look", "parameters": PARAMETERS}]}]
    question = {"role": "user", "parts": [{"text": QUESTION["content"]}]}
    body = {"tools": tools, "contents": [question]}
    path = "/v1beta/models/gemini-x:generateContent"
    content = _post(url, path, body)["candidates"][0]["content"]
    for part in content["parts"]:
        base64.b64decode(part.get("thoughtSignature", ""), validate=True)  # pi drops what this refuses
    call = next(part["functionCall"] for part in content["parts"] if "functionCall" in part)
    answered = {"name": "look", "id": call["id"], "response": {"output": "3643"}}
    result = {"role": "user", "parts": [{"functionResponse": answered}]}
    _post(url, path, {**body, "contents": [question, echo(content), result]})


def _without_thoughts(content: Any) -> Any:
    """Return what Gemini CLI sends back: seals, but no thoughts."""
    return {**content, "parts": [part for part in content["parts"] if not part.get("thought")]}


def _without_ids(content: Any) -> Any:
    """Return what pi sends back after it changed models: no ids, no signatures."""
    parts = [{name: part[name] for name in part if name != "thoughtSignature"} for part in content["parts"]]
    for part in parts:
        part.get("functionCall", {}).pop("id", None)
    return {**content, "parts": parts}


def _only(*names: str) -> Any:
    return lambda message: {name: message[name] for name in ("role", *names) if name in message}


@pytest.mark.parametrize(
    ("ask", "echo"),
    [
        (_chat, lambda message: message),
        (_chat, _only("content", "tool_calls")),  # reasoning and its seal are dropped
        (_ollama, _only("content", "thinking", "tool_calls")),
        (_ollama, _only("content", "tool_calls")),
        (_generate, lambda content: content),
        (_generate, _without_thoughts),
        (_generate, _without_ids),
    ],
    ids=[
        "chat",
        "chat without reasoning",
        "ollama",
        "ollama without thinking",
        "generate",
        "generate without thoughts",
        "generate without ids",
    ],
)
def test_a_signature_comes_back(upstream: Upstream, tmp_path: Path, ask: Any, echo: Any) -> None:
    upstream.answers = [think]
    settings = {"anthropic": {"base_url": upstream.url, "api_key": "k"}}
    routes = [{"match": "*", "to": ["anthropic:claude-opus-4-5"], "retries": 0}]
    with gateway(upstream, settings=settings, routes=routes, store=f"sqlite:///{tmp_path}/g.db") as url:
        ask(url, echo)

    [answer] = [message for message in upstream.requests[1][1]["messages"] if message["role"] == "assistant"]
    [thought, call] = answer["content"]
    assert {name: thought[name] for name in THOUGHT} == THOUGHT
    assert {name: call[name] for name in CALL} == CALL
    [result] = upstream.requests[1][1]["messages"][2]["content"]
    assert result["tool_use_id"] == CALL["id"]


def _ollama_streamed(url: str, echo: Any) -> None:
    """Ask again as soon as the line that ends the answer is there."""
    tool = {"type": "function", "function": {"name": "look", "parameters": PARAMETERS}}
    body = {"model": "qwen-x", "stream": True, "tools": [tool], "messages": [QUESTION]}
    message: dict[str, Any] = {"role": "assistant", "content": ""}
    with httpx.stream("POST", f"{url}/api/chat", json=body) as answer:
        for line in answer.iter_lines():
            data = json.loads(line)
            message.update({name: value for name, value in data["message"].items() if value})
            if data["done"]:
                break
    result = {"role": "tool", "tool_name": "look", "content": "3643"}
    _post(url, "/api/chat", {**body, "stream": False, "messages": [QUESTION, echo(message), result]})


@pytest.mark.parametrize("ask", [_chat, _ollama, _ollama_streamed])
def test_an_answer_is_kept_before_its_end_is_sent(
    upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Any
) -> None:
    """A caller may ask again at once, however long the database takes."""
    keep_state = GatewayStore.keep_state

    def keep_slowly(*arguments: Any) -> None:
        time.sleep(0.5)
        keep_state(*arguments)

    monkeypatch.setattr(GatewayStore, "keep_state", keep_slowly)
    upstream.answers = [think]
    settings = {"anthropic": {"base_url": upstream.url, "api_key": "k"}}
    routes = [{"match": "*", "to": ["anthropic:claude-opus-4-5"], "retries": 0}]
    with gateway(upstream, settings=settings, routes=routes, store=f"sqlite:///{tmp_path}/g.db") as url:
        ask(url, _only("content", "tool_calls"))

    [answer] = [message for message in upstream.requests[1][1]["messages"] if message["role"] == "assistant"]
    assert {name: answer["content"][0][name] for name in THOUGHT} == THOUGHT


def test_an_answer_whose_state_is_being_kept_is_whole_when_the_gateway_stops(
    upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = b""

    async def main() -> None:
        keeping = asyncio.Event()

        async def keep(*_arguments: Any) -> None:
            keeping.set()
            await asyncio.sleep(60)

        async def receive() -> dict[str, Any]:
            if requests:
                return {"type": "http.request", "body": requests.pop()}
            await asyncio.sleep(60)
            return {"type": "http.disconnect"}

        async def send(event: Any) -> None:
            nonlocal sent
            sent += event.get("body", b"")

        monkeypatch.setattr(Recall, "keep", keep)
        body = {"model": "qwen-x", "stream": True, "messages": [QUESTION]}
        requests = [json.dumps(body).encode()]
        config = config_of({"routes": ROUTES, "store": f"sqlite:///{tmp_path}/g.db"})
        settings = {"anthropic": {"base_url": upstream.url, "api_key": "k"}}
        app = create_app(config, settings=settings, environ={})
        scope = {
            "type": "http", "method": "POST", "scheme": "http", "path": "/api/chat", "raw_path": b"/api/chat",
            "query_string": b"", "headers": [(b"content-type", b"application/json")], "root_path": "", "client": None,
            "server": None,
        }  # fmt: skip
        answering = asyncio.create_task(app(scope, receive, send))
        await asyncio.wait_for(keeping.wait(), 30)
        answering.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await answering
        await app.state.services.close()

    upstream.answers = [think]
    asyncio.run(main())
    lines = [json.loads(line) for line in sent.splitlines()]
    assert [call["function"]["name"] for line in lines for call in line["message"].get("tool_calls", ())] == ["look"]
    assert [line["done"] for line in lines][-1] is True


def test_a_kept_answer_is_sealed_and_its_tenants_own(upstream: Upstream, tmp_path: Path) -> None:
    upstream.answers = [think]
    settings = {"anthropic": {"base_url": upstream.url, "api_key": "k"}}
    routes = [{"match": "*", "to": ["anthropic:claude-opus-4-5"], "retries": 0}]
    with gateway(upstream, settings=settings, routes=routes, store=f"sqlite:///{tmp_path}/g.db") as url:
        _ollama(url, _only("content", "tool_calls"))
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert THOUGHT["thinking"].encode() not in kept
    assert THOUGHT["signature"].encode() not in kept


def cut_off(handler: BaseHTTPRequestHandler, _body: dict[str, Any]) -> None:
    """Think, sign, say half a sentence, and end without an end."""
    about = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-up", "content": [],
             "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 7, "output_tokens": 1}}  # fmt: skip
    events = [
        {"type": "message_start", "message": about},
        {"type": "content_block_start", "index": 0, "content_block": {**THOUGHT, "thinking": "", "signature": ""}},
        {"type": "content_block_delta", "index": 0,
         "delta": {"type": "thinking_delta", "thinking": THOUGHT["thinking"]}},
        {"type": "content_block_delta", "index": 0,
         "delta": {"type": "signature_delta", "signature": THOUGHT["signature"]}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "It is 3,6"}},
    ]  # fmt: skip
    lines = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]
    send_bytes(handler, 200, "text/event-stream", "".join(lines).encode())


def test_the_state_of_an_answer_that_was_cut_is_not_given_back(upstream: Upstream, tmp_path: Path) -> None:
    upstream.answers = [cut_off, think]
    settings = {"anthropic": {"base_url": upstream.url, "api_key": "k"}}
    routes = [{"match": "*", "to": ["anthropic:claude-opus-4-5"], "retries": 0}]
    body = {"model": "qwen-x", "messages": [QUESTION]}
    with gateway(upstream, settings=settings, routes=routes, store=f"sqlite:///{tmp_path}/g.db") as url:
        first = httpx.post(f"{url}/api/chat", json=body)
        assert "3,6" in first.text
        assert "error" in first.text
        echoed = {"role": "assistant", "content": "It is 3,6"}
        _post(url, "/api/chat", {**body, "stream": False, "messages": [QUESTION, echoed, QUESTION]})

    [answer] = [message for message in upstream.requests[1][1]["messages"] if message["role"] == "assistant"]
    assert json.dumps(answer).count("It is 3,6") == 1
    assert THOUGHT["signature"] not in json.dumps(answer)


def _speak(handler: BaseHTTPRequestHandler, _body: dict[str, Any]) -> None:
    """Answer as the Responses API does (https://platform.openai.com/docs/api-reference/responses-streaming)."""
    text = {"type": "output_text", "text": "3,643 km.", "annotations": []}
    item = {"type": "message", "id": "msg_68a1", "role": "assistant", "status": "completed", "content": [text]}
    about = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "up",
        "status": "in_progress",
        "output": [],
    }
    usage = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": about},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        {
            "type": "response.output_text.delta", "item_id": "msg_68a1", "output_index": 0, "content_index": 0,
            "delta": text["text"],
        },
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {
            "type": "response.completed",
            "response": {**about, "status": "completed", "output": [item], "usage": usage},
        },
    ]  # fmt: skip
    lines = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]
    send_bytes(handler, 200, "text/event-stream", "".join(lines).encode())


def test_a_plain_text_has_no_signature_and_its_items_id_comes_back(upstream: Upstream, tmp_path: Path) -> None:
    """Clients of generateContent read a signed text as another kind of content than the text before it."""
    upstream.answers = [_speak]
    settings = {"openai": {"base_url": f"{upstream.url}/v1", "api_key": "k"}}
    routes = [{"match": "*", "to": ["openai:gpt-5.1"], "retries": 0}]
    question = {"role": "user", "parts": [{"text": QUESTION["content"]}]}
    path = "/v1beta/models/gemini-x:streamGenerateContent?alt=sse"
    with gateway(upstream, settings=settings, routes=routes, store=f"sqlite:///{tmp_path}/g.db") as url:
        lines = httpx.post(url + path, json={"contents": [question]}).text.splitlines()
        chunks = [json.loads(line.removeprefix("data: ")) for line in lines if line]
        parts = [part for chunk in chunks for part in chunk["candidates"][0].get("content", {}).get("parts", ())]
        assert "".join([part["text"] for part in parts]) == "3,643 km."
        assert [part for part in parts if "thoughtSignature" in part] == []
        answer = {"role": "model", "parts": parts}
        again = {"contents": [question, answer, {"role": "user", "parts": [{"text": "And Europa?"}]}]}
        httpx.post(url + path, json=again)

    items = upstream.requests[-1][1]["input"]
    assert [item["id"] for item in items if item.get("role") == "assistant"] == ["msg_68a1"]
