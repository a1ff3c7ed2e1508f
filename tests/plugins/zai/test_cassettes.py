"""Authored answers for what no local server can show; the official SDK reads the same bytes and agrees with us."""

from __future__ import annotations

import json
from typing import Any

import pytest
from zai.core import APIAuthenticationError, APIReachLimitError, APIResponseError, APIStatusError

from interlingua.errors import AuthenticationError, ProviderError, QuotaExceededError, RateLimitError, ServerError
from interlingua.plugins import WireResponse
from interlingua.types.blocks import ImageBlock, MediaSource, TextBlock, ThinkingBlock
from interlingua.types.factories import assistant, tool_result, user
from interlingua.types.messages import Message, Role, StopReason
from tests.oracle import zai_sdk as sdk
from tests.oracle.openai_sdk import read_chat
from tests.plugins.zai.asking import ZAI, asked, context
from tests.support import driving
from tests.support.adapter import READ
from tests.support.cassettes import RecordedExchange, load_exchanges
from tests.support.chat_merge import merged

URL = "https://example.com/a.png"
STREAMED = ("thinking_then_call",)
WHOLE = ("preserved_thinking", "sensitive", "image", "parallel_calls")


def _exchange(name: str) -> RecordedExchange:
    (found,) = load_exchanges(f"zai/{name}.yaml")
    return found


def _read(name: str) -> Message:
    road = driving.streamed if name in STREAMED else driving.whole
    return road(ZAI, _exchange(name).body, context())


@pytest.mark.parametrize("name", [*STREAMED, *WHOLE])
def test_the_sdk_reads_the_same(name: str) -> None:
    raw = _exchange(name).body
    read = merged(sdk.streamed(raw)) if name in STREAMED else sdk.whole(raw)
    expected = read_chat(read)
    message = _read(name)
    usage = message.metadata.usage

    assert message.text == expected.text
    thought = read["choices"][0]["message"].get("reasoning_content") or ""
    assert "".join(block.text for block in message.thinking_blocks) == thought
    assert tuple([(call.name, call.raw_input) for call in message.tool_calls]) == expected.calls
    assert message.metadata.stop_reason is expected.stop
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.cached_input_tokens) == expected.usage[:3]
    assert usage.reasoning_tokens == expected.usage[4]


def test_the_next_turn_preserves_the_thinking_of_the_last() -> None:
    message = _read("thinking_then_call")
    result = tool_result(message.tool_calls[0], "one")
    request = asked([user("Compare a.txt and b.txt."), message, result], [READ])

    assert message.content[0] == ThinkingBlock(text="Two files; read one.")
    assert json.loads(request.body) == _exchange("preserved_thinking").request


def test_the_other_requests_are_the_ones_we_write() -> None:
    image = ImageBlock(source=MediaSource(kind="base64", data="iVBORw0KGgo="), media_type="image/png")
    seen = asked([user([TextBlock(text="What is this?"), image])], model="glm-4.6v")
    streamed = asked([user("Compare a.txt and b.txt.")], [READ], stream=True)

    assert json.loads(seen.body) == _exchange("image").request
    assert json.loads(streamed.body) == _exchange("thinking_then_call").request

    shown = user([TextBlock(text="What is this?"), ImageBlock(source=MediaSource(kind="url", data=URL))])
    history = [_told("Be brief."), shown, assistant("A dot."), _told("Use tools."), user("Read a.txt and b.txt.")]
    late = asked(history, [READ], model="glm-4.6v")
    assert json.loads(late.body) == _exchange("parallel_calls").request


def _told(text: str) -> Message:
    return Message(role=Role.SYSTEM, content=(TextBlock(text=text),))


def test_the_sdk_sends_an_image_as_we_do() -> None:
    sent: list[Any] = []
    asked_for = json.loads(json.dumps(_exchange("image").request))
    asked_for["messages"][0]["content"][1]["image_url"]["url"] = "data:image/png;base64,iVBORw0KGgo="
    asked_for.pop("thinking")
    with pytest.raises(APIStatusError):
        sdk.client(b"{}", status=500, seen=sent.append).chat.completions.create(**asked_for)

    assert json.loads(sent[0].content)["messages"] == _exchange("image").request["messages"]


def test_a_moderated_answer_is_a_refusal() -> None:
    assert _read("sensitive").metadata.stop_reason is StopReason.REFUSAL


@pytest.mark.parametrize(
    ("name", "ours", "retryable", "theirs"),
    [
        ("unauthorized", AuthenticationError, False, APIAuthenticationError),
        ("rate_limited", RateLimitError, True, APIReachLimitError),
        ("in_arrears", QuotaExceededError, False, APIReachLimitError),  # the SDK looks at the status alone
    ],
)
def test_failures_are_failures_for_the_sdk_too(
    name: str, ours: type[ProviderError], retryable: bool, theirs: type[APIStatusError]
) -> None:
    found = _exchange(name)
    error = ZAI.from_wire_error(WireResponse(status=found.status, headers=found.headers, body=found.body), context())
    with pytest.raises(theirs) as caught:
        sdk.client(found.body, status=found.status, headers=found.headers).chat.completions.create(**sdk.ASKED)

    assert type(error) is ours
    assert error.retryable is retryable
    assert error.status == caught.value.status_code == found.status


def test_an_error_in_the_stream_keeps_the_text_and_fails_in_the_sdk_too() -> None:
    raw = _exchange("error_in_stream").body
    with pytest.raises(ServerError) as ours:
        driving.streamed(ZAI, raw, context())
    with pytest.raises(APIResponseError):
        sdk.streamed(raw)

    assert ours.value.partial.text == "They are "
