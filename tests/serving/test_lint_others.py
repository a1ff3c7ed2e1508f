"""Each linter finds each defect, put into one of our good streams, one at a time."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from interlingua.types import (
    BlockEnd,
    MessageComplete,
    Origin,
    StopReason,
    StreamEvent,
    TextDelta,
    ThinkingBlock,
    ThinkingDelta,
    ToolUseBlock,
    ToolUseEnd,
    ToolUseInputDelta,
    ToolUseStart,
    Usage,
    UsageUpdate,
)
from interlingua_serving import find_serving_plugin
from tests.serving.answers import context
from tests.serving.compare import REGISTRY
from tests.serving.lint_others import lint_generate_stream, lint_ollama_stream, lint_responses_stream

_CALL = ToolUseBlock(id="tu_1", name="add", input={"a": 1}, provider_id="call_1")
EVENTS: tuple[StreamEvent, ...] = (
    ThinkingDelta(index=0, text="Hm"),
    ThinkingDelta(index=0, text="."),
    BlockEnd(index=0, block=ThinkingBlock(text="", signature="c2ln")),
    TextDelta(index=1, text="Let "),
    TextDelta(index=1, text="me see."),
    ToolUseStart(index=2, id="tu_1", name="add", provider_id="call_1"),
    ToolUseInputDelta(index=2, partial_json='{"a": 1}'),
    ToolUseEnd(index=2, block=_CALL),
    UsageUpdate(usage=Usage(input_tokens=3, output_tokens=5)),
    MessageComplete(stop_reason=StopReason.TOOL_USE),
)
Change = Callable[[list[Any]], Any]


def _stream(key: str, api: str) -> bytes:
    writer = find_serving_plugin(REGISTRY, key).stream_to_wire(context(key, api, Origin("elsewhere", "chat", "m-1")))
    data: bytes = writer.feed(EVENTS) + writer.end()
    return data


def _named(events: list[Any], kind: str) -> Any:
    return next(event for event in events if event["type"] == kind)


def _end(events: list[Any]) -> Any:
    return events[-1]["response"]


RESPONSES: dict[str, Change] = {
    "no created": lambda events: events.pop(0),
    "no end": lambda events: events.pop(),
    "two ends": lambda events: events.append(events[-1]),
    "another id at the end": lambda events: _end(events).update(id="resp_2"),
    "another model": lambda events: _end(events).update(model="m-1"),
    "no usage": lambda events: _end(events).update(usage=None),
    "an empty output": lambda events: _end(events).update(output=[]),
    "an item more": lambda events: _end(events)["output"].append({**_end(events)["output"][1], "id": "msg_2"}),
    "another order": lambda events: _end(events)["output"].reverse(),
    "a number left out": lambda events: events[3].update(sequence_number=99),
    "no item added": lambda events: events.remove(_named(events, "response.output_item.added")),
    "no item done": lambda events: events.remove(_named(events, "response.output_item.done")),
    "no part added": lambda events: events.remove(_named(events, "response.content_part.added")),
    "no text done": lambda events: events.remove(_named(events, "response.output_text.done")),
    "a delta lost": lambda events: events.remove(_named(events, "response.output_text.delta")),
    "an index left out": lambda events: _named(events, "response.output_item.added").update(output_index=7),
    "another item named": lambda events: _named(events, "response.output_text.delta").update(item_id="msg_9"),
    "an item not completed": lambda events: _end(events)["output"][2].update(status="in_progress"),
    "a long call id": lambda events: _end(events)["output"][2].update(call_id="c" * 65),
    "an error in a good response": lambda events: _end(events).update(error={"code": "x"}),
    "failed": lambda events: events[-1].update(type="response.failed"),
}


def _first(chunks: list[Any]) -> Any:
    return chunks[0]["candidates"][0]


GENERATE: dict[str, Change] = {
    "no reason": lambda chunks: chunks[-1]["candidates"][0].pop("finishReason"),
    "a reason too early": lambda chunks: _first(chunks).update(finishReason="STOP"),
    "no usage": lambda chunks: chunks[-1].pop("usageMetadata"),
    "another model": lambda chunks: chunks[1].update(modelVersion="m-1"),
    "another id": lambda chunks: chunks[1].update(responseId="2"),
    "no parts": lambda chunks: _first(chunks)["content"].update(parts=[]),
    "an end without content": lambda chunks: chunks[-1]["candidates"][0].pop("content"),
    "an empty part": lambda chunks: _first(chunks)["content"]["parts"].append({"text": ""}),
    "a part of nothing": lambda chunks: _first(chunks)["content"]["parts"].append({}),
    "two things in a part": lambda chunks: _first(chunks)["content"]["parts"][0].update(functionCall={"name": "f"}),
    "arguments as text": lambda chunks: chunks[-1]["candidates"][0]["content"]["parts"][0]["functionCall"].update(
        args=""
    ),
    "a signature that is none": lambda chunks: _first(chunks)["content"]["parts"][0].update(thoughtSignature="!"),
    "another role": lambda chunks: _first(chunks)["content"].update(role="assistant"),
    "two candidates": lambda chunks: chunks[0]["candidates"].append(_first(chunks)),
}
OLLAMA: dict[str, Change] = {
    "no done": lambda lines: lines.pop(),
    "done too early": lambda lines: lines[0].update(done=True),
    "no message in the last": lambda lines: lines[-1].pop("message"),
    "no role": lambda lines: lines[-1]["message"].pop("role"),
    "no reason": lambda lines: lines[-1].pop("done_reason"),
    "no counts": lambda lines: [lines[-1].pop(name) for name in ("prompt_eval_count", "eval_count")],
    "another model": lambda lines: lines[0].update(model="m-1"),
    "no time": lambda lines: lines[0].update(created_at="now"),
    "no content": lambda lines: lines[0]["message"].pop("content"),
    "arguments as text": lambda lines: lines[-2]["message"]["tool_calls"][0]["function"].update(arguments="{}"),
}


def _changed(frames: list[Any], change: Change) -> list[Any]:
    copy = json.loads(json.dumps(frames))
    change(copy)
    return list(copy)


@pytest.mark.parametrize("change", RESPONSES.values(), ids=list(RESPONSES))
def test_a_defect_of_a_response_is_found(change: Change) -> None:
    body = _stream("openai", "responses").decode()
    assert lint_responses_stream(body.encode()) == []
    events = _changed([json.loads(block.split("\ndata: ")[1]) for block in body.split("\n\n")[:-1]], change)
    written = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)

    assert lint_responses_stream(written.encode())


@pytest.mark.parametrize("change", GENERATE.values(), ids=list(GENERATE))
def test_a_defect_of_a_chunk_is_found(change: Change) -> None:
    body = _stream("google", "generate").decode()
    assert lint_generate_stream(body.encode()) == []
    chunks = _changed([json.loads(block[6:]) for block in body.split("\r\n\r\n")[:-1]], change)

    assert lint_generate_stream("".join(f"data: {json.dumps(chunk)}\r\n\r\n" for chunk in chunks).encode())


@pytest.mark.parametrize("change", OLLAMA.values(), ids=list(OLLAMA))
def test_a_defect_of_a_line_is_found(change: Change) -> None:
    body = _stream("ollama", "chat-native").decode()
    assert lint_ollama_stream(body.encode()) == []
    lines = _changed([json.loads(line) for line in body.splitlines()], change)

    assert lint_ollama_stream("".join(json.dumps(line) + "\n" for line in lines).encode())


@pytest.mark.parametrize(
    ("key", "api", "old", "new"),
    [
        ("openai", "responses", b"event: response.completed\n", b""),
        ("openai", "responses", b"\n\n", b"\n\n: ping\n\n"),
        ("google", "generate", b"data: ", b"event: x\r\ndata: "),
        ("google", "generate", b"\r\n\r\n", b"\r\n\r\n: ping\r\n\r\n"),
        ("google", "generate", b"\r\n\r\n", b"\r\n\r\ndata: [DONE]\r\n\r\n"),
        ("ollama", "chat-native", b"\n", b"\n\n"),
    ],
)
def test_a_defect_of_the_framing_is_found(key: str, api: str, old: bytes, new: bytes) -> None:
    lint = {"responses": lint_responses_stream, "generate": lint_generate_stream, "chat-native": lint_ollama_stream}[
        api
    ]

    assert lint(_stream(key, api).replace(old, new))


@pytest.mark.parametrize("cut", [2, 5, 9])
def test_a_cut_stream_is_found(cut: int) -> None:
    for key, api, lint in (
        ("openai", "responses", lint_responses_stream),
        ("google", "generate", lint_generate_stream),
        ("ollama", "chat-native", lint_ollama_stream),
    ):
        writer = find_serving_plugin(REGISTRY, key).stream_to_wire(
            context(key, api, Origin("elsewhere", "chat", "m-1"))
        )
        body = writer.feed(EVENTS[:cut])
        assert lint(body), api
        assert lint(body + writer.end()), api
        assert not writer.end()
