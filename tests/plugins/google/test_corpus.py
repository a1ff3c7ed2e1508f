"""Every recorded answer: the official SDK and we read the same, nothing is lost, and both roads agree."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from google.genai import errors as sdk_errors
from google.genai import types

from interlingua._json import thaw
from interlingua.plugins import WireResponse
from interlingua.types.factories import user
from interlingua.types.messages import Message, StopReason
from tests.oracle.readings import disagreements
from tests.plugins.google.checker import DATA, MODIFIERS, TOP
from tests.plugins.google.wire import GOOGLE, STOPS, asked, context, sdk, sdk_streamed, sdk_whole
from tests.support import driving, leaves
from tests.support.corpus import Corpus

EXPLAINED = disagreements("google")
pytestmark = pytest.mark.usefixtures("quiet")


def _differences(theirs: list[types.GenerateContentResponse], message: Message) -> list[str]:
    """Compare with what the SDK's own accessors say, added up over its chunks."""
    candidates = [answer.candidates[0] for answer in theirs if answer.candidates]
    parts = [part for one in candidates if one.content for part in one.content.parts or ()]
    usage = message.metadata.usage
    counts = next((answer.usage_metadata for answer in reversed(theirs) if answer.usage_metadata), None)
    finish = next((one.finish_reason.value for one in reversed(candidates) if one.finish_reason), None)
    calls = [(part.function_call.name, part.function_call.args or {}) for part in parts if part.function_call]
    expected: dict[str, Any] = {
        "text": "".join(part.text for part in parts if part.text and not part.thought),
        "thoughts": "".join(part.text for part in parts if part.text and part.thought),
        "calls": calls,
        "stop": StopReason.TOOL_USE if calls and finish == "STOP" else STOPS.get(finish or "", StopReason.ERROR),
        "input": (counts.prompt_token_count or 0) + (counts.tool_use_prompt_token_count or 0) if counts else 0,
        "output": (counts.candidates_token_count or 0) + (counts.thoughts_token_count or 0) if counts else 0,
        "cached": (counts.cached_content_token_count or 0) if counts else 0,
    }
    ours = {
        "text": message.text,
        "thoughts": "".join(block.text for block in message.thinking_blocks),
        "calls": [(call.name, thaw(call.input)) for call in message.tool_calls],
        "stop": message.metadata.stop_reason,
        "input": (usage.input_tokens or 0) if usage else 0,
        "output": (usage.output_tokens or 0) if usage else 0,
        "cached": (usage.cached_input_tokens or 0) if usage else 0,
    }
    return [f"{name}: {ours[name]!r} != {expected[name]!r}"[:300] for name in ours if ours[name] != expected[name]]


def _against(
    sdk_road: Callable[[bytes], list[types.GenerateContentResponse]], raw: bytes, message: Message
) -> list[str]:
    try:
        theirs = sdk_road(raw)
    except (AttributeError, ValueError) as error:
        return [f"the SDK cannot read it: {error}"[:200]]
    return _differences(theirs, message)


def _next_turn(message: Message) -> bytes:
    return asked([user("a"), message, user("b")], model="m").body


