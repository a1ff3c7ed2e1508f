"""Every recorded exchange: the official SDK and we read the same, nothing is lost, and both roads agree."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mistralai.client.errors import SDKError

from interlingua.errors import ProviderError
from interlingua.plugins import WireResponse
from interlingua.types.factories import user
from interlingua.types.messages import Message
from tests.plugins.mistral.wire import ASKED, MISTRAL, asked, context, sdk, sdk_streamed, sdk_whole
from tests.support import driving, leaves
from tests.support.corpus import Corpus

pytestmark = pytest.mark.usefixtures("quiet")


def _said(message: dict[str, Any]) -> dict[str, str]:
    """Text and thinking of a message or delta as the SDK reads it."""
    content = message.get("content")
    found = {"text": content if isinstance(content, str) else "", "thinking": ""}
    for part in content if isinstance(content, list) else ():
        if part["type"] == "text":
            found["text"] += part["text"]
        elif part["type"] == "thinking":
            found["thinking"] += "".join(inner["text"] for inner in part["thinking"])
    return found


def _merged(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the one body the chunks add up to; calls are told apart by id, later pieces have none."""
    said = {"text": "", "thinking": ""}
    calls: list[dict[str, Any]] = []
    finish, usage, closed = None, None, None
    for one in chunks:
        usage = one.get("usage") or usage
        for choice in one["choices"]:
            if choice["index"]:
                continue
            delta = choice["delta"]
            finish = choice["finish_reason"] or finish
            for name, piece in _said(delta).items():
                said[name] += piece
            for part in delta["content"] if isinstance(delta.get("content"), list) else ():
                closed = part["closed"] if isinstance(part.get("closed"), bool) else closed
            for call in delta.get("tool_calls") or ():
                if calls and call["id"] in (None, "null", calls[-1]["id"]) and not call["function"]["name"]:
                    calls[-1]["function"]["arguments"] += call["function"]["arguments"]
                else:
                    calls.append(json.loads(json.dumps(call)))
    content: Any = said["text"]
    if said["thinking"]:
        thought: dict[str, Any] = {"type": "thinking", "thinking": [{"type": "text", "text": said["thinking"]}]}
        content = [
            {**thought, **({} if closed is None else {"closed": closed})},
            {"type": "text", "text": said["text"]},
        ]
    message = {"role": "assistant", "content": content, "tool_calls": calls}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {**chunks[-1], "object": "chat.completion", "choices": [choice], "usage": usage}


def _agrees(theirs: dict[str, Any], message: Message, name: str) -> None:
    choice = theirs["choices"][0]
    said = _said(choice["message"])
    assert message.text == said["text"], name
    assert "".join(block.text for block in message.thinking_blocks) == said["thinking"], name
    calls = choice["message"].get("tool_calls") or []
    expected = [(call["function"]["name"], call["function"]["arguments"]) for call in calls]
    assert [(call.name, call.raw_input) for call in message.tool_calls] == expected, name
    assert [call.provider_id for call in message.tool_calls] == [call["id"] for call in calls], name
    assert message.metadata.stop_reason_raw == choice["finish_reason"], name
    usage = message.metadata.usage
    assert usage is not None
    heard = ((theirs["usage"] or {}).get("prompt_tokens_details") or {}).get("audio_tokens") or 0
    assert (usage.input_tokens or 0) == theirs["usage"]["prompt_tokens"] + heard, name
    assert usage.output_tokens == theirs["usage"]["completion_tokens"], name
    assert not leaves.missing("mistral", theirs, message), name


def _next_turn(message: Message) -> bytes:
    return asked([user("a"), message, user("b")]).body


def test_whole_answers(corpus: Corpus) -> None:
    answers = corpus.answers("mistral-chat", "json")
    for name, raw in answers:
        _agrees(sdk_whole(raw), driving.whole(MISTRAL, raw, context()), name)
    assert answers


def test_streams_at_every_chunking_and_as_one_body(corpus: Corpus) -> None:
    streams = corpus.answers("mistral-chat", "sse", of=4)
    for name, raw in streams:
        message = driving.streamed(MISTRAL, raw, context())
        for size in (1, 7):
            again = driving.streamed(MISTRAL, raw, context(), size)
            assert again == message, name
            assert again.metadata.provider_raw == message.metadata.provider_raw, name
        _agrees(_merged(sdk_streamed(raw)), message, name)
    assert streams


def test_both_roads_ask_the_next_turn_in_the_same_bytes(corpus: Corpus) -> None:
    for name, raw in corpus.answers("mistral-chat", "sse"):
        chunks = [json.loads(line[6:]) for line in raw.decode().splitlines() if line.startswith("data: {")]
        if any(choice["index"] for one in chunks for choice in one["choices"]):
            continue  # several answers: the merge above knows one
        for one in chunks:
            for choice in one["choices"]:
                for call in choice["delta"].get("tool_calls") or ():
                    call.setdefault("id", None)
        streamed = driving.streamed(MISTRAL, raw, context())
        whole = driving.whole(MISTRAL, json.dumps(_merged(chunks)).encode(), context())
        assert whole == streamed, name
        assert _next_turn(whole) == _next_turn(streamed), name


def test_recorded_failures_are_some_for_the_sdk_too(corpus: Corpus) -> None:
    failures = [entry for entry in corpus.entries("mistral-chat") if entry["status"] >= 400]
    for entry in failures:
        raw = entry["response_text"].encode()
        error = MISTRAL.from_wire_error(WireResponse(status=entry["status"], body=raw), context())
        with pytest.raises(SDKError) as caught:
            sdk(raw, status=entry["status"]).chat.complete(**ASKED)

        assert isinstance(error, ProviderError)
        assert error.status == caught.value.status_code
        assert error.message in caught.value.body
    assert failures
