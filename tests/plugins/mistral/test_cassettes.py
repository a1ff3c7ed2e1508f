"""Authored exchanges: the official SDK reads the same bytes and agrees with us; the requests are the ones we write."""

from __future__ import annotations

from typing import Any

import pytest
from mistralai.client.errors import MistralError
from mistralai.client.models import ChatCompletionRequest

from interlingua.errors import AuthenticationError, BadRequestError, ProviderError, RateLimitError
from interlingua.plugins import WireResponse
from interlingua.types.blocks import AudioBlock, DocumentBlock, ImageBlock, MediaSource, TextBlock, ThinkingBlock
from interlingua.types.factories import assistant, system, tool_result, user
from interlingua.types.messages import Message, StopReason
from tests.oracle.readings import calls_of
from tests.plugins.mistral.checker import broken_rules
from tests.plugins.mistral.wire import ASKED, MISTRAL, MODEL, answer, asked, context, sdk, sdk_streamed, sdk_whole
from tests.support import driving
from tests.support.adapter import READ
from tests.support.cassettes import RecordedExchange, load_exchanges
from tests.support.compact import compact

STREAMED = ("thinking", "parallel_calls")
WHOLE = (
    *("thinking_whole", "parallel_calls_whole", "thinking_sent_back", "user_after_results", "later_system"),
    *("image_and_document", "addresses", "image_in_result", "structured", "prefix", "context_full"),
)
REASONS = "magistral-medium-latest"
QUESTION = user("Compare a.txt and b.txt.")
SCHEMA = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}


def _exchange(name: str) -> RecordedExchange:
    (found,) = load_exchanges(f"mistral/{name}.yaml")
    return found


def _read(name: str, model: str = MODEL) -> Message:
    road = driving.streamed if name in STREAMED else driving.whole
    return road(MISTRAL, _exchange(name).body, context(model))


def _pieces(content: Any, kind: str) -> str:
    if isinstance(content, str):
        return content if kind == "text" else ""
    found = ""
    for part in content or ():
        if part["type"] == kind:
            found += part["text"] if kind == "text" else "".join(inner["text"] for inner in part["thinking"])
    return found