def _merged(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the one body that the chunks add up to: their parts in a row, text that a chunk goes on with joined."""
    whole: dict[str, Any] = {"candidates": [{}]}
    parts: list[dict[str, Any]] = []
    usage: dict[str, Any] = {}
    for chunk in chunks:
        usage |= chunk.get("usageMetadata") or {}
        for candidate in chunk.get("candidates") or ():
            whole["candidates"][0] |= {name: value for name, value in candidate.items() if name != "content"}
            for at, part in enumerate((candidate.get("content") or {}).get("parts") or ()):
                last = parts[-1] if parts and at == 0 else {}
                alike = part.keys() == last.keys() <= {"text", "thought"} and part.get("thought") == last.get("thought")
                parts = [*parts[:-1], {**last, "text": last["text"] + part["text"]}] if alike else [*parts, part]
    whole["candidates"][0]["content"] = {"role": "model", "parts": parts}
    return {**whole, "usageMetadata": usage}


def _chunks(raw: bytes) -> list[dict[str, Any]]:
    return [json.loads(line[5:]) for line in raw.decode().splitlines() if line.startswith("data:")]


def test_whole_answers(corpus: Corpus) -> None:
    wrong: dict[str, list[str]] = {}
    answers = corpus.answers("google-generate", "json")
    for name, raw in answers:
        message = driving.whole(GOOGLE, raw, context("m"))
        parsed = json.loads(raw)
        body = _merged(parsed) if isinstance(parsed, list) else parsed
        found = [f"lost {leaf}" for leaf in leaves.missing("google", body, message)]
        if name not in EXPLAINED:
            found += _against(sdk_whole, json.dumps(body).encode(), message)
        # the same answer as a stream of one chunk
        again = driving.streamed(GOOGLE, b"data: " + json.dumps(body).encode() + b"\n\n", context("m"))
        found += [] if again == message else ["roads"]
        found += [] if _next_turn(again) == _next_turn(message) else ["next turn"]
        if found:
            wrong[name] = found

    assert answers
    assert not wrong


def test_streams_at_every_chunking_and_as_one_body(corpus: Corpus) -> None:
    wrong: dict[str, list[str]] = {}
    streams = corpus.answers("google-generate", "sse", of=4)
    for name, raw in streams:
        message = driving.streamed(GOOGLE, raw, context("m"))
        found = []
        for size in (1, 7):
            again = driving.streamed(GOOGLE, raw, context("m"), size)
            if again != message or again.metadata.provider_raw != message.metadata.provider_raw:
                found.append(f"cut at {size}")
        array = driving.whole(GOOGLE, json.dumps(_chunks(raw)).encode(), context("m"))
        found += [] if array == message and _next_turn(array) == _next_turn(message) else ["array"]
        if b"partialArgs" not in raw:  # a whole answer has no such form
            merged = _merged(_chunks(raw))
            whole = driving.whole(GOOGLE, json.dumps(merged).encode(), context("m"))
            found += [] if whole == message else [f"roads: {whole} != {message}"[:600]]
            found += [] if _next_turn(whole) == _next_turn(message) else ["next turn"]
            found += [f"lost {leaf}" for leaf in leaves.missing("google", merged, message)]
        if name not in EXPLAINED:
            found += _against(sdk_streamed, raw, message)
        if found:
            wrong[name] = found

    assert streams
    assert not wrong


def test_recorded_failures_are_failures_of_the_sdk_too(corpus: Corpus) -> None:
    failures = [entry for entry in corpus.entries("google-generate") if entry["status"] >= 400]
    for entry in failures:
        raw = entry["response_text"].encode()
        error = GOOGLE.from_wire_error(WireResponse(status=entry["status"], body=raw), context())
        with pytest.raises(sdk_errors.APIError) as caught:
            sdk(raw, status=entry["status"]).models.generate_content(model="m", contents="x")

        assert error.message == caught.value.message
        assert error.status == entry["status"]
    assert failures


def test_recorded_requests_keep_the_rules_the_checker_knows(corpus: Corpus) -> None:
    """In camelCase, as the wire is; a few clients write snake_case, which the service takes too."""
    seen = 0
    for entry in corpus.entries("google-generate"):
        request = entry["request"]
        if entry["status"] >= 400 or not isinstance(request, dict) or "generationConfig" not in request:
            continue
        assert request.keys() <= TOP | {"model"}, entry["id"]
        for content in request["contents"]:
            for part in content["parts"] if isinstance(content, dict) else ():
                if isinstance(part, dict) and not any("_" in key for key in part):
                    seen += 1
                    assert part.keys() <= DATA | MODIFIERS, entry["id"]
    assert seen
