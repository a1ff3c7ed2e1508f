"""The official SDK reads the same bytes and must agree on text, calls, usage and finish."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletion

from interlingua.types.messages import Message
from tests.plugins.chat_completions.support import body, chunk, sdk, sse, streamed, whole

USAGE = {
    "prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14,
    "prompt_tokens_details": {"cached_tokens": 4}, "completion_tokens_details": {"reasoning_tokens": 2},
}  # fmt: skip


def call(number: int, arguments: str) -> dict[str, Any]:
    return {"id": f"call_{number}", "type": "function", "function": {"name": f"f{number}", "arguments": arguments}}


WHOLE = {
    "text": body({"role": "assistant", "content": "Hé 😀"}, usage=USAGE),
    "calls": body({"content": None, "role": "assistant", "tool_calls": [call(0, '{"a": 1}'), call(1, "")]}, "stop"),
    "refusal": body({"role": "assistant", "content": None, "refusal": "no"}, usage=USAGE),
    "length": body({"role": "assistant", "content": "cut"}, "length", usage=USAGE),
}
PIECES = [chunk({"role": "assistant", "content": "", "refusal": None})]
STREAMS = {
    "text": [*PIECES, chunk({"content": "Hé "}), chunk({"content": "😀"}), chunk({}, "stop"), chunk(None, usage=USAGE)],
    "calls": [
        *PIECES,
        chunk({"tool_calls": [{"index": 0, **call(0, "")}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"a":'}}]}),
        chunk({"tool_calls": [{"index": 1, **call(1, "{")}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": " 1}"}}]}),
        chunk({"tool_calls": [{"index": 1, "function": {"arguments": "}"}}]}),
        chunk({}, "tool_calls"),
        chunk(None, usage=USAGE),
    ],
    "refusal": [*PIECES, chunk({"refusal": "n"}), chunk({"refusal": "o"}), chunk({}, "stop")],
}


def agree(theirs: ChatCompletion, ours: Message) -> None:
    message = theirs.choices[0].message
    assert ours.text == (message.content or "") + (message.refusal or "")
    calls = [(c.id, c.function.name, c.function.arguments) for c in message.tool_calls or [] if c.type == "function"]
    assert [(c.provider_id, c.name, c.raw_input) for c in ours.tool_calls] == calls
    assert ours.metadata.stop_reason_raw == theirs.choices[0].finish_reason
    usage = ours.metadata.usage
    assert usage is not None
    if theirs.usage is not None:
        assert (usage.input_tokens, usage.output_tokens) == (theirs.usage.prompt_tokens, theirs.usage.completion_tokens)
        assert theirs.usage.prompt_tokens_details is not None
        assert usage.cached_input_tokens == theirs.usage.prompt_tokens_details.cached_tokens
    else:
        assert usage.input_tokens is None


@pytest.mark.parametrize("name", WHOLE)
def test_whole(name: str) -> None:
    raw = json.dumps(WHOLE[name]).encode()
    agree(ChatCompletion.model_validate(WHOLE[name]), whole(raw))
    agree(sdk(raw, "application/json").chat.completions.create(model="m", messages=[]), whole(raw))


@pytest.mark.parametrize("name", STREAMS)
def test_streamed_and_both_roads(name: str) -> None:
    state: ChatCompletionStreamState[None] = ChatCompletionStreamState()
    events = sdk(sse(STREAMS[name]), "text/event-stream").chat.completions.create(model="m", messages=[], stream=True)
    for event in events:
        state.handle_chunk(event)
    theirs = state.current_completion_snapshot
    ours = streamed(STREAMS[name])
    agree(theirs, ours)
    assert whole(json.dumps(theirs.to_dict()).encode()) == ours
