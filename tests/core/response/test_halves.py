"""Characters that a service cut into two escapes, in two chunks: whole in events and message, of every wire.

JSON writes a character outside the basic plane as two escapes (RFC 8259 §7); one of them alone is no character.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from interlingua.types import StreamEvent, TextBlock, TextDelta, ThinkingDelta, ToolUseInputDelta
from tests.support.driving import context, opened, provider, whole

HIGH, LOW = "\ud83d", "\ude00"
FACE = "\N{GRINNING FACE}"
LOST = "\N{REPLACEMENT CHARACTER}"


def sse(*events: Any, named: bool = False) -> bytes:
    heads = [f"event: {event['type']}\n" if named else "" for event in events]
    return "".join(f"{head}data: {json.dumps(event)}\n\n" for head, event in zip(heads, events, strict=True)).encode()


def chat(*pieces: str) -> bytes:
    chunks = [{"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]} for piece in pieces]
    return sse(*chunks, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}) + b"data: [DONE]\n\n"


def chat_whole(text: str) -> bytes:
    message = {"role": "assistant", "content": text}
    return json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()


def reasoning(*pieces: str) -> bytes:
    chunks = [
        {"choices": [{"index": 0, "delta": {"reasoning_content": piece}, "finish_reason": None}]} for piece in pieces
    ]
    return sse(*chunks, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}) + b"data: [DONE]\n\n"


def reasoning_whole(text: str) -> bytes:
    message = {"role": "assistant", "content": None, "reasoning_content": text}
    return json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()


def chat_call(*pieces: str) -> bytes:
    parts = ['{"a": "', *pieces, '"}']
    first = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "look", "arguments": ""}}
    calls = [first, *({"index": 0, "function": {"arguments": piece}} for piece in parts)]
    chunks = [{"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}]} for call in calls]
    return sse(*chunks, {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}) + b"data: [DONE]\n\n"


def chat_call_whole(text: str) -> bytes:
    call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": f'{{"a": "{text}"}}'}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}).encode()


def messages(*pieces: str) -> bytes:
    message = {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "m"}
    deltas = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}} for piece in pieces
    ]
    return sse(
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *deltas,
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
        named=True,
    )


def messages_whole(text: str) -> bytes:
    content = [{"type": "text", "text": text}]
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn"}
    return json.dumps({**message, "content": content, "usage": {"output_tokens": 1}}).encode()


def responses(*pieces: str) -> bytes:
    part = {"type": "output_text", "text": "".join(pieces), "annotations": []}
    item = {"type": "message", "id": "i", "role": "assistant", "status": "completed", "content": [part]}
    place = {"item_id": "i", "output_index": 0, "content_index": 0}
    begun = {"type": "output_text", "text": "", "annotations": []}
    return sse(
        {"type": "response.created", "response": {"id": "r", "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        {"type": "response.content_part.added", **place, "part": begun},
        *({"type": "response.output_text.delta", **place, "delta": piece} for piece in pieces),
        {"type": "response.output_text.done", **place, "text": part["text"]},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": [item]}},
    )


def responses_whole(text: str) -> bytes:
    part = {"type": "output_text", "text": text, "annotations": []}
    item = {"type": "message", "id": "i", "role": "assistant", "status": "completed", "content": [part]}
    return json.dumps({"id": "r", "object": "response", "status": "completed", "output": [item]}).encode()


def custom_call(*pieces: str) -> bytes:
    item = {"type": "custom_tool_call", "id": "i", "call_id": "c", "name": "look", "input": ""}
    done = {**item, "input": "".join(pieces)}
    place = {"item_id": "i", "output_index": 0}
    return sse(
        {"type": "response.created", "response": {"id": "r", "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        *({"type": "response.custom_tool_call_input.delta", **place, "delta": piece} for piece in pieces),
        {"type": "response.custom_tool_call_input.done", **place, "input": done["input"]},
        {"type": "response.output_item.done", "output_index": 0, "item": done},
        {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": [done]}},
    )


def custom_call_whole(text: str) -> bytes:
    item = {"type": "custom_tool_call", "id": "i", "call_id": "c", "name": "look", "input": text}
    return json.dumps({"id": "r", "object": "response", "status": "completed", "output": [item]}).encode()


def candidate(text: str, **more: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "index": 0, **more}]}


def generate(*pieces: str) -> bytes:
    return sse(*map(candidate, pieces), candidate("", finishReason="STOP"))


def generate_whole(text: str) -> bytes:
    return json.dumps(candidate(text, finishReason="STOP")).encode()


def ollama(*pieces: str) -> bytes:
    lines = [
        {"model": "m", "created_at": "t", "message": {"role": "assistant", "content": piece}, "done": False}
        for piece in pieces
    ]
    end = {"model": "m", "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"}
    return "".join(json.dumps(line) + "\n" for line in [*lines, end]).encode()


def ollama_whole(text: str) -> bytes:
    message = {"role": "assistant", "content": text}
    return json.dumps({"model": "m", "message": message, "done": True, "done_reason": "stop"}).encode()


def v2_end(message: dict[str, Any]) -> bytes:
    return json.dumps({"id": "i", "message": {"role": "assistant", **message}, "finish_reason": "COMPLETE"}).encode()


def v2(*pieces: str) -> bytes:
    items = [
        {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": piece}}}} for piece in pieces
    ]
    return sse(*items, {"type": "message-end", "delta": {"finish_reason": "COMPLETE"}})


def v2_whole(text: str) -> bytes:
    return v2_end({"content": [{"type": "text", "text": text}]})


def v2_plan(*pieces: str) -> bytes:
    items = [{"type": "tool-plan-delta", "delta": {"message": {"tool_plan": piece}}} for piece in pieces]
    return sse(*items, {"type": "message-end", "delta": {"finish_reason": "COMPLETE"}})


def v2_plan_whole(text: str) -> bytes:
    return v2_end({"tool_plan": text})


WIRES = {
    "chat": ("openai", "chat", chat, chat_whole),
    "chat, reasoning": ("deepseek", "", reasoning, reasoning_whole),
    "chat, a call": ("openai", "chat", chat_call, chat_call_whole),
    "mistral": ("mistral", "", chat, chat_whole),
    "openrouter": ("openrouter", "", chat, chat_whole),
    "responses": ("openai", "responses", responses, responses_whole),
    "responses, a custom call": ("openai", "responses", custom_call, custom_call_whole),
    "messages": ("anthropic", "messages", messages, messages_whole),
    "google": ("google", "", generate, generate_whole),
    "ollama": ("ollama", "", ollama, ollama_whole),
    "cohere": ("cohere", "", v2, v2_whole),
    "cohere, a plan": ("cohere", "", v2_plan, v2_plan_whole),
}


def pieces_of(events: Iterable[StreamEvent]) -> str:
    texts = [event.text for event in events if isinstance(event, (TextDelta, ThinkingDelta))]
    return "".join(texts + [event.partial_json for event in events if isinstance(event, ToolUseInputDelta)])


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (("a" + HIGH, LOW + "b"), f"a{FACE}b"),
        ((HIGH, LOW), FACE),
        ((HIGH, LOW + HIGH, LOW), FACE * 2),
        (("a" + HIGH, "b"), f"a{LOST}b"),
        (("a", LOW + "b"), f"a{LOST}b"),
        (("a", HIGH), f"a{LOST}"),
    ],
    ids=["cut", "alone", "twice", "high only", "low only", "high at the end"],
)
@pytest.mark.parametrize("name", WIRES)
def test_halves_of_a_character(name: str, pieces: tuple[str, ...], text: str, size: int) -> None:
    key, api, write, write_whole = WIRES[name]
    target = provider(key)
    decoder = opened(target, context(key, api, "m"))
    body = write(*pieces)
    events: list[StreamEvent] = []
    for at in range(0, len(body), size):
        fed = decoder.feed(body[at : at + size])
        pieces_of(fed).encode()  # nothing is given out that cannot be printed
        events += fed
    events += decoder.end()
    message = decoder.message()

    assert text in pieces_of(events)
    assert text in str(message.content[0])
    read = whole(target, write_whole("".join(pieces)), context(key, api, "m"))
    assert read.content == message.content
    str(read.content).encode()
    json.dumps([str(block) for block in message.content], ensure_ascii=False).encode()


def test_half_a_character_that_a_cut_leaves_alone_is_kept_as_lost() -> None:
    decoder = opened(provider("openai"), context("openai", "chat", "m"))
    events = decoder.feed(chat("a" + HIGH).partition(b"\n\n")[0] + b"\n\n")
    assert pieces_of(events) == "a"
    assert pieces_of(decoder.end(broken=True)) == LOST
    assert decoder.partial().content == (TextBlock(text="a" + LOST),)
