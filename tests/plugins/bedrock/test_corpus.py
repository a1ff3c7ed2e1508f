"""Every recorded answer: botocore and we read the same, and every chunking gives the same."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from interlingua.plugins import ConnectionSettings
from interlingua.types import Message
from interlingua_cli.replay.exchange import match_host
from tests.plugins.bedrock.wire import BEDROCK, context, sdk_streamed, sdk_whole
from tests.support import driving
from tests.support.corpus import Corpus

pytestmark = pytest.mark.usefixtures("quiet")


def _entries(corpus: Corpus, *, streamed: bool) -> Iterator[tuple[str, bytes]]:
    for entry in corpus.entries("bedrock-converse"):
        if entry["status"] == 200 and bool(entry["stream"]) is streamed:
            raw = entry.get("response_b64")
            yield entry["id"], base64.b64decode(raw) if raw else entry["response_text"].encode()


def _calls(message: Message) -> list[tuple[str | None, str]]:
    return [(call.provider_id, call.name) for call in message.tool_calls]


def test_whole_answers(corpus: Corpus) -> None:
    wrong = []
    for name, raw in _entries(corpus, streamed=False):
        message, theirs = driving.whole(BEDROCK, raw, context("m")), sdk_whole(raw)
        content = theirs["output"]["message"]["content"]
        text = "".join(
            block.get("text", "")
            + "".join(part["text"] for part in block.get("citationsContent", {}).get("content", ()))
            for block in content
        )
        calls = [block["toolUse"] for block in content if "toolUse" in block]
        ours = [(call["toolUseId"], call["name"]) for call in calls if call.get("type") != "server_tool_use"]
        usage: dict[str, Any] = theirs.get("usage") or {}
        total = sum(usage.get(field) or 0 for field in ("inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens"))
        counted = message.metadata.usage
        counts = (counted.input_tokens or 0, counted.output_tokens) if counted else (0, None)
        if (message.text, _calls(message), counts) != (text, ours, (total, usage.get("outputTokens"))):
            wrong.append(name)
    assert not wrong


def test_streams_at_every_chunking(corpus: Corpus) -> None:
    wrong, seen = [], 0
    for name, raw in _entries(corpus, streamed=True):
        seen += 1
        message = driving.streamed(BEDROCK, raw, context("m"))
        text, calls = "", []
        for event in sdk_streamed(raw):
            text += event.get("contentBlockDelta", {}).get("delta", {}).get("text", "")
            start = event.get("contentBlockStart", {}).get("start", {}).get("toolUse")
            if start and start.get("type") != "server_tool_use":
                calls.append((start["toolUseId"], start["name"]))
        again = [driving.streamed(BEDROCK, raw, context("m"), size) for size in (1, 7)]
        if (message.text, _calls(message)) != (text, calls) or again != [message, message]:
            wrong.append(name)
    assert seen
    assert not wrong


def test_a_recorded_address_names_the_model(corpus: Corpus) -> None:
    connection = BEDROCK.connection(ConnectionSettings())
    for entry in corpus.entries("bedrock-converse"):
        path = urlsplit(entry["url"]).path
        found = connection.find_endpoint(path)
        assert found is not None
        assert found.model == unquote(path.split("/")[2])
        assert match_host(connection.hosts, urlsplit(entry["url"]).hostname or "")
