"""Authored answers for what a local server cannot show; the official SDK reads the same bytes and agrees with us."""

from __future__ import annotations

import openai
import pytest

from interlingua.errors import (
    AuthenticationError,
    OverloadedError,
    ProviderError,
    QuotaExceededError,
    RateLimitError,
    ServerError,
)
from interlingua.plugins import WireResponse, build_request
from interlingua.types.blocks import AudioBlock, ContentBlock, ImageBlock, MediaSource, TextBlock, ThinkingBlock
from interlingua.types.factories import tool_result, user
from interlingua.types.messages import Message, StopReason
from interlingua.types.options import RequestOptions
from tests.oracle import openai_sdk as sdk
from tests.oracle.openai_recorded import reading
from tests.plugins.chat_completions import checker as chat_checker
from tests.plugins.openai import checker as responses_checker
from tests.plugins.openai.wire import PROVIDER, context
from tests.support import driving
from tests.support.adapter import READ
from tests.support.cassettes import RecordedExchange, load_exchanges
from tests.support.compact import compact

MODELS = {"chat": "gpt-4.1", "responses": "gpt-5.5"}
READERS = {
    ("chat", False): (sdk.whole_chat, sdk.read_chat),
    ("chat", True): (sdk.streamed_chat, sdk.read_chat),
    ("responses", False): (sdk.whole_response, sdk.read_response),
    ("responses", True): (sdk.streamed_response, sdk.read_response),
}
ANSWERS = [
    *(f"chat_{name}" for name in ("parallel_calls", "refusal", "cached_tokens", "image", "audio", "citations")),
    *(f"responses_{name}" for name in ("parallel_calls", "refusal", "cached_tokens", "image", "citations")),
    *(f"responses_reasoning#{number}" for number in range(3)),
    "responses_background#3",
]


def _exchange(name: str) -> RecordedExchange:
    file, _, number = name.partition("#")
    return load_exchanges(f"openai/{file}.yaml")[int(number or 0)]


def _api(name: str) -> str:
    return "responses" if "/responses" in _exchange(name).uri else "chat"


def _streamed(found: RecordedExchange) -> bool:
    return found.headers["content-type"].startswith("text/event-stream")


def _read(name: str) -> Message:
    found, api = _exchange(name), _api(name)
    made = context(MODELS[api], api)
    return (driving.streamed if _streamed(found) else driving.whole)(PROVIDER, found.body, made)


def _asked(messages: list[Message], api: str, **options: object) -> bytes:
    tools = [READ] if options.pop("tools", False) else []
    asked = RequestOptions(**{"model": MODELS[api], "api": api} | options)  # type: ignore[arg-type]
    return build_request(PROVIDER, messages, tools, asked).body


@pytest.mark.parametrize("name", ANSWERS)
def test_the_sdk_reads_the_same(name: str) -> None:
    found = _exchange(name)
    parse, read = READERS[_api(name), _streamed(found)]

    assert reading(_read(name)) == read(parse(found.body))


@pytest.mark.parametrize("name", ANSWERS)
def test_the_answer_can_be_sent_back(name: str) -> None:
    message, api = _read(name), _api(name)
    results = [tool_result(call, "r") for call in message.tool_calls]
    raw = _asked([user("q"), message, *results, user("n")], api)

    assert (chat_checker if api == "chat" else responses_checker).broken_rules(raw) == []


@pytest.mark.parametrize("name", ["chat_parallel_calls", "responses_parallel_calls"])
def test_interleaved_calls_keep_their_arguments_apart(name: str) -> None:
    calls = [(call.provider_id, call.name, call.raw_input) for call in _read(name).tool_calls]

    assert calls == [("call_A", "read_file", '{"path": "a.txt"}'), ("call_B", "read_file", '{"path": "b.txt"}')]


@pytest.mark.parametrize("name", ["chat_refusal", "responses_refusal"])
def test_a_refusal_is_a_stop_reason_and_its_words_are_kept(name: str) -> None:
    message = _read(name)

    assert message.metadata.stop_reason is StopReason.REFUSAL
    assert message.text == "I cannot help with that."


