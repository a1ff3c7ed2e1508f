"""Broken requests get the errors of the API they came for, with nothing of the gateway's inside in them.

`INTERLINGUA_FUZZ_COUNT=10000` tries as many of each route.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
from collections import Counter
from typing import Any

import httpx
import pytest

from interlingua.plugins import Registry
from interlingua_gateway import config_of, create_app
from tests.gateway.apis import APIS, Api, error_message
from tests.gateway.conftest import Upstream

COUNT = int(os.environ.get("INTERLINGUA_FUZZ_COUNT", "150"))
_TOOL = {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}
_MORE: dict[str, dict[str, Any]] = {
    "messages": {
        "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
        "tools": [{"name": "f", "input_schema": _TOOL["parameters"]}],
        "tool_choice": {"type": "auto"},
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "t", "signature": "c2ln"},
                {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": "b"}},
            ]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "r"}]},
        ],
    },
    "chat": {
        "tools": [{"type": "function", "function": _TOOL}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}},
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
            {"role": "assistant", "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            ]},
            {"role": "tool", "tool_call_id": "c", "content": "r"},
        ],
    },
    "responses": {
        "instructions": "s",
        "include": ["reasoning.encrypted_content"],
        "tools": [{"type": "function", **_TOOL}],
        "text": {"format": {"type": "text"}},
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2ln"},
            {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "r"},
        ],
    },
    "generate": {
        "systemInstruction": {"parts": [{"text": "s"}]},
        "tools": [{"functionDeclarations": [_TOOL]}],
        "generationConfig": {"temperature": 1, "thinkingConfig": {"thinkingBudget": 100}},
        "contents": [
            {"role": "user", "parts": [{"text": "Hi"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "c2ln"}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"a": 1}}}]},
        ],
    },
    "interactions": {
        "model": "m",
        "system_instruction": "s",
        "tools": [{"type": "function", **_TOOL}],
        "generation_config": {"temperature": 1, "thinking_level": "low", "tool_choice": "auto"},
        "response_format": {"type": "text", "mime_type": "application/json", "schema": {"type": "object"}},
        "input": [
            {"type": "user_input", "content": [{"type": "text", "text": "Hi"}]},
            {"type": "thought", "signature": "c2ln", "summary": [{"type": "text", "text": "t"}]},
            {"type": "function_call", "id": "c", "name": "f", "arguments": {}},
            {"type": "function_result", "call_id": "c", "result": {"a": 1}},
        ],
    },
    "ollama": {
        "options": {"temperature": 1},
        "tools": [{"type": "function", "function": _TOOL}],
        "messages": [
            {"role": "user", "content": "Hi", "images": []},
            {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]},
            {"role": "tool", "tool_name": "f", "content": "r"},
        ],
    },
}  # fmt: skip
_JUNK: tuple[Any, ...] = (
    None, True, -1, 0, 1e308, 2**63, "", "x", "\ud800", "\x00", "http://127.0.0.1/", "data:image/png;base64,!", [], {},
    [None], [[]], {"a": None}, {"type": "x"}, [{"type": "text"}], "nobody:model", "llamacpp:", ":",
)  # fmt: skip
_PROVIDERS = tuple(Registry().found())
_INSIDE = re.compile(
    r"Traceback|File \"|/site-packages/|\.py\b|interlingua|pip install|<class |object at 0x|NoneType|'dict'|\bdict\b|"
    r"\b[A-Z]\w+(Error|Exception)\b|\b(Block|RequestOptions|FrozenDict|attrs|cattrs)\b"
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, inner in items for place in _places(inner, (*path, key)))]


def _break(value: Any, choose: random.Random) -> Any:
    """Return the value with something replaced, dropped, doubled or renamed."""
    value = json.loads(json.dumps(value))
    for _ in range(choose.choice((1, 1, 1, 2, 4))):
        path = choose.choice(_places(value)[1:] or [()])
        if not path:
            return choose.choice(_JUNK)
        holder = value
        for key in path[:-1]:
            holder = holder[key]
        way = choose.randrange(5)
        if way == 0:
            del holder[path[-1]]
        elif way == 1 and isinstance(holder, list):
            holder.append(json.loads(json.dumps(holder[path[-1]])))
        elif way == 2 and isinstance(holder, dict):
            holder[choose.choice(("x", "", "type", "role"))] = holder.pop(path[-1])
        else:
            holder[path[-1]] = json.loads(json.dumps(choose.choice(_JUNK)))
    return value


def _body(api: Api, choose: random.Random) -> bytes:
    base = {**api.body, **choose.choice(({}, _MORE[api.name]))}
    if "stream" in base and choose.randrange(2):
        base["stream"] = False
    data = json.dumps(_break(base, choose)).encode()
    way = choose.randrange(12)
    if way == 0:
        return data[: choose.randrange(len(data))]
    if way == 1:
        at = choose.randrange(len(data))
        return data[:at] + choose.randbytes(choose.randrange(1, 4)) + data[at + 1 :]
    if way == 2:
        return b"[" * choose.choice((1, 500, 100_000))
    return data


def _check(api: Api, answer: httpx.Response, sent: bytes) -> None:
    message = error_message(api, answer.json())
    known = sent.decode("utf-8", "replace")
    for word in _INSIDE.finditer(message):
        assert word.group() in known, message
    listed = [key for key in _PROVIDERS if re.search(rf"\b{re.escape(key)}\b", message) and key not in known]
    assert len(listed) < 3, message
    assert answer.headers["x-interlingua-request-id"]


@pytest.mark.parametrize("api", APIS, ids=[api.name for api in APIS])
def test_broken_requests_get_errors_of_their_api(upstream: Upstream, api: Api) -> None:
    seed = int(os.environ.get("INTERLINGUA_FUZZ_SEED", random.randrange(2**32)))
    choose = random.Random(seed)
    found: Counter[int] = Counter()

    async def run() -> None:
        routes = [
            *({"match": name, "to": ["{model}"], "retries": 0} for name in ("nobody:*", "llamacpp:", ":")),
            {"match": "x", "to": ["nobody:x"]},
            {"match": "*", "to": ["llamacpp:up-1"], "retries": 0},
        ]
        settings = {"llamacpp": {"base_url": f"{upstream.url}/v1"}}
        app = create_app(config_of({"routes": routes}), settings=settings, environ={})
        sent = {"transport": httpx.ASGITransport(app), "headers": {"content-type": "application/json"}}
        async with httpx.AsyncClient(**sent, base_url="http://localhost") as caller:
            for _ in range(COUNT):
                body = _body(api, choose)
                answer = await caller.post(api.path, content=body)
                found[answer.status_code] += 1
                if answer.status_code != 200:
                    assert 400 <= answer.status_code < 500, (seed, answer.text, body[:2_000])
                    _check(api, answer, body)

    asyncio.run(run())
    print(f"{api.name}: {dict(found)}")
    assert sum(found[status] for status in found if status >= 400) > COUNT / 10, found


@pytest.mark.parametrize("api", APIS, ids=[api.name for api in APIS])
@pytest.mark.parametrize("name", ["nobody:model", "llamacpp:", "x:y:z"])
def test_a_model_of_no_provider_is_not_found(api: Api, name: str) -> None:
    async def ask() -> httpx.Response:
        app = create_app(environ={})
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as caller:
            path = api.path.replace("/m:", f"/{name}:")
            return await caller.post(path, json={**api.body, **({"model": name} if "model" in api.body else {})})

    answer = asyncio.run(ask())
    assert answer.status_code == 404
    assert name in error_message(api, answer.json())
    _check(api, answer, name.encode())
