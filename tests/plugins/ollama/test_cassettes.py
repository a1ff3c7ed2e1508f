"""Authored exchanges: the official SDK reads the same bytes and agrees with us; the requests are the ones we write."""

from __future__ import annotations

from typing import Any

import ollama
import pytest

from interlingua._json import thaw
from interlingua.errors import ContextWindowExceededError, ModelNotFoundError, ProviderError, ServerError
from interlingua.plugins import WireResponse
from interlingua.types.blocks import ImageBlock, MediaSource, TextBlock, ThinkingBlock
from interlingua.types.factories import assistant, system, tool_result, user
from interlingua.types.messages import Message, StopReason
from tests.oracle.readings import calls_of
from tests.plugins.ollama.wire import OLLAMA, asked, context, sdk
from tests.support import driving
from tests.support.adapter import READ
from tests.support.cassettes import RecordedExchange, load_exchanges
from tests.support.compact import compact

STREAMED = ("thinking", "parallel_calls")
WHOLE = (
    *("thinking_whole", "parallel_calls_whole", "system_in_list"),
    *("tool_results", "image", "structured", "cut_short"),
)
QUESTION = user("Compare a.txt and b.txt.")


def _exchange(name: str) -> RecordedExchange:
    (found,) = load_exchanges(f"ollama/{name}.yaml")
    return found


def _read(name: str) -> Message:
    road = driving.streamed if name in STREAMED else driving.whole
    return road(OLLAMA, _exchange(name).body, context())


def _results() -> list[Message]:
    answer = _read("parallel_calls")
    first, second = answer.tool_calls
    return [QUESTION, answer, tool_result(first, "one"), tool_result(second, "two")]


def _image() -> list[Message]:
    image = ImageBlock(source=MediaSource(kind="base64", data="iVBORw0KGgo="), media_type="image/png")
    return [user([TextBlock(text="What is this?"), image])]


@pytest.mark.parametrize("name", [*STREAMED, *WHOLE])
def test_the_sdk_reads_the_same(name: str) -> None:
    client = sdk(_exchange(name).body)
    parts: list[Any]
    if name in STREAMED:
        parts = list(client.chat(model="m", messages=[], stream=True))
    else:
        parts = [client.chat(model="m", messages=[])]
    message = _read(name)
    usage = message.metadata.usage

    assert message.text == "".join(part.message.content or "" for part in parts)
    assert "".join(t.text for t in message.thinking_blocks) == "".join(part.message.thinking or "" for part in parts)
    calls = [call.function for part in parts for call in part.message.tool_calls or ()]
    assert calls_of(message) == tuple((call.name, dict(call.arguments)) for call in calls)
    assert message.metadata.stop_reason_raw == parts[-1].done_reason
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (parts[-1].prompt_eval_count, parts[-1].eval_count)


@pytest.mark.parametrize(
    ("name", "messages", "options"),
    [
        ("thinking", [QUESTION], {"stream": True, "thinking": True}),
        ("parallel_calls", [QUESTION], {"stream": True, "tools": [READ]}),
        ("thinking_whole", [QUESTION], {"thinking": True}),
        ("parallel_calls_whole", [QUESTION], {"tools": [READ]}),
        (
            "system_in_list",
            [
                system("Be kind."),
                user("Hello."),
                assistant("Hello!"),
                system("Now answer in French."),
                user("And you?"),
            ],
            {},
        ),
        ("tool_results", _results(), {"tools": [READ]}),
        ("image", _image(), {}),
        (
            "structured",
            [user("How old is the moon?")],
            {
                "response_schema": {
                    "type": "object",
                    "properties": {"age": {"type": "integer"}},
                    "required": ["age"],
                },
                "max_tokens": 64,
                "temperature": 0,
                "provider_options": {"num_ctx": 8192},
            },
        ),
    ],
)
def test_the_request_is_the_one_we_write(name: str, messages: list[Message], options: dict[str, Any]) -> None:
    made = asked(messages, **options)

    assert made.body == compact(_exchange(name).request)
    assert not made.losses


def test_the_sdk_takes_the_request_for_one_of_its_own() -> None:
    expected = _exchange("tool_results").request
    theirs = ollama._types.ChatRequest(**expected).model_dump(exclude_none=True)

    assert (theirs["tools"], theirs["messages"]) == (expected["tools"], expected["messages"])


@pytest.mark.parametrize("name", STREAMED)
def test_both_roads_meet(name: str) -> None:
    assert _read(name).content == _read(f"{name}_whole").content


def test_what_the_answers_hold() -> None:
    assert _read("thinking").content == (
        ThinkingBlock(text="Two files; read both."),
        TextBlock(text="They are alike."),
    )
    calls = _read("parallel_calls")
    assert [(c.provider_id, thaw(c.input)) for c in calls.tool_calls] == [
        ("call_8x2kq0ab", {"path": "a.txt"}),
        ("call_8x2kq0ac", {"path": "b.txt"}),
    ]
    assert calls.metadata.stop_reason is StopReason.TOOL_USE
    cut = _read("cut_short").metadata
    assert cut.stop_reason is StopReason.MAX_TOKENS
    assert cut.usage is not None
    assert cut.usage.input_tokens is None


@pytest.mark.parametrize(
    ("name", "kind"), [("model_not_found", ModelNotFoundError), ("context_overflow", ContextWindowExceededError)]
)
def test_failures_fail_in_the_sdk_too(name: str, kind: type[ProviderError]) -> None:
    found = _exchange(name)
    error = OLLAMA.from_wire_error(WireResponse(status=found.status, headers=found.headers, body=found.body), context())
    with pytest.raises(ollama.ResponseError) as caught:
        sdk(found.body, status=found.status).chat(model="m", messages=[])

    assert type(error) is kind
    assert (error.message, error.status) == (caught.value.error, caught.value.status_code)


def test_an_error_in_the_stream_keeps_the_text_and_fails_in_the_sdk_too() -> None:
    raw = _exchange("error_in_stream").body
    with pytest.raises(ServerError) as ours:
        driving.streamed(OLLAMA, raw, context())
    with pytest.raises(ollama.ResponseError):
        list(sdk(raw).chat(model="m", messages=[], stream=True))

    assert ours.value.partial is not None
    assert ours.value.partial.text == "They are "
