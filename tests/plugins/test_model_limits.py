"""Limits of single models and services: a value beyond them is fitted with a row, or refused before it is sent.

The limits are from the services' documentation and from reported 400s, which the rule of each linter cites.
"""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest

from interlingua._plugins.registry import Registry
from interlingua.errors import CapabilityError
from interlingua.plugins import WireRequest, build_request
from interlingua.types import (
    CacheHint,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    MediaSource,
    RequestOptions,
    TextBlock,
    ToolDefinition,
    user,
)
from interlingua_cli.lint import lint_request
from tests.support.adapter import READ

REGISTRY = Registry()
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
OF_128 = ["openai:gpt-5-mini", "azure:gpt-5-mini", "groq:llama-3.3-70b", "deepseek:deepseek-chat"]
CLAUDES = {"anthropic": "claude-sonnet-4-5", "bedrock": "anthropic.claude-sonnet-4-5-20250929-v1:0"}
pytestmark = pytest.mark.usefixtures("quiet")


def write(model: str, content: list[ContentBlock] | str = "q", *tools: ToolDefinition, **options: Any) -> WireRequest:
    key, _, name = model.partition(":")
    return build_request(REGISTRY.provider(key), [user(content)], tools, RequestOptions(model=name, **options))


def rows(request: WireRequest) -> list[tuple[str, str]]:
    return [(loss.path, loss.verdict) for loss in request.losses]


def clean(model: str, request: WireRequest) -> bool:
    return lint_request(REGISTRY.provider(model.partition(":")[0]), request) == ()


@pytest.mark.parametrize(
    ("model", "asked", "sent"),
    [
        ("gemini-2.5-flash", 32_000, 24_576),
        ("gemini-2.5-flash", -1, -1),
        ("gemini-2.5-flash-lite", 128, 512),
        ("gemini-2.5-pro", 64, 128),
        ("gemini-2.5-pro", 40_000, 32_768),
        ("gemini-2.5-pro", 30_000, 30_000),
    ],
)
@pytest.mark.parametrize("key", ["google", "vertex"])
def test_geminis_thinking_budget_is_fitted(key: str, model: str, asked: int, sent: int) -> None:
    request = write(f"{key}:{model}", thinking_budget=asked)

    assert json.loads(request.body)["generationConfig"]["thinkingConfig"]["thinkingBudget"] == sent
    assert rows(request) == ([] if asked == sent else [("options.thinking_budget", "rewritten")])
    assert clean(f"{key}:{model}", request)


@pytest.mark.parametrize("model", ["kimi-k2.5", "kimi-k2.6", "kimi-k2.7-code"])
def test_kimis_temperature_is_not_sent(model: str) -> None:
    request = write(f"moonshot:{model}", temperature=0.3)

    assert "temperature" not in json.loads(request.body)
    assert rows(request) == [("options.temperature", "dropped")]


@pytest.mark.parametrize(
    "model", ["openai:gpt-5-mini", "azure:gpt-5-mini", "groq:llama-3.3-70b", "deepseek:deepseek-chat"]
)
def test_more_tools_than_the_service_takes_are_refused_before_sending(model: str) -> None:
    tools = [attrs.evolve(READ, name=f"tool_{number}") for number in range(129)]
    with pytest.raises(CapabilityError, match="takes 128 in one request"):
        write(model, "q", *tools, api="chat")
    request = write(model, "q", *tools[:128], api="chat")
    assert clean(model, request)


@pytest.mark.parametrize("key", ["anthropic", "vertex", "azure"])
def test_a_user_id_that_is_too_long_is_left_out(key: str) -> None:
    request = write(f"{key}:claude-sonnet-4-5", user_id="u" * 257)

    assert "metadata" not in json.loads(request.body)
    assert rows(request) == [("options.user_id", "dropped")]
    assert clean(f"{key}:claude-sonnet-4-5", write(f"{key}:claude-sonnet-4-5", user_id="u" * 256))


def document(*, cite: bool, title: str) -> DocumentBlock:
    source = MediaSource(kind="base64", data="SGVsbG8=")
    return DocumentBlock(source=source, media_type="text/plain", cite=cite, title=title)


@pytest.mark.parametrize("key", CLAUDES)
def test_citations_are_on_all_documents_or_on_none(key: str) -> None:
    question = [document(cite=True, title="a"), document(cite=False, title="b"), TextBlock(text="q")]
    request = write(f"{key}:{CLAUDES[key]}", question)

    assert request.body.count(b'"enabled":true') == 2
    assert rows(request) == [("messages[0]", "rewritten")]
    assert clean(f"{key}:{CLAUDES[key]}", request)


@pytest.mark.parametrize("key", CLAUDES)
def test_citations_are_off_beside_an_answers_schema(key: str) -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    question = [document(cite=True, title="a"), TextBlock(text="q")]
    request = write(f"{key}:{CLAUDES[key]}", question, response_schema=schema)

    assert b'"enabled":true' not in request.body
    assert ("messages[0]", "rewritten") in rows(request)
    assert clean(f"{key}:{CLAUDES[key]}", request)


def test_a_cache_hint_on_an_image_goes_to_openrouter_as_a_row() -> None:
    image = ImageBlock(source=MediaSource(kind="base64", data=PNG), media_type="image/png", cache=CacheHint())
    request = write("openrouter:anthropic/claude-sonnet-4.5", [TextBlock(text="q", cache=CacheHint()), image])
    parts = json.loads(request.body)["messages"][0]["content"]

    assert [part["type"] for part in parts if "cache_control" in part] == ["text"]
    assert rows(request) == [("messages[0].content[1]", "rewritten")]
    assert clean("openrouter:m", request)


def test_a_schema_with_true_in_it_is_written_for_bedrock() -> None:
    schema = {"type": "object", "properties": {"any": True, "one": {"anyOf": [True, {"type": "null"}]}}}
    request = write(f"bedrock:{CLAUDES['bedrock']}", response_schema=schema)
    written = json.loads(request.body)["outputConfig"]["textFormat"]["structure"]["jsonSchema"]["schema"]

    assert json.loads(written)["properties"] == schema["properties"]


def test_too_many_documents_in_a_message_are_refused_on_bedrock() -> None:
    documents = [document(cite=False, title=f"d{number}") for number in range(6)]
    with pytest.raises(CapabilityError, match="6 documents"):
        write(f"bedrock:{CLAUDES['bedrock']}", [*documents, TextBlock(text="q")])
    assert write(f"bedrock:{CLAUDES['bedrock']}", [*documents[:5], TextBlock(text="q")]).body


@pytest.mark.parametrize(("model", "most"), [("deepseek:deepseek-chat", 16), ("openrouter:openai/gpt-4o", 4)])
def test_more_stop_sequences_than_the_service_takes_are_left_out(model: str, most: int) -> None:
    request = write(model, stop=[f"s{number}" for number in range(20)])
    assert len(json.loads(request.body)["stop"]) == most
    assert [loss.path for loss in request.losses] == ["options.stop"]
