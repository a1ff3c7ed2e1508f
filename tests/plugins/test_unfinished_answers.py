"""A whole answer whose service names no reason for its end is PARTIAL on every wire, and is served as unfinished."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlingua._plugins.registry import Registry
from interlingua.plugins import RequestContext, WireResponse
from interlingua.types import MessageStatus, Origin
from interlingua_serving import ServeContext, find_serving_plugin

REGISTRY = Registry()
# the smallest answers of each service's SDK types, with their reason taken out
ANSWERS: dict[tuple[str, str], dict[str, Any]] = {
    ("openai", "chat"): {"choices": [{"index": 0, "message": {"content": "Half"}, "finish_reason": None}]},
    ("openrouter", "chat"): {"choices": [{"index": 0, "message": {"content": "Half"}}]},
    ("mistral", "chat"): {"choices": [{"index": 0, "message": {"content": "Half"}, "finish_reason": None}]},
    ("zai", "chat"): {"choices": [{"index": 0, "message": {"content": "Half"}}]},
    ("anthropic", "messages"): {
        "type": "message", "role": "assistant", "content": [{"type": "text", "text": "Half"}], "stop_reason": None,
    },
    ("vertex", "messages"): {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "Half"}]},
    ("bedrock", "converse"): {"output": {"message": {"role": "assistant", "content": [{"text": "Half"}]}}},
    ("cohere", "chat"): {"message": {"role": "assistant", "content": [{"type": "text", "text": "Half"}]}},
    ("ollama", "native"): {"message": {"role": "assistant", "content": "Half"}, "done": False},
}  # fmt: skip


def read(key: str, api: str, body: dict[str, Any]) -> Any:
    """Read an answer with the provider's plugin."""
    context = RequestContext(origin=Origin(key, api, "a-model"), message_id="01K000000000000000000000AA")
    answer = WireResponse(body=json.dumps(body).encode())
    return REGISTRY.provider(key).from_wire_response(answer, context)


@pytest.mark.parametrize(("key", "api"), ANSWERS)
def test_an_answer_without_a_finish_reason_is_not_complete(key: str, api: str) -> None:
    message = read(key, api, ANSWERS[key, api])

    assert message.text == "Half"
    assert (message.metadata.status, message.metadata.stop_reason) == (MessageStatus.PARTIAL, None)


@pytest.mark.parametrize(
    ("key", "api", "said"),
    [
        ("openai", "chat", lambda body: body["choices"][0]["finish_reason"]),
        ("openai", "responses", lambda body: body["status"].replace("incomplete", "") or None),
        ("anthropic", "messages", lambda body: body["stop_reason"]),
        ("google", "generate", lambda body: body["candidates"][0].get("finishReason")),
    ],
)
def test_it_is_not_served_as_a_finished_one(key: str, api: str, said: Any) -> None:
    half = read("openrouter", "chat", ANSWERS["openrouter", "chat"])
    context = ServeContext(provider=key, api=api, model="a-model", origin=half.metadata.origin)
    written = find_serving_plugin(REGISTRY, key).to_wire_response(half, context)

    assert b"Half" in written.body
    assert said(json.loads(written.body)) is None
