"""The launcher itself: the server comes up, answers on all three wires, and is gone afterwards."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.terminal import limited

from . import files
from .server import MODEL, LocalServer

pytestmark = pytest.mark.skipif(files.missing() is not None, reason=files.missing() or "")
QUESTION = {"role": "user", "content": "Say hello."}


@pytest.fixture(scope="module")
def server() -> Iterator[LocalServer]:
    with LocalServer() as running:
        yield running


def test_health_is_ok_once_the_block_is_entered(server: LocalServer) -> None:
    assert _call(f"{server.url}/health") == {"status": "ok"}


def test_a_chat_completion_is_answered_by_the_model(server: LocalServer) -> None:
    answer = _call(f"{server.url}/v1/chat/completions", {"messages": [QUESTION], "max_tokens": 8})
    assert answer["model"] == MODEL
    assert answer["choices"][0]["message"]["role"] == "assistant"
    assert answer["choices"][0]["message"]["content"]
    assert 0 < answer["usage"]["completion_tokens"] <= 8


def test_the_server_is_gone_after_the_block() -> None:
    with LocalServer() as running:
        url = running.url
    with pytest.raises(urllib.error.URLError):
        _call(f"{url}/health")


def test_the_server_ends_when_its_parent_is_killed() -> None:
    parent = subprocess.Popen(
        [sys.executable, "-m", "tests.tools.local_server"], stdout=subprocess.PIPE, cwd=files.CHECKOUT
    )
    with parent, limited(parent):
        assert parent.stdout
        url = parent.stdout.readline().decode().strip()
        assert _call(f"{url}/health") == {"status": "ok"}
        parent.kill()
    for _ in range(100):
        try:
            _call(f"{url}/health")
        except OSError:
            return
        time.sleep(0.1)
    pytest.fail("the server outlived its parent")


@pytest.mark.skipif(files.named_program() is None, reason=f"{files.SERVER_VARIABLE} names no llama-server program")
def test_a_router_refuses_a_model_it_does_not_have() -> None:
    body = {"model": "no-such-model", "messages": [QUESTION], "max_tokens": 1}
    with LocalServer(router=True) as router, pytest.raises(urllib.error.HTTPError) as refused:
        _call(f"{router.url}/v1/chat/completions", body)
    assert refused.value.code == 400
    assert "no-such-model" in json.load(refused.value)["error"]["message"]


def test_a_wrong_key_is_refused() -> None:
    with LocalServer(api_key="right") as locked, pytest.raises(urllib.error.HTTPError) as refused:
        _call(f"{locked.url}/v1/chat/completions", {"messages": [QUESTION], "max_tokens": 1})
    assert refused.value.code == 401
    refused.value.close()


def _call(url: str, body: dict[str, Any] | None = None) -> Any:
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(url, data, {"content-type": "application/json"})  # noqa: S310 (loopback only)
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
        return json.load(answer)
