"""Names and headers of callers are data: no error 500, nothing unescaped at a service, nothing that is not counted.

`INTERLINGUA_FUZZ_COUNT=10000` tries as many of each API.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
from collections import Counter
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import httpx
import pytest

from interlingua_gateway import config_of, create_app
from tests.gateway.apis import APIS, Api
from tests.gateway.conftest import Upstream, new_store, say
from tests.support.loopback import send_bytes

COUNT = int(os.environ.get("INTERLINGUA_FUZZ_COUNT", "150"))
_USUAL = ("gemini-2.5-flash", "claude-opus-4-5", "up-1", "models/", "google:", "llamacpp:", "anthropic:", "-1", ".2")
_JUNK = (
    "nobody:", "..", "/", "//", ".", ":", "?", "#", "%2e", "%2F", "%", "\\", "\r\n", "\n", "\0", "\t", " ", "\u202e",
    "\u2010", "\u0435", "é", "\U0001f600", "*", "[a]", "{model}", "x" * 300, "&", "=", ";", '"', "'", "<b>", "@", "~",
    "+", ",", "(", ")", "-evil",
)  # fmt: skip
_HEADERS = ("x-evil", "x-forwarded-for", "anthropic-beta", "openai-organization", "x-goog-user-project", "traceparent",
            "accept", "accept-encoding", "user-agent", "cookie", "expect", "content-encoding")  # fmt: skip
# what a service may see of a path; a name with slashes (`tunedModels/…`) is several segments of it
_PATH = re.compile(
    r"/v1/messages|/v1/chat/completions|/v1beta(/[\w.~@+=,():%-]+)+:"
    r"(streamGenerateContent\?alt=sse|generateContent)",
    re.ASCII,
)


class Service:
    """A service of three APIs that keeps the heads of its requests."""

    def __init__(self) -> None:
        self.heads: list[tuple[str, str]] = []

    def __call__(self, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        self.heads.append((handler.path, str(handler.headers)))
        if handler.path.startswith("/v1/chat"):
            say("Hello.")(handler, body)
        elif handler.path.startswith("/v1beta"):
            counts = {"promptTokenCount": 7, "candidatesTokenCount": 3}
            candidate = {"content": {"role": "model", "parts": [{"text": "Hello."}]}, "finishReason": "STOP"}
            self._send(handler, {"candidates": [candidate], "usageMetadata": counts})
        else:
            handler.send_error(529)

    def _send(self, handler: BaseHTTPRequestHandler, answer: Any) -> None:
        data = json.dumps(answer).encode()
        if "alt=sse" in handler.path:
            send_bytes(handler, 200, "text/event-stream", b"data: " + data + b"\r\n\r\n")
        else:
            send_bytes(handler, 200, "application/json", data)


@pytest.mark.parametrize("api", APIS, ids=[api.name for api in APIS])
def test_names_and_headers_are_data(upstream: Upstream, tmp_path: Path, api: Api) -> None:
    seed = int(os.environ.get("INTERLINGUA_FUZZ_SEED", random.randrange(2**32)))
    choose, service = random.Random(seed), Service()
    upstream.answers = [service]
    place = f"sqlite:///{tmp_path}/g.db"
    store = new_store(place)
    key, secret = store.add_key("Ann")
    settings = {
        "google": {"base_url": f"{upstream.url}/v1beta", "api_key": "k"},
        "anthropic": {"base_url": upstream.url, "api_key": "k"},
        "llamacpp": {"base_url": f"{upstream.url}/v1"},
    }
    routes = [{"match": "up-*", "to": ["llamacpp:{model}"], "retries": 0}]
    routes += [{"match": f"{name}:*", "to": ["{model}"], "retries": 0} for name in settings]
    routes.append({"match": "*", "to": ["google:{model}"], "retries": 0})
    app = create_app(config_of({"routes": routes, "auth": "keys", "store": place}), settings=settings, environ={})
    found: Counter[int] = Counter()

    def name() -> str:
        pieces = _USUAL if choose.randrange(3) == 0 else (*_USUAL, *_JUNK)
        return "".join(choose.choice(pieces) for _ in range(choose.choice((1, 1, 2, 2, 3, 5))))

    def headers() -> list[tuple[bytes, bytes]]:
        count = choose.randrange(3)
        made = [(choose.choice(_HEADERS), bytes(choose.choices(range(0x20, 0x100), k=20))) for _ in range(count)]
        return [(header.encode(), b"evil" + value.strip()) for header, value in made]

    async def run() -> None:
        sent = {"transport": httpx.ASGITransport(app), "base_url": "http://localhost"}
        async with httpx.AsyncClient(**sent) as caller:
            for _ in range(COUNT):
                asked, path, body = name(), api.path, dict(api.body)
                if "model" in body:
                    body["model"] = asked
                else:
                    path = path.replace("/m:", f"/{quote(asked, safe=choose.choice(('', '/:%')))}:")
                fixed = [(b"content-type", b"application/json"), (b"authorization", b"Bearer " + secret.encode())]
                answer = await caller.post(path, content=json.dumps(body), headers=[*headers(), *fixed])
                found[answer.status_code] += 1
                assert (
                    answer.status_code in (200, 529) or 400 <= answer.status_code < 500 or (answer.status_code == 503)
                ), (seed, asked, answer.status_code, answer.text)
                assert all(value.isascii() and value.isprintable() for value in answer.headers.values()), (seed, asked)
        await app.state.services.close()

    asyncio.run(run())
    print(f"{api.name}: {dict(found)}, asked of services {len(service.heads)}")
    for path, head in service.heads:
        assert _PATH.fullmatch(path), (seed, path)
        assert not {"..", "."} & set(unquote(unquote(path)).split("/")), (seed, path)
        assert "-evil" not in head.lower().replace("x-evil", "") or "user-agent" in head.lower(), (seed, head)
        assert "\nx-evil" not in head.lower(), (seed, head)
    assert found[200] > 0, found
    spent = store.spent(key)
    assert spent.input_tokens == 7 * found[200], (seed, found, spent)
    assert spent.output_tokens == 3 * found[200], (seed, found, spent)
    store.close()
