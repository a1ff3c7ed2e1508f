"""Blank text goes to the services that took it in recorded requests, and to no other, on every host and API.

Recorded with status 200: google-generate/e0ba3352ee319d53 (user), 54f5cba797690b4f (model);
openai-chat/39a6242106f235cb (user), 190b510074015703 (assistant); openai-responses/2c10622ed1f4b497 (user),
6112a3e5c1249281 (assistant). A space beside calls:
xai-chat/9425a76721be9b04, zai-chat/67d6e79bad846774, openrouter-chat/88deec32b90a8d0a (Grok), 89c7de76aeb10589 (GLM).
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlingua._plugins.registry import Registry
from interlingua.plugins import build_request
from interlingua.types import Message, RequestOptions, TextBlock, ToolUseBlock, assistant, system, tool_result, user
from tests.support.adapter import READ
from tests.support.leaves import flat

REGISTRY = Registry()
CALL = ToolUseBlock(id="tu0000001", name="read_file", input={"path": "a"})
ANYWHERE = [("google", "gemini-3-flash-preview"), ("vertex", "gemini-3-flash-preview"), ("openai", "gpt-5-mini"),
            ("azure", "gpt-4o")]  # fmt: skip
BESIDE_CALLS = [("xai", "grok-3-mini"), ("zai", "glm-4.5"), ("openrouter", "x-ai/grok-3-mini"),
                ("openrouter", "z-ai/glm-4.5")]  # fmt: skip
NOWHERE = [("anthropic", "claude-opus-5"), ("azure", "claude-opus-5"), ("vertex", "claude-opus-5"),
           ("bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0"), ("openrouter", "anthropic/claude-sonnet-4.5"),
           ("openrouter", "openai/gpt-4o"), ("groq", "qwen/qwen3-32b"), ("mistral", "mistral-small-latest"),
           ("cohere", "command-a-03-2025"), ("deepseek", "deepseek-chat"), ("ollama", "qwen3")]  # fmt: skip
pytestmark = pytest.mark.usefixtures("quiet")


def blanks(key: str, model: str, messages: list[Message], **options: Any) -> list[str]:
    """Return the texts of a request that nobody can see, and check that each that was left out has a row."""
    request = build_request(REGISTRY.provider(key), messages, [READ], RequestOptions(model=model, **options))
    found = [
        leaf
        for _, leaf in flat("text", json.loads(request.body))
        if isinstance(leaf, str) and leaf and not leaf.strip()
    ]
    rows = [row for row in request.losses if "empty text" in row.reason]
    assert len(found) + len(rows) == sum(
        type(block) is TextBlock and not block.text.strip() for message in messages for block in message.content
    )
    return found


def beside_text() -> list[Message]:
    return [user([TextBlock(text=" "), TextBlock(text="q")]), assistant("\n"), user("n")]


def beside_calls() -> list[Message]:
    return [user("q"), assistant([TextBlock(text="\n\n"), CALL]), tool_result(CALL, "t")]


@pytest.mark.parametrize(("key", "model"), ANYWHERE)
def test_services_that_take_blank_text_get_it(key: str, model: str) -> None:
    assert blanks(key, model, beside_text()) == [" ", "\n"]
    assert blanks(key, model, beside_calls()) == ["\n\n"]


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_openai_gets_it_on_both_apis(api: str) -> None:
    assert blanks("openai", "gpt-5-mini", beside_text(), api=api) == [" ", "\n"]


@pytest.mark.parametrize(("key", "model"), BESIDE_CALLS)
def test_services_that_take_blank_text_beside_calls_get_it_there(key: str, model: str) -> None:
    assert blanks(key, model, beside_text()) == []
    assert blanks(key, model, beside_calls()) == ["\n\n"]


@pytest.mark.parametrize(("key", "model"), NOWHERE)
def test_other_services_get_none(key: str, model: str) -> None:
    assert blanks(key, model, beside_text()) == []
    assert blanks(key, model, beside_calls()) == []


@pytest.mark.parametrize(("key", "model"), ANYWHERE)
def test_a_blank_system_message_is_left_out(key: str, model: str) -> None:
    assert blanks(key, model, [system(" "), user("q")]) == []
