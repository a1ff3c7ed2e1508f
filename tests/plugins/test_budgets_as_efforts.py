"""A thinking budget becomes the nearest effort where a model takes efforts only: older agents send budgets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlingua import Client
from interlingua.plugins import Registry
from interlingua_cli.lint import lint_request

# model, API, where its request has the effort, by the API's reference
EFFORTS = [
    ("openai:gpt-5.1", "responses", ("reasoning", "effort")),
    ("openai:gpt-5.1", "chat", ("reasoning_effort",)),
    ("azure:gpt-5.1", "responses", ("reasoning", "effort")),
    ("anthropic:claude-opus-5-5", None, ("output_config", "effort")),
    ("google:gemini-3-pro-preview", None, ("generationConfig", "thinkingConfig", "thinkingLevel")),
    ("groq:openai/gpt-oss-120b", None, ("reasoning_effort",)),
    ("bedrock:openai.gpt-oss-120b-1:0", None, ("additionalModelRequestFields", "reasoning_effort")),
]
BUDGETS = {31_999: "high", 10_000: "medium", 4_000: "low"}  # Claude Code's: ultrathink, megathink, think
SETTINGS = {"azure": {"base_url": "https://example.openai.azure.com"}}


def _request(model: str, api: str | None, **options: Any) -> Any:
    provider = model.partition(":")[0]
    settings = {provider: {**SETTINGS.get(provider, {}), "api_key": "k"} | ({"api": api} if api else {})}
    with Client(registry=Registry(), settings=settings, environ={"AWS_REGION": "us-east-1"}) as client:
        return client.build_request("Hi", model=model, max_tokens=40_000, **options)


def _at(body: Any, path: tuple[str, ...]) -> str:
    for name in path:
        body = body[name]
    return str(body).lower()


@pytest.mark.parametrize(("model", "api", "path"), EFFORTS, ids=[f"{model}-{api}" for model, api, _ in EFFORTS])
@pytest.mark.parametrize(("budget", "effort"), BUDGETS.items())
def test_a_budget_is_the_nearest_effort(
    model: str, api: str | None, path: tuple[str, ...], budget: int, effort: str
) -> None:
    request = _request(model, api, thinking=True, thinking_budget=budget)
    assert _at(json.loads(request.body), path) == effort
    assert [row.verdict for row in request.losses if row.path == "options.thinking_budget"] == ["rewritten"]


@pytest.mark.parametrize(("model", "api", "path"), EFFORTS, ids=[f"{model}-{api}" for model, api, _ in EFFORTS])
def test_an_effort_beside_a_budget_is_kept(model: str, api: str | None, path: tuple[str, ...]) -> None:
    request = _request(model, api, thinking_budget=31_999, effort="low")
    assert _at(json.loads(request.body), path) == "low"
    assert [row.verdict for row in request.losses if row.path == "options.thinking_budget"] == ["dropped"]


def test_a_model_with_budgets_gets_the_budget() -> None:
    for model in ("anthropic:claude-opus-4-5", "bedrock:anthropic.claude-opus-4-5-20251101-v1:0"):
        body = json.loads(_request(model, None, thinking=True, thinking_budget=5_000).body)
        assert '"budget_tokens": 5000' in json.dumps(body)
    body = json.loads(_request("google:gemini-2.5-flash", None, thinking_budget=5_000).body)
    assert body["generationConfig"]["thinkingConfig"]["thinkingBudget"] == 5_000


OFF = [
    *[f"{key}:{model}" for key in ("anthropic", "azure") for model in ("claude-sonnet-4-5", "claude-opus-5")],
    *("bedrock:anthropic.claude-sonnet-4-5-20250929-v1:0", "openrouter:anthropic/claude-sonnet-4.5"),
    *("google:gemini-2.5-flash", "google:gemini-3-pro-preview", "cohere:command-a-reasoning-08-2025"),
    *("openai:gpt-5.1", "moonshot:kimi-k2.6", "zai:glm-4.6", "ollama:qwen3:8b"),
]


@pytest.mark.parametrize("off", [{"thinking": False}, {"effort": "none"}], ids=str)
@pytest.mark.parametrize("model", OFF)
def test_a_budget_of_thinking_that_is_switched_off_is_not_sent_and_is_a_row(model: str, off: dict[str, Any]) -> None:
    request = _request(model, None, thinking_budget=2222, **off)

    assert b"2222" not in request.body
    assert ("options.thinking_budget", "dropped") in [(loss.path, loss.verdict) for loss in request.losses]
    assert lint_request(Registry().provider(model.partition(":")[0]), request) == ()
