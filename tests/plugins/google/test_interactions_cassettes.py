"""Authored exchanges of the Interactions API: the SDK reads the same bytes and agrees; the requests are ours."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from interlingua.errors import BadRequestError, ProviderError, RateLimitError, ServerError
from interlingua.plugins import WireRequest, WireResponse
from interlingua.types.blocks import AudioBlock, DocumentBlock, ImageBlock, MediaSource, TextBlock, VideoBlock
from interlingua.types.factories import system, tool_result, user
from interlingua.types.messages import Message, MessageStatus, StopReason, Usage
from interlingua.types.options import ToolChoice
from interlingua_cli.lint import lint_request
from tests.oracle import interactions_sdk as sdk
from tests.plugins.google.wire import NEW
from tests.support import driving
from tests.support.adapter import READ, Adapter
from tests.support.cassettes import RecordedExchange, load_exchanges

ADAPTER = Adapter("google", "interactions", NEW)
GOOGLE = ADAPTER.provider
STREAMED = ("thinking", "calls_streamed", "structured_streamed", "search_streamed", "image_out_streamed")
WHOLE = (
    *("text", "calls", "tool_results", "media", "image_url", "image_result", "forced_tool", "any_tool", "structured"),
    *("search", "search_again", "image_out", "stateful", "cut_short", "cached_tokens"),
)
QUESTION = user("Compare a.txt and b.txt.")
SCHEMA = {"type": "object", "properties": {"same": {"type": "boolean"}}, "required": ["same"]}
PNG = ImageBlock(source=MediaSource(kind="base64", data="iVBORw0KGgo="), media_type="image/png")
PDF = DocumentBlock(source=MediaSource(kind="base64", data="JVBERi0="))
LINKED = ImageBlock(
    source=MediaSource(kind="url", data="https://example.com/a.png"), media_type="image/png", detail="high"
)
MEDIA = (
    PNG,
    PDF,
    AudioBlock(source=MediaSource(kind="base64", data="UklGRg=="), media_type="audio/wav"),
    VideoBlock(source=MediaSource(kind="base64", data="AAAAGGZ0eXA=")),
)
SEARCH = {"tools": [{"type": "google_search"}]}
PICTURES = {"response_format": [{"type": "text"}, {"type": "image", "mime_type": "image/png"}]}
LONG = {"generation_config": {"max_output_tokens": 100_000}}
AGENT = "deep-research-pro-preview-12-2025"


def _exchanges(name: str) -> list[RecordedExchange]:
    return load_exchanges(f"google/interactions_{name}.yaml")


def _read(name: str, at: int = -1, **changes: Any) -> Message:
    found = _exchanges(name)[at]
    road = driving.streamed if found.body.startswith(b"event:") else driving.whole
    return road(GOOGLE, found.body, attrs.evolve(ADAPTER.context(), **changes))


def asked(*args: Any, **options: Any) -> WireRequest:
    """Return a request of this API."""
    return ADAPTER.asked(*args, **{"api": "interactions", **options})


def _results() -> WireRequest:
    answer = _read("calls")
    first, second = answer.tool_calls
    history = [QUESTION, answer, tool_result(first, "one"), tool_result(second, "no such file", is_error=True)]
    return asked(history, [READ])


def _looked() -> WireRequest:
    step = _exchanges("image_result")[0].request["input"]
    body = {"status": "requires_action", "steps": step[1:3]}
    answer = ADAPTER.read(body)
    return asked(
        [user("Look at a.png."), answer, tool_result(answer.tool_calls[0], [TextBlock(text="see"), PNG, PDF])], [READ]
    )


def _continued() -> WireRequest:
    """Return a request for a service that has everything before the results."""
    connection = {"stateful": True}
    first = asked([QUESTION], [READ], connection=connection)
    body = {**json.loads(_exchanges("calls")[0].body), "id": "v1_authored1"}
    answer = driving.whole(GOOGLE, json.dumps(body).encode(), attrs.evolve(ADAPTER.context(), echo=first.echo))
    results = [tool_result(call, text) for call, text in zip(answer.tool_calls, ("one", "two"), strict=True)]
    return asked([QUESTION, answer, *results], [READ], connection=connection)


REQUESTS: dict[str, Callable[[], WireRequest]] = {
    "text": lambda: asked([system("Answer in one word."), user("Hello?")]),
    "thinking": lambda: asked([QUESTION], stream=True, thinking=True, effort="low"),
    "calls": lambda: asked([QUESTION], [READ]),
    "calls_streamed": lambda: asked([QUESTION], [READ], stream=True),
    "tool_results": _results,
    "media": lambda: asked([user([TextBlock(text="Which of these agree?"), *MEDIA])]),
    "image_url": lambda: asked([user([TextBlock(text="What is this?"), LINKED])]),
    "image_result": _looked,
    "forced_tool": lambda: asked([QUESTION], [READ], tool_choice=ToolChoice("read_file")),
    "any_tool": lambda: asked([QUESTION], [READ], tool_choice="required"),
    "structured": lambda: asked([QUESTION], response_schema=SCHEMA),
    "structured_streamed": lambda: asked([QUESTION], [READ], response_schema=SCHEMA, stream=True),
    "search": lambda: asked([user("Capital of Korea?")], provider_options=SEARCH),
    "search_again": lambda: asked(
        [user("Capital of Korea?"), _read("search"), user("And its river?")], provider_options=SEARCH
    ),
    "search_streamed": lambda: asked([user("Capital of Korea?")], provider_options=SEARCH, stream=True),
    "image_out": lambda: asked([user("Draw a cat.")], provider_options=PICTURES),
    "image_out_streamed": lambda: asked([user("Draw a cat.")], provider_options=PICTURES, stream=True),
    "stateful": _continued,
    "background": lambda: asked([user("History of tea?")], model=AGENT, api=None),
    "background_streamed": lambda: asked([user("History of tea?")], model=AGENT, api=None, stream=True),
    "continued": lambda: asked([user("Count to a million.")], model="gemini-4-argon", provider_options=LONG),
    "cut_short": lambda: asked([QUESTION], max_tokens=64),
    "cached_tokens": lambda: asked([QUESTION]),
}


@pytest.mark.parametrize("name", [*STREAMED, *WHOLE])
def test_the_sdk_reads_the_same(name: str) -> None:
    body = _exchanges(name)[0].body
    theirs = (sdk.read_stream if name in STREAMED else sdk.read_whole)(body)

    assert sdk.read_message(_read(name)) == theirs


@pytest.mark.parametrize("name", sorted(REQUESTS))
def test_the_request_is_the_one_we_write(name: str) -> None:
    exchange, request = _exchanges(name)[0], REQUESTS[name]()
    body = json.loads(request.body)

    assert body == exchange.request
    assert json.dumps(body["input"]) == json.dumps(exchange.request["input"])
    assert exchange.uri.endswith(f"/v1beta{request.path}")
    assert request.headers == exchange.request_headers
    assert request.losses == ()
    assert lint_request(GOOGLE, request) == ()


@pytest.mark.filterwarnings("ignore:Interaction stopped before completion")
@pytest.mark.parametrize("name", sorted(REQUESTS))
def test_the_sdk_knows_every_member_of_our_request(name: str) -> None:
    """It leaves out what its types do not have."""
    body = json.loads(REQUESTS[name]().body)
    wire = sdk.Wire(_exchanges(name)[0].body, kind="text/event-stream" if body.get("stream") else "application/json")
    later = {"automatic_continuation": False} if name == "continued" else {}
    sdk.client(wire).interactions.create(**body, **later)

    assert wire.sent == body


@pytest.mark.parametrize(("whole", "streamed"), [
    ("calls", "calls_streamed"), ("search", "search_streamed"), ("image_out", "image_out_streamed"),
])  # fmt: skip
def test_whole_and_streamed_are_one_message(whole: str, streamed: str) -> None:
    one, other = _read(whole), _read(streamed)

    assert other == one
    assert _steps_of(asked([user("q"), other, user("n")])) == _steps_of(asked([user("q"), one, user("n")]))


def _steps_of(request: WireRequest) -> Any:
    """Return the steps without placeholders: a stream begins a service's step with an empty signature."""
    return json.loads(request.body)["input"]


