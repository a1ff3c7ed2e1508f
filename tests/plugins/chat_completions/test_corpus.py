"""Recorded traffic of the shipped presets: an independent reader of a few lines must find its text in ours."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from interlingua.errors import ProviderError
from interlingua.plugins import WireResponse
from interlingua.types.messages import Message
from tests.plugins.chat_completions.support import context, decoded, provider, whole
from tests.support.corpus import Corpus

EVERY = 4  # the whole of it is the corpus command's business


def objects(entry: dict[str, Any]) -> Iterator[dict[str, Any]]:
    text = entry["response_text"]
    if entry["kind"] == "json":
        yield json.loads(text)
    for line in text.splitlines() if entry["kind"] == "sse" else ():
        if line.startswith("data: {"):
            yield json.loads(line[6:])


def said(entry: dict[str, Any]) -> tuple[str, str, str]:
    """Text, reasoning and arguments of the first choice, joined as they come."""
    found = {"text": "", "reasoning": "", "arguments": ""}
    for one in objects(entry):
        for choice in one.get("choices") or []:
            delta = choice.get("message") or choice.get("delta") or {}
            found["text"] += delta.get("content") or ""
            found["reasoning"] += delta.get("reasoning_content") or delta.get("reasoning") or ""
            for call in delta.get("tool_calls") or []:
                found["arguments"] += call["function"].get("arguments") or ""
    return found["text"], found["reasoning"], found["arguments"]


def ours(message: Message) -> tuple[str, str, str]:
    thinking = "".join(block.text for block in message.thinking_blocks)
    return message.text, thinking, "".join(call.raw_input or "" for call in message.tool_calls)


@pytest.mark.parametrize("key", ["groq", "deepseek", "xai"])
def test_text_reasoning_and_arguments_are_all_there(corpus: Corpus, key: str) -> None:
    target = provider(key)
    for number, entry in enumerate(corpus.entries(f"{key}-chat")):
        if number % EVERY:
            continue
        raw = entry["response_text"].encode()
        if entry["status"] >= 400:
            response = WireResponse(status=entry["status"], body=raw)
            assert isinstance(target.from_wire_error(response, context(key)), ProviderError), entry["id"]
            continue
        decoder = decoded(raw, target, 7) if entry["kind"] == "sse" else None
        if decoder is not None and decoder.failed is not None:
            assert any("error" in one for one in objects(entry)), entry["id"]
            continue
        message = decoder.message() if decoder is not None else whole(raw, target)
        assert ours(message) == said(entry), entry["id"]
