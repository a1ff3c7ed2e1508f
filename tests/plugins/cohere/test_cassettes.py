"""Authored exchanges: the official SDK reads the same bytes and agrees with us; the requests are the ones we write."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from cohere.core.api_error import ApiError

from interlingua._json import thaw
from interlingua.errors import (
    AuthenticationError,
    ContextWindowExceededError,
    ModelNotFoundError,
    ProviderError,
    QuotaExceededError,
    RateLimitError,
    ServerError,
)
from interlingua.plugins import WireResponse
from interlingua.types.blocks import (
    DocumentBlock,
    ImageBlock,
    MediaSource,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
)
from interlingua.types.factories import assistant, system, tool_result, user
from interlingua.types.messages import Message, MessageMetadata, Role, StopReason
from interlingua.types.tools import SideEffects, ToolDefinition
from tests.plugins.cohere.reading import facts, merged
from tests.plugins.cohere.wire import ADAPTER, COHERE, asked, parts, sdk
from tests.support import driving
from tests.support.adapter import READ
from tests.support.cassettes import RecordedExchange, load_exchanges
from tests.support.compact import compact

PAIRS = {
    "parallel_calls": "parallel_calls_whole",
    "tool_results_streamed": "tool_results",
    "documents_streamed": "documents",
    "thinking": "thinking_whole",
    "thinking_then_call": "thinking_then_call_whole",
    "length_streamed": "length",
}
ALONE = ("equal_calls", "citations_sent_back", "thinking_sent_back", "image", "image_url", "structured")
MORE = ("stop_sequence", "system_in_list", "forced_tool", "no_tool")
QUESTION = user("Compare a.txt and b.txt.")
REASONING, PLUS, VISION = "command-a-reasoning-08-2025", "command-a-plus-05-2026", "command-a-vision-07-2025"
DICE = ToolDefinition(
    name="roll_dice",
    description="Roll a die.",
    input_schema={"type": "object", "properties": {"sides": {"type": "integer"}}, "required": ["sides"]},
    side_effects=SideEffects.READ,
)
SCHEMA = {"type": "object", "properties": {"age": {"type": "number"}}, "required": ["age"]}


def _exchange(name: str) -> RecordedExchange:
    (found,) = load_exchanges(f"cohere/{name}.yaml")
    return found


def _read(name: str) -> Message:
    found = _exchange(name)
    road = driving.streamed if name in PAIRS else driving.whole
    return road(COHERE, found.body, ADAPTER.context(found.request["model"]))


def _text(words: str, title: str) -> DocumentBlock:
    import base64

    source = MediaSource(kind="base64", data=base64.b64encode(words.encode()).decode())
    return DocumentBlock(source=source, media_type="text/plain", title=title)


def _results() -> list[Message]:
    calls = _read("parallel_calls")
    first, second = calls.tool_calls
    document = Message(
        role=Role.TOOL,
        content=(ToolResultBlock(tool_use_id=second.id, content=(_text("two", "b.txt"),)),),
        metadata=MessageMetadata(parent_tool_use_id=second.id),
    )
    return [QUESTION, calls, tool_result(first, "one"), document]


def _pictured(source: MediaSource) -> list[Message]:
    return [user([TextBlock(text="What is this?"), ImageBlock(source=source, media_type="image/png")])]


@pytest.mark.parametrize("name", [*PAIRS, *PAIRS.values(), *ALONE, *MORE])
def test_the_sdk_reads_the_same(name: str) -> None:
    read = parts(_exchange(name).body, stream=name in PAIRS)
    theirs = facts(merged(read) if name in PAIRS else read[0])
    message = _read(name)
    usage = message.metadata.usage

    assert message.text == theirs["text"]
    assert [block.text for block in message.thinking_blocks] == theirs["thinking"]
    assert [(call.provider_id, call.name, thaw(call.input)) for call in message.tool_calls] == theirs["calls"]
    cited = [one["text"] for block in message.content if isinstance(block, TextBlock) for one in block.citations]
    assert cited == theirs["cited"]
    assert message.metadata.stop_reason_raw == theirs["reason"]
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens) == theirs["usage"]
    assert usage.cached_input_tokens == theirs["cached"]
    assert usage.extra_units == {"billed_input": theirs["billed"][0], "billed_output": theirs["billed"][1]}


@pytest.mark.parametrize(
    ("name", "messages", "options"),
    [
        ("parallel_calls", [QUESTION], {"stream": True, "tools": [READ]}),
        ("parallel_calls_whole", [QUESTION], {"tools": [READ]}),
        ("equal_calls", [user("Roll two dice.")], {"tools": [DICE]}),
        ("tool_results", _results(), {"tools": [READ]}),
        ("tool_results_streamed", _results(), {"tools": [READ], "stream": True}),
        (
            "citations_sent_back",
            [*_results(), _read("tool_results_streamed"), user("Which is longer?")],
            {"tools": [READ]},
        ),
        (
            "documents",
            [
                user(
                    [
                        TextBlock(text="Which penguins are the tallest?"),
                        _text("Emperor penguins are the tallest.", "penguins.txt"),
                    ]
                )
            ],
            {"model": PLUS},
        ),
        ("thinking", [user("What is 17 times 23?")], {"model": REASONING, "thinking_budget": 512, "stream": True}),
        ("thinking_whole", [user("What is 17 times 23?")], {"model": REASONING, "thinking_budget": 512}),
        (
            "thinking_sent_back",
            [user("What is 17 times 23?"), _read("thinking"), user("And half of it?")],
            {"model": REASONING, "thinking": False},
        ),
        ("thinking_then_call", [QUESTION], {"model": REASONING, "tools": [READ], "stream": True}),
        ("image", _pictured(MediaSource(kind="base64", data="iVBORw0KGgo=")), {"model": VISION}),
        ("image_url", _pictured(MediaSource(kind="url", data="https://example.com/square.png")), {"model": VISION}),
        (
            "structured",
            [user("Generate a JSON of the moon's age in billions of years.")],
            {"response_schema": SCHEMA, "max_tokens": 64, "temperature": 0, "seed": 7, "stop": "\n\n"},
        ),
        ("length", [user("Tell me of the sea.")], {"max_tokens": 4}),
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
        ("forced_tool", [user("Hello.")], {"tools": [READ], "tool_choice": "required"}),
        ("no_tool", [user("Hello.")], {"tools": [READ], "tool_choice": "none"}),
    ],
)
def test_the_request_is_the_one_we_write(name: str, messages: list[Message], options: dict[str, Any]) -> None:
    made = asked(messages, **options)
    expected = _exchange(name).request

    assert made.body == compact(expected)
    assert not made.losses


@pytest.mark.parametrize(("name", "sibling"), PAIRS.items())
def test_both_roads_meet(name: str, sibling: str) -> None:
    one, other = _read(name), _read(sibling)
    model = _exchange(name).request["model"]
    assert one == other
    streamed, whole = (answer.metadata.provider_raw for answer in (one, other))
    assert (streamed and streamed["replay"]) == (whole and whole["replay"])
    following = [user("Go on.")] if not one.tool_calls else [tool_result(call, "x") for call in one.tool_calls]
    turns = [asked([QUESTION, answer, *following], [READ], model=model).body for answer in (one, other)]
    assert turns[0] == turns[1]


def test_what_the_answers_hold() -> None:
    calls = _read("parallel_calls")
    assert calls.content[0] == ThinkingBlock(text="I will read both files.")
    assert calls.metadata.stop_reason is StopReason.TOOL_USE
    thought = _read("thinking")
    assert thought.content == (
        ThinkingBlock(text="17 times 20 is 340, and 17 times 3 is 51."),
        TextBlock(text="17 times 23 is 391."),
    )
    assert _read("length").metadata.stop_reason is StopReason.MAX_TOKENS
    assert _read("stop_sequence").metadata.stop_reason is StopReason.STOP_SEQUENCE


def test_the_cost_is_of_what_is_billed() -> None:
    """44 and 52 billed tokens at 2.50 and 10 USD a million, of 1,476 and 84 counted."""
    message = _read("parallel_calls")
    parts = COHERE.cost_of(message=message, model=COHERE.model("command-a-03-2025"))

    assert parts is not None
    assert (parts.input, parts.output) == (Decimal("0.00011"), Decimal("0.00052"))
    assert COHERE.cost_of(message=message, model=COHERE.model(REASONING)) is None  # sold by the hour


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("unauthorized", AuthenticationError),
        ("model_not_found", ModelNotFoundError),
        ("context_full", ContextWindowExceededError),
        ("rate_limited", RateLimitError),
        ("monthly_limit", QuotaExceededError),
    ],
)
def test_failures_fail_in_the_sdk_too(name: str, kind: type[ProviderError]) -> None:
    found = _exchange(name)
    error = COHERE.from_wire_error(
        WireResponse(status=found.status, headers=found.headers, body=found.body), ADAPTER.context()
    )
    with pytest.raises(ApiError) as caught:
        sdk(found.body, status=found.status).chat(model="m", messages=[], request_options={"max_retries": 0})

    assert type(error) is kind
    assert caught.value.status_code == error.status
    assert error.message in str(caught.value.body)


def test_an_error_in_the_stream_keeps_the_text() -> None:
    raw = _exchange("error_in_stream").body
    last = parts(raw, stream=True)[-1]
    with pytest.raises(ServerError, match="an internal error stopped the generation") as ours:
        driving.streamed(COHERE, raw, ADAPTER.context())

    assert (last["type"], last["delta"]["finish_reason"]) == ("message-end", "ERROR")
    assert ours.value.partial is not None
    assert ours.value.partial.text == "The sea"
