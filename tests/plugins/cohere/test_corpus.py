"""Every recorded exchange of v2: the official SDK and we read the same, nothing is lost, and both roads agree."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cohere.core.api_error import ApiError

from interlingua._json import thaw
from interlingua.errors import ContextWindowExceededError
from interlingua.plugins import WireResponse
from interlingua.types.blocks import TextBlock
from interlingua.types.factories import tool_result, user
from interlingua.types.messages import Message, StopReason
from tests.plugins.cohere.checker import MESSAGE, TOP
from tests.plugins.cohere.reading import facts, merged
from tests.plugins.cohere.wire import COHERE, asked, context, parts, sdk
from tests.support import driving, leaves
from tests.support.corpus import Corpus

pytestmark = pytest.mark.usefixtures("quiet")


def _answers(corpus: Corpus, kind: str) -> list[tuple[str, bytes]]:
    return [
        (entry["id"], entry["response_text"].encode())
        for entry in corpus.entries("cohere-chat")
        if entry["kind"] == kind and entry["status"] < 400 and "/v2/" in entry["url"]
    ]


def _agrees(body: dict[str, Any], message: Message, name: str) -> None:
    theirs = facts(body)
    usage = message.metadata.usage
    assert usage is not None, name
    assert message.text == theirs["text"], name
    assert [block.text for block in message.thinking_blocks] == theirs["thinking"], name
    assert [(call.provider_id, call.name, thaw(call.input)) for call in message.tool_calls] == theirs["calls"], name
    cited = [one["text"] for block in message.content if isinstance(block, TextBlock) for one in block.citations]
    assert cited == theirs["cited"], name
    assert (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens) == theirs["usage"], name
    assert usage.cached_input_tokens == theirs["cached"], name
    assert message.metadata.stop_reason_raw == theirs["reason"], name
    assert (message.metadata.stop_reason is StopReason.TOOL_USE) == bool(theirs["calls"]), name
    assert not leaves.missing("cohere", body, message), name


def _next_turn(message: Message) -> bytes:
    results = [tool_result(call, "x") for call in message.tool_calls]
    return asked([user("a"), message, *results, user("b")]).body


def test_whole_answers(corpus: Corpus) -> None:
    answers = _answers(corpus, "json")
    for name, raw in answers:
        (theirs,) = parts(raw, stream=False)
        message = driving.whole(COHERE, raw, context())
        _agrees(theirs, message, name)
        sent = json.loads(_next_turn(message))["messages"][1]
        wire = json.loads(raw)["message"]
        for field in ("content", "tool_plan", "tool_calls", "citations"):
            assert sent.get(field) == (wire.get(field) or None), (name, field)
    assert answers


def test_streams_at_every_chunking_and_as_one_body(corpus: Corpus) -> None:
    streams = _answers(corpus, "sse")
    for name, raw in streams:
        message = driving.streamed(COHERE, raw, context())
        for size in (1, 7):
            again = driving.streamed(COHERE, raw, context(), size)
            assert again == message, name
            assert again.metadata.provider_raw == message.metadata.provider_raw, name
        _agrees(merged(parts(raw, stream=True)), message, name)
        events = [json.loads(line[5:]) for line in raw.splitlines() if line.startswith(b"data: {")]
        whole = driving.whole(COHERE, json.dumps(merged(events)).encode(), context())
        assert whole == message, name
        assert _next_turn(whole) == _next_turn(message), name
    assert streams


def test_the_recorded_failure_is_one_for_the_sdk_too(corpus: Corpus) -> None:
    failures = [entry for entry in corpus.entries("cohere-chat") if entry["status"] >= 400]
    for entry in failures:
        raw = entry["response_text"].encode()
        error = COHERE.from_wire_error(WireResponse(status=entry["status"], body=raw), context())
        with pytest.raises(ApiError) as caught:
            sdk(raw, status=entry["status"]).chat(model="m", messages=[])

        assert type(error) is ContextWindowExceededError
        assert error.message in str(caught.value.body)
        assert error.status == caught.value.status_code
    assert failures


def test_recorded_requests_keep_the_rules_the_checker_knows(corpus: Corpus) -> None:
    requests = [entry["request"] for entry in corpus.entries("cohere-chat") if "/v2/" in entry["url"]]
    for request in filter(None, requests):
        assert request.keys() <= TOP
        assert all(message.keys() <= MESSAGE for message in request["messages"])
