"""What a service bills beside plain tokens is counted, whole and streamed; it is in the cost, or the note says so.

Prices are those of the services' lists: Anthropic and OpenAI 10 USD per thousand web searches, OpenAI 2.50 per thousand
file searches (https://platform.claude.com/docs/en/pricing, https://platform.openai.com/docs/pricing), Google 14 USD per
thousand queries and, before Gemini 3, 35 per thousand grounded prompts; 30 USD per million tokens of image
(https://ai.google.dev/gemini-api/docs/pricing).
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from interlingua._pricing import cost_of
from interlingua.types.messages import Usage
from tests.support.corpus import Corpus
from tests.support.driving import context, provider, streamed, whole

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
TEXT = [{"type": "text", "text": "Hi."}]
CLAUDE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": TEXT,
    "stop_reason": "end_turn",
}
SAID = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": []}
CHAT = {
    "id": "1",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hi."}}],
}
GROUNDED = {"content": {"role": "model", "parts": [{"text": "Hi."}]}, "finishReason": "STOP"}


def _response(*items: dict[str, Any]) -> dict[str, Any]:
    usage = {"input_tokens": 1000, "output_tokens": 100}
    return {"id": "resp_1", "object": "response", "status": "completed", "output": [*items, SAID], "usage": usage}


def _chat(**usage: Any) -> dict[str, Any]:
    return {**CHAT, "usage": {"prompt_tokens": 1000, "completion_tokens": 100, **usage}}


def _gemini(queries: list[str], **usage: Any) -> dict[str, Any]:
    grounded = {**GROUNDED, "groundingMetadata": {"webSearchQueries": queries}} if queries else GROUNDED
    return {
        "candidates": [grounded],
        "usageMetadata": {"promptTokenCount": 1000, "candidatesTokenCount": 100, "totalTokenCount": 1100, **usage},
    }


def _served(name: str, number: int) -> dict[str, Any]:
    return {"type": "server_tool_use", "id": f"srvtoolu_{number}", "name": name, "input": {}}


def _searched(action: str, number: int) -> dict[str, Any]:
    return {"type": "web_search_call", "id": f"ws_{number}", "status": "completed", "action": {"type": action}}


# provider, API, model, body, what is counted, what it costs (None: no price is known)
CASES: dict[str, tuple[str, str, str, dict[str, Any], dict[str, int], str | None]] = {
    "claude searches": (
        "anthropic", "messages", "claude-sonnet-4-5",
        {**CLAUDE, "usage": {
            "input_tokens": 1000, "output_tokens": 100,
            "server_tool_use": {"web_search_requests": 3, "web_fetch_requests": 1},
        }},
        {"web_search": 3}, "0.03",
    ),
    "claude runs code": (
        "anthropic", "messages", "claude-sonnet-4-5",
        {**CLAUDE, "content": [_served("bash_code_execution", 1), _served("text_editor_code_execution", 2), *TEXT],
         "usage": {"input_tokens": 1000, "output_tokens": 100}},
        {"code_execution": 2}, None,
    ),
    "claude runs code beside a search": (
        "anthropic", "messages", "claude-sonnet-4-5",
        {**CLAUDE, "content": [_served("web_search", 1), _served("code_execution", 2), *TEXT],
         "usage": {"input_tokens": 1000, "output_tokens": 100, "server_tool_use": {"web_search_requests": 1}}},
        {"web_search": 1}, "0.01",
    ),
    "gpt searches": (
        "openai", "responses", "gpt-5.2",
        _response(_searched("search", 1), _searched("open_page", 2), _searched("search", 3)),
        {"web_search": 2}, "0.02",
    ),
    "gpt searches files": (
        "openai", "responses", "gpt-5.2",
        _response({"type": "file_search_call", "id": "fs_1", "status": "completed", "queries": ["a"]}),
        {"file_search": 1}, "0.0025",
    ),
    "gpt runs code": (
        "openai", "responses", "gpt-5.2",
        _response({"type": "code_interpreter_call", "id": "ci_1", "status": "completed", "container_id": "c"}),
        {"code_interpreter": 1}, None,
    ),
    "gemini 3 searches": (
        "google", "generate", "gemini-3-flash-preview", _gemini(["a", "b"]), {"web_search": 2}, "0.028",
    ),
    "gemini 2 searches": (
        "google", "generate", "gemini-2.5-flash", _gemini(["a", "b"]), {"web_search": 1}, "0.035",
    ),
    "gemini draws": (
        "google", "generate", "gemini-2.5-flash-image",
        _gemini([], candidatesTokensDetails=[{"modality": "IMAGE", "tokenCount": 90}]),
        {"image_output_tokens": 90}, "0.0027",
    ),
    "openrouter searches": (
        "openrouter", "chat", "openai/gpt-4.1-mini", _chat(server_tool_use_details={"web_search_requests": 1}),
        {"web_search": 1}, None,
    ),
    "openrouter speaks": (
        "openrouter", "chat", "openai/gpt-4.1-mini", _chat(completion_tokens_details={"audio_tokens": 60}),
        {"audio_output_tokens": 60}, None,
    ),
    "grok reads sources": ("xai", "chat", "grok-4.5", _chat(num_sources_used=4), {"search_source": 4}, None),
    "groq runs tools": (
        "groq", "chat", "openai/gpt-oss-120b",
        {**_chat(), "choices": [{"index": 0, "finish_reason": "stop", "message": {
            "role": "assistant", "content": "Hi.",
            "executed_tools": [{"index": 0, "type": "search", "arguments": "{}", "output": "a"}],
        }}]},
        {"executed_tool": 1}, None,
    ),
    "glm searches": (
        "zai", "chat", "glm-4.6", {**_chat(), "web_search": [{"title": "A", "link": "https://example.com"}]},
        {"web_search": 1}, None,
    ),
}  # fmt: skip


def _priced(key: str, model: str, usage: Usage | None) -> Usage:
    assert usage is not None
    return cost_of(usage, provider(key).model(model), AT)


@pytest.mark.parametrize("case", CASES)
def test_extra_units_are_counted_and_priced(case: str) -> None:
    key, api, model, body, counted, price = CASES[case]
    usage = whole(provider(key), json.dumps(body).encode(), context(key, api, model)).metadata.usage
    priced = _priced(key, model, usage)

    assert priced.extra_units == counted
    assert priced.cost is not None
    assert priced.cost.other == Decimal(price or 0)
    if price is None:
        [(name, number)] = counted.items()
        assert priced.cost_note == f"without {number} {name} of {model}: no price known"
    else:
        assert priced.cost_note is None


STREAMS = {
    "claude runs code": [
        {"type": "message_start", "message": {**CLAUDE, "content": [], "usage": {"input_tokens": 1000}}},
        {"type": "content_block_start", "index": 0, "content_block": _served("bash_code_execution", 1)},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": _served("text_editor_code_execution", 2)},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 100}},
        {"type": "message_stop"},
    ],
    "claude searches": [
        {"type": "message_start", "message": {**CLAUDE, "content": [], "usage": {"input_tokens": 1000}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hi."}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": CASES["claude searches"][3]["usage"],
        },
        {"type": "message_stop"},
    ],
    "gpt searches": [{"type": "response.completed", "response": CASES["gpt searches"][3]}],
    "gemini 3 searches": [
        {"candidates": [{**GROUNDED, "finishReason": None, "groundingMetadata": {"webSearchQueries": ["a"]}}]},
        CASES["gemini 3 searches"][3],
    ],
    "openrouter searches": [
        {"id": "1", "choices": [{"index": 0, "finish_reason": "stop", "delta": {"content": "Hi."}}]},
        {"id": "1", "choices": [], "usage": CASES["openrouter searches"][3]["usage"]},
    ],
}


@pytest.mark.parametrize("case", STREAMS)
def test_a_stream_counts_the_same(case: str) -> None:
    key, api, model, _body, counted, _price = CASES[case]
    lines = [f"event: {event.get('type', 'message')}\ndata: {json.dumps(event)}\n\n" for event in STREAMS[case]]
    if key == "openrouter":
        lines.append("data: [DONE]\n\n")
    usage = streamed(provider(key), "".join(lines).encode(), context(key, api, model)).metadata.usage
    assert usage is not None
    assert usage.extra_units == counted


def test_audio_of_a_model_without_a_price_of_audio_is_not_billed_as_text() -> None:
    body = _chat(prompt_tokens_details={"audio_tokens": 400})
    usage = whole(provider("openrouter"), json.dumps(body).encode(), context("openrouter", "chat", "m")).metadata.usage
    priced = _priced("openrouter", "openai/gpt-4.1-mini", usage)
    assert priced.audio_input_tokens == 400
    assert priced.cost is not None
    assert priced.cost.input == Decimal("0.00024")  # 600 of text at 0.40 USD per million
    assert priced.cost_note == "without 400 audio_input_tokens of openai/gpt-4.1-mini: no price known"


def test_recorded_searches_are_named_and_the_rest_is_what_was_charged(corpus: Corpus) -> None:
    """OpenRouter reports what it charged: what we do not price is the search, and the rest is right."""
    seen = 0
    for entry in corpus.entries("openrouter-chat"):
        if entry["id"] != "openrouter-chat/04ff562a20dd44f9":
            continue
        seen += 1
        made = context("openrouter", "chat", "openai/gpt-4.1-mini")
        usage = streamed(provider("openrouter"), entry["response_text"].encode(), made).metadata.usage
        priced = _priced("openrouter", "openai/gpt-4.1-mini", usage)
        assert priced.cost_usd == Decimal("0.0133176") - Decimal("0.01")
        assert priced.cost_note == "without 1 web_search of openai/gpt-4.1-mini: no price known"
    assert seen == 1
