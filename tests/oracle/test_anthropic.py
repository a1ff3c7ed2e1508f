"""Every recorded answer of the Messages API: the official SDK and we read the same text, calls, stop and usage."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from interlingua.plugins import build_request
from interlingua.types.factories import user
from interlingua.types.messages import Message
from interlingua.types.options import RequestOptions
from tests.oracle import anthropic_sdk as sdk
from tests.oracle.readings import calls_of, disagreements, usage_of
from tests.support import driving, leaves
from tests.support.corpus import Corpus
from tests.support.counts import chosen

ANTHROPIC = driving.provider("anthropic")
EXPLAINED = disagreements("anthropic")
pytestmark = pytest.mark.usefixtures("quiet")  # recorded answers are full of unanswered calls


def _context() -> Any:
    return driving.context("anthropic", "messages", "m")


def _next_turn(message: Message) -> bytes:
    return build_request(ANTHROPIC, [user("a"), message, user("b")], [], RequestOptions(model="m")).body


def _same_next_turn(whole: Message, message: Message) -> bool:
    """Same bytes; where a block holds objects that the SDK dumps in its own member order, the same values."""
    left, right = _next_turn(whole), _next_turn(message)
    raw: Mapping[str, Any] = message.metadata.provider_raw or {}
    respelt = raw.get("replay") or any(getattr(b, "citations", ()) or b.type == "opaque" for b in message.content)
    return left == right or bool(respelt and json.loads(left) == json.loads(right))


def _answers(corpus: Corpus, kind: str) -> list[dict[str, Any]]:
    entries = (entry for entry in corpus.entries("anthropic-messages") if chosen(entry["id"], 5))
    return [entry for entry in entries if entry["kind"] == kind and (entry["status"] or 200) < 400]


def _differences(expected: sdk.Reading, message: Message) -> list[str]:
    found = []
    if message.text != expected.text:
        found.append("text")
    if calls_of(message) != expected.calls:
        found.append(f"calls {calls_of(message)} != {expected.calls}")
    if message.metadata.stop_reason is not expected.stop:
        found.append(f"stop {message.metadata.stop_reason} != {expected.stop}")
    if usage_of(message) != expected.usage:
        found.append(f"usage {usage_of(message)} != {expected.usage}")
    return found


def test_whole_answers(corpus: Corpus) -> None:
    wrong = {}
    answers = _answers(corpus, "json")
    for entry in answers:
        body = entry["response_text"].encode()
        parsed = sdk.whole(body)
        message = driving.whole(ANTHROPIC, body, _context())
        lost = leaves.missing("anthropic", parsed, message)
        if (found := _differences(sdk.reading(parsed), message) + [f"lost {leaf}" for leaf in lost]) and (
            entry["id"] not in EXPLAINED
        ):
            wrong[entry["id"]] = found

    assert answers
    assert not wrong


def test_streams_are_the_same_at_every_chunking(corpus: Corpus) -> None:
    wrong = {}
    streams = _answers(corpus, "sse")
    for entry in streams:
        body = entry["response_text"].encode()
        message = driving.streamed(ANTHROPIC, body, _context())
        for size in (1, 7):
            again = driving.streamed(ANTHROPIC, body, _context(), size)
            if again != message or again.metadata.provider_raw != message.metadata.provider_raw:
                wrong[entry["id"]] = size

    assert streams
    assert not wrong


def test_streams_agree_with_the_accumulated_message(corpus: Corpus) -> None:
    wrong = {}
    streams = _answers(corpus, "sse")
    for entry in streams:
        body = entry["response_text"].encode()
        accumulated = sdk.streamed(body)
        message = driving.streamed(ANTHROPIC, body, _context())
        found = _differences(sdk.reading(accumulated), message)
        found += [f"lost {leaf}" for leaf in leaves.missing("anthropic", accumulated, message)]
        whole = driving.whole(ANTHROPIC, _dumped(accumulated), _context())
        if whole != message:
            found.append(f"roads: {whole} != {message}"[:500])
        if not _same_next_turn(whole, message):
            found.append("next turn differs between the roads")
        if found and entry["id"] not in EXPLAINED:
            wrong[entry["id"]] = found

    assert streams
    assert not wrong


def _dumped(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode()


def test_explained_disagreements_are_real(corpus: Corpus) -> None:
    known = {entry["id"] for entry in corpus.entries("anthropic-messages")}

    assert not (gone := EXPLAINED.keys() - known), f"no such entries: {gone}"
    assert all(reason.strip() for reason in EXPLAINED.values())