@pytest.mark.parametrize("name", [*STREAMED, *WHOLE])
def test_the_sdk_reads_the_same(name: str) -> None:
    raw = _exchange(name).body
    bodies = sdk_streamed(raw) if name in STREAMED else [sdk_whole(raw)]
    said = [body["choices"][0].get("delta") or body["choices"][0]["message"] for body in bodies]
    message = _read(name)
    usage = message.metadata.usage

    assert message.text == "".join(_pieces(one["content"], "text") for one in said)
    assert "".join(t.text for t in message.thinking_blocks) == "".join(
        _pieces(one["content"], "thinking") for one in said
    )
    calls = [call for one in said for call in one.get("tool_calls") or ()]
    ours = [(call.provider_id, call.name, call.raw_input) for call in message.tool_calls]
    assert ours == [(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in calls]
    assert message.metadata.stop_reason_raw == bodies[-1]["choices"][0]["finish_reason"]
    assert usage is not None
    theirs = bodies[-1]["usage"]
    assert (usage.input_tokens, usage.output_tokens) == (theirs["prompt_tokens"], theirs["completion_tokens"])


def _after_results() -> list[Message]:
    said = _read("parallel_calls")
    first, second = said.tool_calls
    return [QUESTION, said, tool_result(first, "one"), tool_result(second, "two"), user("Be brief.")]


def _media() -> list[Message]:
    image = ImageBlock(source=MediaSource(kind="base64", data="iVBORw0KGgo="), media_type="image/png")
    paper = DocumentBlock(source=MediaSource(kind="url", data="https://example.com/a.pdf"), title="a.pdf")
    return [user([TextBlock(text="What are these?"), image, paper])]


def _image_in_result() -> list[Message]:
    image = ImageBlock(source=MediaSource(kind="base64", data="iVBORw0KGgo="), media_type="image/png")
    call = _read("parallel_calls").tool_calls[0]
    return [QUESTION, answer(call), tool_result(call, [TextBlock(text="one"), image])]


def _audio() -> list[Message]:
    return [user([TextBlock(text="What is said?"), AudioBlock(source=MediaSource(kind="base64", data="aGk="))])]


def _addresses() -> list[Message]:
    image = ImageBlock(source=MediaSource(kind="url", data="https://example.com/a.png"))
    paper = DocumentBlock(source=MediaSource(kind="base64", data="JVBERi0="))
    return [user([TextBlock(text="What are these?"), image, paper])]


def _prefix() -> list[Message]:
    return [user("Tell a tale."), answer(TextBlock(text="Once"))]


ASKS: list[tuple[str, list[Message], dict[str, Any]]] = [
    ("thinking", [QUESTION], {"model": REASONS, "stream": True}),
    ("thinking_sent_back", [QUESTION, _read("thinking", REASONS), user("Sure?")], {"model": REASONS}),
    (
        "parallel_calls",
        [QUESTION],
        {"stream": True, "tools": [READ], "tool_choice": "required", "parallel_tool_calls": True},
    ),
    ("user_after_results", _after_results(), {"tools": [READ]}),
    ("image_and_document", _media(), {}),
    (
        "structured",
        [user("How old is the moon?")],
        {"response_schema": SCHEMA, "max_tokens": 64, "temperature": 0, "seed": 7},
    ),
    ("prefix", _prefix(), {"provider_options": {"prefix": True}}),
    ("thinking_whole", [QUESTION], {"model": REASONS}),
    (
        "parallel_calls_whole",
        [QUESTION],
        {"tools": [READ], "tool_choice": "required", "parallel_tool_calls": True},
    ),
    (
        "later_system",
        [system("Be kind."), user("Hello."), assistant("Hello!"), system("Now answer in French."), user("And you?")],
        {},
    ),
    ("image_in_result", _image_in_result(), {"tools": [READ]}),
    ("audio", _audio(), {"model": "voxtral-small-latest"}),
    ("addresses", _addresses(), {}),
]


@pytest.mark.parametrize(("name", "messages", "options"), ASKS, ids=[name for name, _, _ in ASKS])
def test_the_request_is_the_one_we_write(name: str, messages: list[Message], options: dict[str, Any]) -> None:
    made = asked(messages, **options)

    assert made.body == compact(_exchange(name).request)
    assert broken_rules(made.body) == []


@pytest.mark.parametrize("name", [name for name, _, _ in ASKS])
def test_the_sdk_takes_the_request_for_one_of_its_own(name: str) -> None:
    expected = _exchange(name).request
    theirs = ChatCompletionRequest.model_validate(expected).model_dump(mode="json", by_alias=True, exclude_unset=True)

    assert [message["role"] for message in theirs["messages"]] == [one["role"] for one in expected["messages"]]
    assert [message["content"] for message in theirs["messages"]] == [one["content"] for one in expected["messages"]]


@pytest.mark.parametrize("name", STREAMED)
def test_both_roads_meet(name: str) -> None:
    assert _read(name) == _read(f"{name}_whole")


def test_what_the_answers_hold() -> None:
    assert _read("thinking").content == (
        ThinkingBlock(text="Two files; read both.", signature="c2lnbmVk"),
        TextBlock(text="They are alike."),
    )
    assert calls_of(_read("parallel_calls")) == (("read_file", {"path": "a.txt"}), ("read_file", {"path": "b.txt"}))
    assert _read("context_full").metadata.stop_reason is StopReason.CONTEXT_WINDOW
    usage = _read("prefix").metadata.usage
    assert usage is not None
    assert (usage.cached_input_tokens, usage.service_tier) == (64, "standard")


@pytest.mark.parametrize(
    ("name", "kind", "delay"),
    [
        ("order_refused", BadRequestError, None),
        ("unauthorized", AuthenticationError, None),
        ("invalid_field", BadRequestError, None),
        ("rate_limited", RateLimitError, 7),
    ],
)
def test_failures_fail_in_the_sdk_too(name: str, kind: type[ProviderError], delay: float | None) -> None:
    found = _exchange(name)
    error = MISTRAL.from_wire_error(
        WireResponse(status=found.status, headers=found.headers, body=found.body), context()
    )
    with pytest.raises(MistralError) as caught:
        sdk(found.body, status=found.status).chat.complete(**ASKED)

    assert type(error) is kind
    assert (error.status, error.retry_after) == (caught.value.status_code, delay)


def test_what_is_refused_is_what_we_do_not_send() -> None:
    """The request of that refusal is the one without a turn in between."""
    refused = _exchange("order_refused").request

    assert broken_rules(compact(refused)) == ["a user message right behind results (3230)"]