@pytest.mark.parametrize("name", WHOLE)
def test_an_answer_goes_back_byte_for_byte(name: str) -> None:
    steps = json.loads(_exchanges(name)[0].body)["steps"]
    answer = _read(name)
    results = [tool_result(call, "r") for call in answer.tool_calls]
    sent = asked([user("q"), answer, *results, user("n")]).body

    assert json.dumps(steps, separators=(",", ":"))[1:-1].encode() in sent


def test_an_empty_signature_between_summaries_is_none() -> None:
    thought, _ = _read("thinking").content

    assert thought.signature == "YXV0aG9yZWQtdGhvdWdodA=="  # type: ignore[union-attr]


def test_counts_by_modality() -> None:
    assert _read("cached_tokens").metadata.usage == Usage(
        input_tokens=2100,
        output_tokens=3,
        cached_input_tokens=2048,
        audio_input_tokens=200,
        cached_audio_input_tokens=148,
        reasoning_tokens=0,
        service_tier="standard",
    )
    assert _read("image_out").metadata.usage.extra_units == {"image_output_tokens": 1290}  # type: ignore[union-attr]
    assert _read("image_url").metadata.usage.input_tokens is None  # type: ignore[union-attr]  # 0 beside output


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("calls", StopReason.TOOL_USE),
        ("any_tool", StopReason.TOOL_USE),  # with the status of a complete answer
        ("cut_short", StopReason.MAX_TOKENS),
        ("text", StopReason.END_TURN),
    ],
)
def test_the_steps_decide_why_it_stopped(name: str, reason: StopReason) -> None:
    assert _read(name).metadata.stop_reason is reason


