"""A model on a server of one's own costs 0 and says why; on a service that sells it, it does not."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from interlingua._catalogue import ModelInfo
from interlingua._http import state as module
from interlingua._http.client import Client
from interlingua._http.state import ClientState
from interlingua._plugins.registry import Registry
from interlingua._pricing import SELF_HOSTED
from interlingua.plugins import ConnectionSettings
from tests.support.fake_provider import Reply, served

REGISTRY = Registry()
CHAT = {
    "id": "c", "object": "chat.completion", "model": "m", "created": 1,
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hi"}}],
    "usage": {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9},
}  # fmt: skip
OLLAMA = {
    "model": "m", "created_at": "2026-11-22T00:00:00Z", "message": {"role": "assistant", "content": "hi"},
    "done": True, "done_reason": "stop", "prompt_eval_count": 7, "eval_count": 2,
}  # fmt: skip
BODIES = {"ollama": OLLAMA, "llamacpp": CHAT, "lmstudio": CHAT, "vllm": CHAT, "compatible": CHAT}


@pytest.mark.parametrize(
    ("key", "model", "costs"),
    [
        ("ollama", "llama-3.3-70b", True),
        ("ollama", "qwen3:8b", True),
        ("ollama", "gpt-oss:120b-cloud", False),  # a local server passes these on: https://docs.ollama.com/cloud
        ("ollama", "glm-4.6:cloud", False),
        ("llamacpp", "any", True),
        ("lmstudio", "any/model", True),
        ("vllm", "org/any", True),
        ("compatible", "any", False),  # anybody's server
    ],
)
def test_the_cost_of_an_answer(key: str, model: str, costs: bool) -> None:
    with served(Reply(body=(json.dumps(BODIES[key]).encode(),))) as server:
        settings = {key: {"base_url": server.url, "api_key": "k"}}
        with Client(f"{key}:{model}", registry=REGISTRY, environ={}, settings=settings) as client:
            usage = client.send("hi").metadata.usage

    assert usage is not None
    if costs:
        assert (usage.cost_usd, usage.pricing_version) == (Decimal(0), SELF_HOSTED)
        assert usage.cost_note == "runs on your own machines: its tokens have no price"
        assert usage.cost is not None
    else:
        assert (usage.cost_usd, usage.cost_note) == (None, "model not in the catalogue")


def test_only_servers_of_ones_own_say_so() -> None:
    own = {
        provider.key
        for provider in REGISTRY.providers()
        if provider.connection(ConnectionSettings(environ={})).self_hosted
    }
    hosted = REGISTRY.provider("ollama").connection(ConnectionSettings(options={"hosted": True}))

    assert own == {"ollama", "llamacpp", "lmstudio", "vllm"}
    assert hosted.self_hosted == ""


def test_who_asks_while_another_thread_is_finding_out_learns_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    state = ClientState("llamacpp:any", registry=REGISTRY, environ={})
    provider, found = REGISTRY.provider("llamacpp"), []

    def ask_meanwhile(**fields: Any) -> ModelInfo:
        monkeypatch.undo()
        found.append(state.model_info(provider, "any"))
        return ModelInfo(**fields)

    monkeypatch.setattr(module, "ModelInfo", ask_meanwhile)
    found.append(state.model_info(provider, "any"))

    assert [info and info.pricing_version for info in found] == [SELF_HOSTED] * 2
