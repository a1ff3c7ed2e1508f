"""Requests in a form that services took, as recorded traffic shows, reach them as they came."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlingua._plugins.registry import Registry
from interlingua.plugins import build_request
from interlingua.types import RequestOptions, user
from tests.serving.compare import written_back

HI = {"role": "user", "content": "Hello."}
ADD = {"type": "function", "function": {"name": "add", "description": "d", "parameters": {"type": "object"}}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
CALLED: list[dict[str, Any]] = [
    HI,
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": "3"},
]
ASKED = {"role": "user", "content": [{"type": "text", "text": "Hello."}]}
THINKING = {"type": "enabled", "budget_tokens": 1024}
pytestmark = pytest.mark.usefixtures("quiet")


def _written(key: str, api: str, body: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    wire = written_back(key, api, "/", {}, body, body["model"])
    return json.loads(wire.body), [loss.reason for loss in wire.losses]


@pytest.mark.parametrize("sampling", [{"temperature": 1}, {"top_p": 0.95}])
def test_sampling_that_claude_takes_while_it_thinks(sampling: dict[str, float]) -> None:
    """16 recorded requests, each a 200."""
    body = {"model": "claude-opus-4-1", "max_tokens": 4096, "messages": [ASKED], "thinking": THINKING, **sampling}

    assert _written("anthropic", "messages", body) == (body, [])


@pytest.mark.parametrize(
    ("key", "model"), [("bedrock", "anthropic.claude-opus-4-1-20250805-v1:0"), ("vertex", "claude-opus-4-1")]
)
@pytest.mark.parametrize(
    ("sampling", "lost"),
    [({"temperature": 1.0}, []), ({"top_p": 0.95}, []), ({"temperature": 0.7}, ["options.temperature"])],
)
def test_the_other_hosts_of_claude_send_it_too(key: str, model: str, sampling: dict[str, Any], lost: list[str]) -> None:
    options = RequestOptions(model=model, max_tokens=4096, thinking_budget=1024, **sampling)
    request = build_request(Registry().provider(key), [user("Hello.")], [], options)
    sent = json.loads(request.body)
    config = sent.get("inferenceConfig", sent)

    assert [loss.path for loss in request.losses] == lost
    assert [config.get(name) for name in ("temperature", "top_p", "topP") if name in config] == (
        [] if lost else [*sampling.values()]
    )


@pytest.mark.parametrize("effort", ["low", "medium", "high"])
def test_efforts_that_deepseek_takes(effort: str) -> None:
    body = {"model": "deepseek-reasoner", "messages": [HI], "reasoning_effort": effort}

    assert _written("deepseek", "chat", body) == (body, [])


def test_a_deepseek_model_that_does_not_think_gets_no_empty_reasoning() -> None:
    """6 recorded requests, each a 200."""
    called = _written("deepseek", "chat", {"model": "deepseek-chat", "messages": CALLED, "tools": [ADD]})[0]
    thinking = _written("deepseek", "chat", {"model": "deepseek-v4-pro", "messages": CALLED, "tools": [ADD]})[0]

    assert "reasoning_content" not in called["messages"][1]
    assert thinking["messages"][1]["reasoning_content"] == ""  # demanded: recorded 400


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({}, ({"type": "enabled"}, False)),
        ({"thinking": {"type": "disabled"}}, ({"type": "disabled"}, False)),
        ({"thinking": {"type": "enabled", "clear_thinking": False}, "tool_stream": True},
         ({"type": "enabled", "clear_thinking": False}, True)),
    ],
)  # fmt: skip
def test_a_caller_of_zai_gets_the_services_defaults(given: dict[str, Any], sent: tuple[Any, bool]) -> None:
    """Earlier reasoning is cleared and arguments come whole unless a request says otherwise."""
    body = {"model": "glm-4.7", "messages": CALLED, "tools": [ADD], "stream": True, **given}
    found, _ = _written("zai", "chat", body)

    assert (found["thinking"], found["tool_stream"]) == sent


def test_a_cache_marker_of_a_call_is_reported() -> None:
    """4 recorded requests to OpenRouter have one; nothing documents an effect."""
    calling = {"role": "assistant", "content": "", "tool_calls": [{**CALL, "cache_control": {"type": "ephemeral"}}]}
    body = {"model": "anthropic/claude-haiku-4.5", "messages": [HI, calling, CALLED[2]], "tools": [ADD]}
    found, reasons = _written("openrouter", "chat", body)

    assert "cache_control" not in json.dumps(found)
    assert reasons == ["a call takes no cache marker on this wire"]
