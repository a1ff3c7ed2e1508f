"""Authored answers for what no local server can show; the official SDK reads the same bytes and agrees with us."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from openrouter import errors as theirs_errors

from interlingua.errors import (
    AuthenticationError,
    ModelNotFoundError,
    OverloadedError,
    ProviderError,
    QuotaExceededError,
    RateLimitError,
)
from interlingua.plugins import WireResponse
from interlingua.types.blocks import (
    AudioBlock,
    CacheHint,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    MediaSource,
    RedactedThinkingBlock,
    TextBlock,
    VideoBlock,
)
from interlingua.types.factories import assistant, tool_result, user
from interlingua.types.messages import Message, Role
from interlingua_openrouter.costs import reported_cost
from tests.oracle import openrouter_sdk as sdk
from tests.oracle.openai_sdk import read_chat
from tests.plugins.openrouter.asking import MODEL, OPENROUTER, asked, body, context
from tests.support import driving
from tests.support.adapter import READ
from tests.support.cassettes import RecordedExchange, load_exchanges
from tests.support.chat_merge import merged

SCHEMA = {
    "type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"],
    "additionalProperties": False,
}  # fmt: skip
FORCED = "anthropic/claude-opus-4.8"  # newer models refuse to be forced
STREAMED = ("reasoning_details", "parallel_calls")
WHOLE = (
    "cached_tokens", "encrypted_reasoning", "citations", "image_out", "media_in", "structured", "forced_tool",
    "reasoning_details_whole", "parallel_calls_whole",
)  # fmt: skip


def _exchange(name: str) -> RecordedExchange:
    (found,) = load_exchanges(f"openrouter/{name}.yaml")
    return found


def _read(name: str) -> Message:
    found = _exchange(name)
    road = driving.streamed if name in STREAMED else driving.whole
    return road(OPENROUTER, found.body, context(found.request["model"]))


@pytest.mark.parametrize("name", [*STREAMED, *WHOLE])
def test_the_sdk_reads_the_same(name: str) -> None:
    raw = _exchange(name).body
    expected = read_chat(merged(sdk.streamed(raw)) if name in STREAMED else sdk.whole(raw))
    message = _read(name)
    usage = message.metadata.usage

    assert message.text == expected.text
    assert tuple([(call.name, call.raw_input) for call in message.tool_calls]) == expected.calls
    assert message.metadata.stop_reason is expected.stop
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.cached_input_tokens) == expected.usage[:3]
    assert (usage.cache_creation_input_tokens, usage.reasoning_tokens) == expected.usage[3:]


@pytest.mark.parametrize("name", ["reasoning_details", "reasoning_details_whole", "encrypted_reasoning"])
def test_the_details_the_sdk_reads_go_back_unchanged(name: str) -> None:
    found = _exchange(name)
    read = merged(sdk.streamed(found.body)) if name in STREAMED else sdk.whole(found.body)
    details = [_said(one) for one in read["choices"][0]["message"]["reasoning_details"]]
    message = _read(name)
    results = [tool_result(call, "r") for call in message.tool_calls]
    sent = body([user("q"), message, *results], model=found.request["model"])["messages"][1]

    assert sent["reasoning_details"] == details


def _said(detail: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in detail.items() if value is not None}


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("reasoning_details", lambda: asked([user("Compare a.txt and b.txt.")], [READ], effort="high", stream=True)),
        ("parallel_calls", lambda: asked([user("Read a.txt and b.txt.")], [READ], stream=True)),
        ("cached_tokens", lambda: asked([_cached("A long and steady prompt."), user("Compare.")])),
        ("media_in", lambda: asked([user(_media())], model="google/gemini-3.8-flash")),
        ("structured", lambda: asked([user("Which?")], response_schema=SCHEMA)),
        ("forced_tool", lambda: asked(_told_late(), [READ], model=FORCED, tool_choice="required")),
        ("citations", lambda: asked([user("News?")], provider_options={"plugins": [{"id": "web"}]})),
    ],
)
def test_the_request_is_the_one_we_write(name: str, made: Any) -> None:
    import json

    assert json.loads(made().body) == _exchange(name).request


def _media() -> list[ContentBlock]:
    def held(data: str) -> MediaSource:
        return MediaSource(kind="base64", data=data)

    return [
        TextBlock(text="What are these?"),
        ImageBlock(source=held("iVBORw0KGgo="), media_type="image/png"),
        ImageBlock(source=MediaSource(kind="url", data="https://example.com/a.png")),
        DocumentBlock(source=held("JVBERi0xLjQ="), media_type="application/pdf", title="a.pdf"),
        AudioBlock(source=held("UklGRg=="), media_type="audio/wav"),
        VideoBlock(source=held("AAAAGGZ0eXA="), media_type="video/mp4"),
    ]


def _told_late() -> list[Message]:
    late = Message(role=Role.SYSTEM, content=(TextBlock(text="Use tools."),))
    return [user("Hello."), assistant("Hello."), late, user("Read a.txt.")]


def _cached(text: str) -> Message:
    return Message(role=Role.SYSTEM, content=(TextBlock(text=text, cache=CacheHint(ttl="1h")),))


def test_the_cost_is_the_one_the_sdk_reads() -> None:
    read = sdk.whole(_exchange("cached_tokens").body)

    assert reported_cost(_read("cached_tokens")) == Decimal(str(read["usage"]["cost"])) == Decimal("0.00123")


def test_encrypted_reasoning_images_and_citations_are_blocks() -> None:
    assert RedactedThinkingBlock(data="ZW5jcnlwdGVk") in _read("encrypted_reasoning").content
    assert isinstance(_read("image_out").content[-1], ImageBlock)
    (text,) = _read("citations").content
    assert isinstance(text, TextBlock)
    assert text.citations[0]["url_citation"]["url"] == "https://example.com/"


@pytest.mark.parametrize(
    ("name", "ours", "theirs"),
    [
        ("unauthorized", AuthenticationError, theirs_errors.UnauthorizedResponseError),
        ("no_credits", QuotaExceededError, theirs_errors.PaymentRequiredResponseError),
        ("no_endpoints", ModelNotFoundError, theirs_errors.NotFoundResponseError),
        ("rate_limited", RateLimitError, theirs_errors.TooManyRequestsResponseError),
        ("overloaded", OverloadedError, theirs_errors.ProviderOverloadedResponseError),
    ],
)
def test_failures_have_the_class_the_sdk_gives_them(
    name: str, ours: type[ProviderError], theirs: type[theirs_errors.OpenRouterError]
) -> None:
    found = _exchange(name)
    error = OPENROUTER.from_wire_error(
        WireResponse(status=found.status, headers=found.headers, body=found.body), context(MODEL)
    )
    with pytest.raises(theirs) as caught:
        sdk.client(found.body, status=found.status, headers=found.headers).chat.send(**sdk.ASKED)

    assert type(error) is ours
    assert error.status == caught.value.status_code == found.status
    assert str(caught.value) in str(error)
    assert error.retry_after == (7 if name == "rate_limited" else None)


def test_an_error_in_the_stream_keeps_the_text_and_the_sdk_reads_it_too() -> None:
    raw = _exchange("error_in_stream").body
    told = [chunk["error"] for chunk in sdk.streamed(raw) if chunk.get("error")]
    with pytest.raises(OverloadedError) as caught:
        driving.streamed(OPENROUTER, raw, context())

    assert str(caught.value).startswith(told[0]["message"])
    assert caught.value.partial.text == "They are "


@pytest.mark.parametrize("name", STREAMED)
def test_the_whole_answer_is_the_one_that_was_streamed(name: str) -> None:
    asked_for = {field: value for field, value in _exchange(name).request.items() if field != "stream"}

    assert _exchange(f"{name}_whole").request == asked_for
    assert _read(f"{name}_whole") == _read(name)
