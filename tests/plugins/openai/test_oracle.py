"""The official SDK reads the same bytes and must agree: text, calls, reasoning, usage, status."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import openai
import pytest

from interlingua.types.messages import Message
from tests.plugins.openai.test_cases_answers import ANSWERS
from tests.plugins.openai.wire import events_of, sse, streamed, whole


def sdk(data: bytes, kind: str) -> openai.OpenAI:
    def answer(_request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, content=data, headers={"content-type": kind})

    client = httpx2.Client(transport=httpx2.MockTransport(answer))
    return openai.OpenAI(api_key="none", base_url="http://oracle.invalid/v1", http_client=client)


def agree(theirs: Any, ours: Message) -> None:
    assert theirs.output_text == "".join(
        block.text for block in ours.content if block.type == "text" and block.text != "I cannot."
    )
    calls = [(item.call_id, item.name, item.arguments) for item in theirs.output if item.type == "function_call"]
    assert calls == [(block.provider_id, block.name, block.raw_input) for block in ours.tool_calls]
    texts = [[part.text for part in item.summary] for item in theirs.output if item.type == "reasoning"]
    assert ["\n\n".join(parts) for parts in texts if parts] == [block.text for block in ours.thinking_blocks]
    usage = ours.metadata.usage
    assert usage is not None
    assert usage.input_tokens == theirs.usage.input_tokens
    assert usage.cached_input_tokens == theirs.usage.input_tokens_details.cached_tokens
    assert usage.cache_creation_input_tokens == theirs.usage.input_tokens_details.cache_write_tokens
    assert usage.output_tokens == theirs.usage.output_tokens
    assert usage.reasoning_tokens == theirs.usage.output_tokens_details.reasoning_tokens
    reason = theirs.incomplete_details.reason if theirs.incomplete_details else theirs.status
    assert ours.metadata.stop_reason_raw == reason


@pytest.mark.parametrize("body", ANSWERS)
def test_the_sdk_reads_a_whole_answer_alike(body: dict[str, Any]) -> None:
    with sdk(json.dumps(body).encode(), "application/json") as client:
        agree(client.responses.create(model="gpt-5.5", input="go"), whole(body))


@pytest.mark.parametrize("body", ANSWERS)
def test_the_sdk_reads_a_stream_alike(body: dict[str, Any]) -> None:
    events = events_of(body)
    with sdk(sse(events), "text/event-stream") as client:
        seen = list(client.responses.create(model="gpt-5.5", input="go", stream=True))
    deltas = "".join(event.delta for event in seen if event.type == "response.output_text.delta")
    ours = streamed(events)
    agree(seen[-1].response, ours)  # type: ignore[union-attr]
    assert deltas == seen[-1].response.output_text  # type: ignore[union-attr]