def _followed(name: str, stream: bool = False) -> tuple[list[WireRequest], Message]:
    """Read a cassette's exchanges one after the other, as `follow_up` asks for them."""
    first = REQUESTS[name]()
    context = attrs.evolve(ADAPTER.context(), echo=first.echo)
    sent = []
    for exchange in _exchanges(name):
        response = WireResponse(status=exchange.status, headers=exchange.headers, body=exchange.body)
        if sent and sent[-1].stream:
            return sent, driving.streamed(GOOGLE, exchange.body, context)
        found = GOOGLE.follow_up(response, context)
        if found is None:
            return sent, GOOGLE.from_wire_response(response, context)
        context = attrs.evolve(context, echo={**context.echo, **found.request.echo})
        sent.append(found.request)
    raise AssertionError("the last answer asks for another")


@pytest.mark.parametrize("name", ["background", "background_streamed", "continued"])
def test_what_follows_is_asked_for_as_recorded(name: str) -> None:
    sent, message = _followed(name)
    rest = _exchanges(name)[1:]

    assert [(each.method, each.path, json.loads(each.body or b"null")) for each in sent] == [
        (each.method, each.uri.partition("/v1beta")[2], each.request or None) for each in rest
    ]
    assert message.metadata.status is MessageStatus.COMPLETE
    assert message.metadata.stop_reason is StopReason.END_TURN


def test_an_agents_report() -> None:
    (_, whole), (_, streamed) = _followed("background"), _followed("background_streamed")

    assert whole.text == streamed.text == "Tea began in China."
    assert whole.metadata.usage == streamed.metadata.usage
    assert whole.metadata.usage.extra_units == {"web_search": 12}  # type: ignore[union-attr]


def test_the_parts_of_a_long_answer_are_one_answer() -> None:
    _, message = _followed("continued")

    assert message.text == "1 2 3 4 5 6"
    assert sdk.usage_of(message) == (6 + 6, 65000 + 20000, 0, 0)


def test_a_long_answer_without_progress_pauses() -> None:
    exchange = _exchanges("continued")[0]
    body = json.loads(exchange.body)
    echo = {"body": {**exchange.request, "continuation_token": body["continuation_token"]}}
    context = attrs.evolve(ADAPTER.context(), echo=echo)

    assert GOOGLE.follow_up(WireResponse(body=exchange.body), context) is None
    assert _read("continued", 0).metadata.stop_reason is StopReason.PAUSE_TURN


@pytest.mark.parametrize(
    ("name", "kind"),
    [("rate_limited", RateLimitError), ("bad_request", BadRequestError), ("not_implemented", ServerError)],
)
def test_failures_have_a_class_and_are_failures_of_the_sdk(name: str, kind: type[ProviderError]) -> None:
    (found,) = _exchanges(name)
    response = WireResponse(status=found.status, headers=found.headers, body=found.body)
    error = GOOGLE.from_wire_error(response, ADAPTER.context())
    with pytest.raises(sdk.FAILURE) as caught:
        sdk.client(sdk.Wire(found.body, found.status)).interactions.create(model="m", input="q")

    assert type(error) is kind
    assert error.status == caught.value.status_code  # type: ignore[attr-defined]
    assert error.message in str(caught.value)
    assert error.retryable is (name == "rate_limited")


@pytest.mark.parametrize(("name", "kind"), [("failed", ServerError), ("error_in_stream", RateLimitError)])
def test_a_failure_keeps_the_text_before_it(name: str, kind: type[ProviderError]) -> None:
    with pytest.raises(kind) as caught:
        _read(name)

    assert caught.value.partial.text.startswith("They are")
