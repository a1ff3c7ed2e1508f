"""Authored exchanges: the official SDK reads the same bytes and agrees with us; the requests are the ones we write."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from google.genai import errors as sdk_errors
from google.genai import types

from interlingua.errors import (
    AuthenticationError,
    ContentRefusedError,
    ModelNotFoundError,
    OverloadedError,
    ProviderError,
    RateLimitError,
    ServerError,
)
from interlingua.plugins import WireRequest, WireResponse
from interlingua.types.blocks import (
    AudioBlock,
    DocumentBlock,
    ImageBlock,
    MediaSource,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    VideoBlock,
)
from interlingua.types.factories import system, tool_result, user
from interlingua.types.messages import Message, StopReason
from interlingua.types.options import ToolChoice
from tests.oracle.readings import calls_of, usage_of
from tests.plugins.google.checker import broken_rules
from tests.plugins.google.wire import GOOGLE, NEW, OLD, asked, chunk, context, read, sdk, sdk_streamed, sdk_whole
from tests.support import driving
from tests.support.adapter import READ
from tests.support.cassettes import RecordedExchange, load_exchanges

STREAMED = ("thinking", "signed_calls")
WHOLE = (
    *("tool_results", "unsigned_calls", "image", "image_out", "cached_tokens", "cut_short", "structured", "citations"),
    *("code_execution", "media", "system", "forced_tool", "image_result"),
)
QUESTION = user("Compare a.txt and b.txt.")
IMAGE = ImageBlock(source=MediaSource(kind="base64", data="iVBORw0KGgo="), media_type="image/png")
MEDIA = (
    DocumentBlock(source=MediaSource(kind="base64", data="JVBERi0=")),
    AudioBlock(source=MediaSource(kind="base64", data="UklGRg=="), media_type="audio/wav"),
    VideoBlock(source=MediaSource(kind="url", data="https://www.youtube.com/watch?v=authored")),
)
SCHEMA = {"type": "object", "properties": {"same": {"type": "boolean"}}, "required": ["same"]}


def _exchange(name: str) -> RecordedExchange:
    (found,) = load_exchanges(f"google/{name}.yaml")
    return found


def _model(name: str) -> str:
    return _exchange(name).uri.rpartition("/")[2].partition(":")[0]


def _read(name: str) -> Message:
    road = driving.streamed if name in STREAMED else driving.whole
    return road(GOOGLE, _exchange(name).body, context(_model(name)))


def _looked() -> WireRequest:
    call = {"functionCall": {"id": "c1au", "name": "read_file", "args": {"path": "a.png"}}}
    answer = read(chunk({**call, "thoughtSignature": "YXV0aG9yZWQtY2FsbA=="}, finish="STOP"), NEW)
    result = tool_result(answer.tool_calls[0], [TextBlock(text="see"), IMAGE])
    return asked([user("Look at a.png."), answer, result], [READ], model=NEW)


def _shown() -> WireRequest:
    data = _exchange("image").request["contents"][0]["parts"][1]["inlineData"]["data"]
    image = ImageBlock(source=MediaSource(kind="base64", data=data), media_type="image/png")
    return asked([user([TextBlock(text="What is this?"), image])])


def _results() -> WireRequest:
    answer = _read("signed_calls")
    first, second = answer.tool_calls
    history = [QUESTION, answer, tool_result(first, "one"), tool_result(second, "no such file", is_error=True)]
    return asked(history, [READ], model=NEW)


REQUESTS: dict[str, Callable[[], WireRequest]] = {
    "thinking": lambda: asked([QUESTION], model=NEW, stream=True, thinking=True, effort="low"),
    "signed_calls": lambda: asked([QUESTION], [READ], model=NEW, stream=True),
    "tool_results": _results,
    "image": _shown,
    "image_result": _looked,
    "media": lambda: asked([user([TextBlock(text="Which of these agree?"), *MEDIA])]),
    "system": lambda: asked([system("Answer in one word."), user("Hello?")]),
    "forced_tool": lambda: asked([QUESTION], [READ], tool_choice=ToolChoice("read_file")),
    "cut_short": lambda: asked([QUESTION], max_tokens=3),
    "structured": lambda: asked([QUESTION], model=NEW, response_schema=SCHEMA),
    "citations": lambda: asked([user("Capital of Korea?")], provider_options={"tools": [{"googleSearch": {}}]}),
    "code_execution": lambda: asked([user("6*7?")], provider_options={"tools": [{"codeExecution": {}}]}),
}


@pytest.mark.parametrize("name", [*STREAMED, *WHOLE])
def test_the_sdk_reads_the_same(name: str) -> None:
    body = _exchange(name).body
    theirs = (sdk_streamed if name in STREAMED else sdk_whole)(body)
    parts = [part for one in theirs for part in one.parts or ()]
    counts = theirs[-1].usage_metadata or types.GenerateContentResponseUsageMetadata()
    message = _read(name)

    assert message.text == "".join(part.text for part in parts if part.text and not part.thought)
    assert "".join(t.text for t in message.thinking_blocks) == "".join(p.text for p in parts if p.text and p.thought)
    calls = [part.function_call for part in parts if part.function_call]
    assert calls_of(message) == tuple((call.name, call.args) for call in calls)
    assert [call.provider_id for call in message.tool_calls] == [call.id for call in calls]
    assert usage_of(message) == (
        (counts.prompt_token_count or 0) + (counts.tool_use_prompt_token_count or 0),
        (counts.candidates_token_count or 0) + (counts.thoughts_token_count or 0),
        counts.cached_content_token_count or 0,
        0,
    )
    assert message.metadata.stop_reason_raw == theirs[-1].candidates[0].finish_reason.value


@pytest.mark.parametrize("name", sorted(REQUESTS))
def test_the_request_is_the_one_we_write(name: str) -> None:
    exchange = _exchange(name)
    request = REQUESTS[name]()

    assert json.loads(request.body) == exchange.request
    assert json.dumps(json.loads(request.body)["contents"]) == json.dumps(exchange.request["contents"])
    assert exchange.uri.endswith(f"/v1beta{request.path}")
    assert request.losses == ()


@pytest.mark.parametrize("name", sorted(REQUESTS))
def test_the_sdk_knows_every_member_of_our_request(name: str) -> None:
    """Its types forbid what they do not know."""
    body = json.loads(REQUESTS[name]().body)

    for content in body["contents"]:
        types.Content.model_validate(content)
    for tool in body.get("tools", ()):
        types.Tool.model_validate(tool)


@pytest.mark.parametrize("name", [*STREAMED, *WHOLE])
def test_the_answer_can_be_sent_back(name: str) -> None:
    message, model = _read(name), _model(name)
    results = [tool_result(call, "r") for call in message.tool_calls]
    request = asked([user("q"), message, *results, user("n")], model=model)

    assert broken_rules(request.body, signed=model == NEW) == []


def test_thoughts_and_the_signature_at_the_end() -> None:
    assert _read("thinking").content == (
        ThinkingBlock(text="Two files; read both."),
        TextBlock(text="They are the same."),
        TextBlock(text="", signature="YXV0aG9yZWQtdGV4dA=="),
    )


def test_code_and_images_out() -> None:
    assert [block.kind for block in _read("code_execution").content if isinstance(block, OpaqueBlock)] == [
        *("executableCode", "codeExecutionResult")
    ]
    assert _read("image_out").content[1] == IMAGE


def test_citations_name_their_source() -> None:
    block = _read("citations").content[0]

    assert isinstance(block, TextBlock)
    assert block.citations[0]["groundingChunks"] == [
        {"web": {"uri": "https://example.com/seoul", "title": "example.com"}}
    ]


def test_an_array_is_a_stream_without_sse() -> None:
    message = _read("array")

    assert message.text == "They are the same."
    assert message.metadata.stop_reason is StopReason.END_TURN


@pytest.mark.parametrize(
    ("name", "kind", "theirs"),
    [("blocked", ContentRefusedError, None), ("malformed_call", ServerError, "MALFORMED_FUNCTION_CALL")],
)
def test_nothing_said_for_a_reason_is_an_error(name: str, kind: type[ProviderError], theirs: str | None) -> None:
    body = _exchange(name).body
    with pytest.raises(kind):
        _read(name)
    (answer,) = sdk_whole(body)

    assert not answer.parts
    assert (answer.candidates[0].finish_reason.value if answer.candidates else None) == theirs


@pytest.mark.parametrize(
    ("name", "ours", "theirs"),
    [
        ("bad_key", AuthenticationError, sdk_errors.ClientError),
        ("not_found", ModelNotFoundError, sdk_errors.ClientError),
        ("rate_limited", RateLimitError, sdk_errors.ClientError),
        ("overloaded", OverloadedError, sdk_errors.ServerError),
    ],
)
def test_failures_have_a_class_and_are_failures_of_the_sdk(
    name: str, ours: type[ProviderError], theirs: type[sdk_errors.APIError]
) -> None:
    found = _exchange(name)
    response = WireResponse(status=found.status, headers=found.headers, body=found.body)
    error = GOOGLE.from_wire_error(response, context())
    with pytest.raises(theirs) as caught:
        sdk(found.body, status=found.status).models.generate_content(model="m", contents="x")

    assert type(error) is ours
    assert (error.status, error.message) == (caught.value.code, caught.value.message)
    assert error.retry_after == (12 if name == "rate_limited" else None)


def test_an_error_in_the_stream_keeps_the_text_and_fails_in_the_sdk_too() -> None:
    body = _exchange("error_in_stream").body
    with pytest.raises(OverloadedError) as ours:
        driving.streamed(GOOGLE, body, context(OLD))
    with pytest.raises(sdk_errors.APIError):
        sdk_streamed(body)

    assert ours.value.partial.text == "They are "


def test_a_signed_call_is_of_its_own_part_alone() -> None:
    first, second = _read("signed_calls").tool_calls
    signatures: tuple[Any, ...] = (first.signature, second.signature)

    assert signatures == ("YXV0aG9yZWQtY2FsbA==", None)
