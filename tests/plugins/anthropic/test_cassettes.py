"""Authored answers for what a local server cannot show; the official SDK reads the same bytes and agrees with us."""

from __future__ import annotations

import anthropic
import pytest

from interlingua.errors import AuthenticationError, OverloadedError, ProviderError, RateLimitError
from interlingua.plugins import WireResponse, build_request
from interlingua.types.blocks import RedactedThinkingBlock, ThinkingBlock
from interlingua.types.messages import Message, StopReason
from interlingua.types.options import RequestOptions
from tests.oracle import anthropic_sdk as sdk
from tests.oracle.readings import calls_of, usage_of
from tests.plugins.anthropic.asking import ANTHROPIC, context
from tests.plugins.anthropic.checker import broken_rules
from tests.support import driving
from tests.support.cassettes import RecordedExchange, load_exchanges
from tests.support.compact import compact

STREAMED = ("signed_thinking", "parallel_calls", "pause_turn", "citations")
WHOLE = ("redacted_thinking", "refusal", "cached_tokens", "image")
MODEL = "claude-opus-4-6"


def _exchange(name: str) -> RecordedExchange:
    (found,) = load_exchanges(f"anthropic/{name}.yaml")
    return found


def _read(name: str) -> Message:
    body = _exchange(name).body
    road = driving.streamed if name in STREAMED else driving.whole
    return road(ANTHROPIC, body, context(MODEL))


@pytest.mark.parametrize("name", [*STREAMED, *WHOLE])
def test_the_sdk_reads_the_same(name: str) -> None:
    body = _exchange(name).body
    expected = sdk.reading(sdk.streamed(body) if name in STREAMED else sdk.whole(body))
    message = _read(name)

    assert message.text == expected.text
    assert calls_of(message) == expected.calls
    assert message.metadata.stop_reason is expected.stop
    assert usage_of(message) == expected.usage


@pytest.mark.parametrize("name", [*STREAMED, *WHOLE])
def test_the_answer_can_be_sent_back(name: str) -> None:
    from interlingua.types.factories import tool_result, user

    message = _read(name)
    results = [tool_result(call, "r") for call in message.tool_calls]
    request = build_request(ANTHROPIC, [user("q"), message, *results, user("n")], [], RequestOptions(model=MODEL))

    assert broken_rules(request.body) == []


def test_signed_thinking_is_kept_with_its_signature() -> None:
    message = _read("signed_thinking")

    assert message.content[0] == ThinkingBlock(text="Two files; read both.", signature="EqQBCgIYAhIkYXV0aG9yZWQ=")
    assert message.metadata.usage is not None
    assert message.metadata.usage.reasoning_tokens == 22


def test_redacted_thinking_is_kept() -> None:
    assert _read("redacted_thinking").content[0] == RedactedThinkingBlock(data="EmwKAhgBEgxhdXRob3JlZA==")


def test_parallel_calls_keep_their_arguments_apart() -> None:
    assert calls_of(_read("parallel_calls")) == (("read_file", {"path": "a.txt"}), ("read_file", {"path": "b.txt"}))


def test_a_refusal_is_a_stop_reason() -> None:
    assert _read("refusal").metadata.stop_reason is StopReason.REFUSAL


def test_cached_tokens_are_part_of_the_input() -> None:
    usage = _read("cached_tokens").metadata.usage

    assert usage is not None
    assert usage.input_tokens == 25 + 2048 + 300
    assert (usage.cached_input_tokens, usage.cache_creation_1h_input_tokens) == (2048, 200)


def test_an_image_request_is_the_one_we_write() -> None:
    from interlingua.types.blocks import ImageBlock, MediaSource, TextBlock
    from interlingua.types.factories import user

    asked = _exchange("image").request
    data = asked["messages"][0]["content"][1]["source"]["data"]
    image = ImageBlock(source=MediaSource(kind="base64", data=data), media_type="image/png")
    message = user([TextBlock(text="What is this?"), image])
    request = build_request(ANTHROPIC, [message], [], RequestOptions(model=MODEL, max_tokens=1024))

    assert request.body == compact(asked)


@pytest.mark.parametrize(
    ("name", "ours", "theirs"),
    [
        ("unauthorized", AuthenticationError, anthropic.AuthenticationError),
        ("rate_limited", RateLimitError, anthropic.RateLimitError),
        ("overloaded", OverloadedError, anthropic.APIStatusError),
    ],
)
def test_failures_have_the_class_the_sdk_gives_them(
    name: str, ours: type[ProviderError], theirs: type[anthropic.APIStatusError]
) -> None:
    found = _exchange(name)
    response = WireResponse(status=found.status, headers=found.headers, body=found.body)
    error = ANTHROPIC.from_wire_error(response, context())
    with pytest.raises(theirs) as caught, sdk.client(found.body, status=found.status, headers=found.headers) as asked:
        asked.messages.create(**sdk.ASKED)

    assert type(error) is ours
    assert error.status == caught.value.status_code == found.status
    assert error.retry_after == (7 if name == "rate_limited" else None)


def test_an_error_in_the_stream_keeps_the_text_and_fails_in_the_sdk_too() -> None:
    body = _exchange("error_in_stream").body
    with pytest.raises(OverloadedError) as ours:
        driving.streamed(ANTHROPIC, body, context(MODEL))
    with pytest.raises(anthropic.APIStatusError):
        sdk.streamed(body)

    assert ours.value.partial.text == "They are "
