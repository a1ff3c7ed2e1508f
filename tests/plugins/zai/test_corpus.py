"""Every recorded exchange: the official SDK and we read the same, nothing is lost, and both roads agree."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlingua.types.factories import user
from interlingua.types.messages import Message
from tests.oracle import zai_sdk
from tests.oracle.openai_sdk import read_chat
from tests.plugins.zai.asking import ZAI, asked, context
from tests.support import driving, leaves
from tests.support.chat_merge import chunks_of, merged
from tests.support.corpus import Corpus

pytestmark = pytest.mark.usefixtures("quiet")


def _agrees(theirs: dict[str, Any], message: Message, name: str) -> None:
    reading = read_chat(theirs)
    assert message.text == reading.text, name
    assert [(call.name, call.raw_input) for call in message.tool_calls] == list(reading.calls), name
    thought = theirs["choices"][0]["message"].get("reasoning_content") or ""
    assert "".join(block.text for block in message.thinking_blocks) == thought, name
    assert message.metadata.stop_reason is reading.stop, name
    usage = message.metadata.usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.cached_input_tokens) == reading.usage[:3], name
    assert usage.reasoning_tokens == reading.usage[4], name
    assert not leaves.missing("chat", theirs, message), name


def _next_turn(message: Message) -> bytes:
    return asked([user("a"), message, user("b")]).body


def test_whole_answers(corpus: Corpus) -> None:
    answers = corpus.answers("zai-chat", "json")
    for name, raw in answers:
        message = driving.whole(ZAI, raw, context())
        _agrees(zai_sdk.whole(raw), message, name)
        assert not leaves.missing("chat", json.loads(raw), message), name
    assert answers


def test_streams_at_every_chunking_and_as_one_body(corpus: Corpus) -> None:
    streams = corpus.answers("zai-chat", "sse", of=4)
    for name, raw in streams:
        message = driving.streamed(ZAI, raw, context())
        for size in (1, 7):
            again = driving.streamed(ZAI, raw, context(), size)
            assert again == message, name
            assert again.metadata.provider_raw == message.metadata.provider_raw, name
        _agrees(merged(zai_sdk.streamed(raw)), message, name)
        whole = driving.whole(ZAI, json.dumps(merged(chunks_of(raw))).encode(), context())
        assert whole == message, name
        assert _next_turn(whole) == _next_turn(message), name
    assert streams
