"""Every recorded exchange: the official SDKs and we read the same, nothing is lost, and both roads agree."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from interlingua.errors import InterlinguaError, ProviderError
from interlingua.plugins import WireResponse
from interlingua.types.factories import user
from interlingua.types.messages import Message
from interlingua_openrouter.costs import reported_cost
from tests.oracle import openai_sdk, openrouter_sdk
from tests.plugins.openrouter.asking import OPENROUTER, asked, context
from tests.support import driving, leaves
from tests.support.chat_merge import chunks_of, merged
from tests.support.corpus import Corpus

pytestmark = pytest.mark.usefixtures("quiet")


def _agrees(theirs: dict[str, Any], message: Message, name: str) -> None:
    reading = openai_sdk.read_chat(theirs)
    assert message.text == reading.text, name
    assert [(call.name, call.raw_input or "") for call in message.tool_calls] == list(reading.calls), name
    ended = theirs["choices"][0].get("finish_reason") is not None  # an answer without a reason is PARTIAL here
    assert message.metadata.stop_reason is (reading.stop if ended else None), name
    usage = message.metadata.usage
    assert usage is not None
    counts = (usage.input_tokens, usage.output_tokens, usage.cached_input_tokens)
    assert counts == reading.usage[:3], name
    assert (usage.cache_creation_input_tokens, usage.reasoning_tokens) == reading.usage[3:], name


def _next_turn(message: Message) -> bytes:
    return asked([user("a"), message, user("b")], model="m").body


def _kept(body: dict[str, Any], message: Message, name: str) -> None:
    """No leaf is missing, the details are word for word, and the cost is beside ours."""
    assert not leaves.missing("chat", body, message), name
    raw = message.metadata.provider_raw
    assert raw is not None
    details = body["choices"][0]["message"].get("reasoning_details") or []
    assert json.loads(json.dumps(raw["replay"].get("reasoning_details", []) if "replay" in raw else [])) == details, (
        name
    )
    cost = (body.get("usage") or {}).get("cost")
    assert reported_cost(message) == (None if cost is None else Decimal(str(cost))), name
    assert message.metadata.usage is not None
    assert message.metadata.usage.cost_usd is None, name


def test_whole_answers(corpus: Corpus) -> None:
    both = 0
    for name, raw in corpus.answers("openrouter-chat", "json"):
        body = json.loads(raw)
        if body.get("error"):
            with pytest.raises(ProviderError):
                driving.whole(OPENROUTER, raw, context())
            continue
        message = driving.whole(OPENROUTER, raw, context("m"))
        _agrees(openai_sdk.whole_chat(raw), message, name)
        _kept(body, message, name)
        try:
            _agrees(openrouter_sdk.whole(raw), message, name)
        except openrouter_sdk.Unparsed:
            continue
        both += 1
    assert both


def test_streams_at_every_chunking_and_as_one_body(corpus: Corpus) -> None:
    read = 0
    for name, raw in corpus.answers("openrouter-chat", "sse", of=4):
        try:
            message = driving.streamed(OPENROUTER, raw, context("m"))
        except InterlinguaError:
            assert any(chunk.get("error") for chunk in chunks_of(raw)) or b"[DONE]" not in raw, name
            continue
        for size in (1, 7):
            again = driving.streamed(OPENROUTER, raw, context("m"), size)
            assert again == message, name
            assert again.metadata.provider_raw == message.metadata.provider_raw, name
        _agrees(merged(openrouter_sdk.streamed(raw)), message, name)
        body = merged(chunks_of(raw))
        _kept(body, message, name)
        whole = driving.whole(OPENROUTER, json.dumps(body).encode(), context("m"))
        assert whole == message, name
        assert _next_turn(whole) == _next_turn(message), name
        read += 1
    assert read


def test_recorded_failures_are_typed(corpus: Corpus) -> None:
    for entry in corpus.entries("openrouter-chat"):
        if entry["status"] < 400:
            continue
        response = WireResponse(status=entry["status"], body=entry["response_text"].encode())
        error = OPENROUTER.from_wire_error(response, context())
        assert error.status == entry["status"]
        assert error.retryable == (entry["status"] == 429), entry["id"]
