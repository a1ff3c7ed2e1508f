"""The launcher itself: the server comes up, answers on all three wires, and is gone afterwards.

No adapter is tested here.
Nobody imports this module.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

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


def _call(url: str, body: dict[str, Any] | None = None) -> Any:
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(url, data, {"content-type": "application/json"})  # noqa: S310 (loopback only)
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
        return json.load(answer)