@pytest.mark.parametrize("name", ["chat_cached_tokens", "responses_cached_tokens"])
def test_cached_and_reasoning_tokens_are_parts_of_the_totals(name: str) -> None:
    usage = _read(name).metadata.usage

    assert usage is not None
    assert (usage.input_tokens, usage.cached_input_tokens, usage.cache_creation_input_tokens) == (2400, 2048, 256)
    assert (usage.output_tokens, usage.reasoning_tokens) == (80, 40)


@pytest.mark.parametrize("name", ["chat_citations", "responses_citations"])
def test_citations_are_kept(name: str) -> None:
    (block,) = _read(name).content

    assert isinstance(block, TextBlock)
    assert [citation["type"] for citation in block.citations] == ["url_citation"]


def _shown(kind: str, data: str) -> ContentBlock:
    source = MediaSource(kind="base64", data=data)
    return AudioBlock(source=source, media_type="audio/wav") if kind == "audio" else ImageBlock(
        source=source, media_type="image/png")  # fmt: skip


@pytest.mark.parametrize("name", ["chat_image", "chat_audio", "responses_image"])
def test_a_request_with_media_is_the_one_we_write(name: str) -> None:
    found = _exchange(name)
    turn = found.request["messages" if _api(name) == "chat" else "input"][0]
    said, shown = turn["content"]
    data = shown["input_audio"]["data"] if "audio" in name else ""
    if not data:
        url = shown["image_url"] if isinstance(shown["image_url"], str) else shown["image_url"]["url"]
        data = url.partition(",")[2]
    asked = [TextBlock(text=said["text"]), _shown(name.partition("_")[2], data)]

    assert _asked([user(asked)], _api(name), model=found.request["model"]) == compact(found.request)


def test_reasoning_is_the_same_on_both_roads_and_keeps_its_encrypted_form() -> None:
    streamed, whole = _read("responses_reasoning#0"), _read("responses_reasoning#1")

    assert streamed == whole
    assert streamed.content[0] == ThinkingBlock(text="One file; read it.", signature="gAAAAABauthored")


@pytest.mark.parametrize("number", [0, 1])
def test_reasoning_goes_back_with_its_call_byte_for_byte(number: int) -> None:
    message = _read(f"responses_reasoning#{number}")
    result = tool_result(message.tool_calls[0], "It says hi.")

    made = _asked([user("Read a.txt."), message, result], "responses", tools=True)
    assert made == compact(_exchange("responses_reasoning#2").request)


@pytest.mark.parametrize(
    ("name", "ours", "theirs", "retryable"),
    [
        ("unauthorized", AuthenticationError, openai.AuthenticationError, False),
        ("rate_limited", RateLimitError, openai.RateLimitError, True),
        ("quota_exhausted", QuotaExceededError, openai.RateLimitError, False),
    ],
)
def test_failures_have_the_class_the_sdk_gives_them(
    name: str, ours: type[ProviderError], theirs: type[openai.APIStatusError], retryable: bool
) -> None:
    found = _exchange(name)
    response = WireResponse(status=found.status, headers=found.headers, body=found.body)
    error = PROVIDER.from_wire_error(response, context())
    with pytest.raises(theirs) as caught, sdk.client(found.body, status=found.status, headers=found.headers) as asked:
        asked.responses.create(**sdk.RESPONSES)

    assert type(error) is ours
    assert error.status == caught.value.status_code == found.status
    assert (error.retryable, error.retry_after) == (retryable, 7 if name == "rate_limited" else None)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("chat_error_in_stream", OverloadedError),
        ("responses_failed_in_stream", ServerError),
        ("responses_error_in_stream", OverloadedError),
    ],
)
def test_an_error_in_the_stream_keeps_the_text_and_the_sdk_fails_too(name: str, kind: type[ProviderError]) -> None:
    found = _exchange(name)
    with pytest.raises(kind) as ours:
        _read(name)
    with pytest.raises(sdk.Unparsed):
        READERS[_api(name), True][0](found.body)

    assert ours.value.partial.text == "They are "
