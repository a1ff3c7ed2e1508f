"""Authored exchanges for what no local server can show: our request has this form, and the SDK agrees."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest

from interlingua.plugins import build_request
from interlingua.types.blocks import DocumentBlock, ImageBlock, MediaSource, TextBlock, ToolUseBlock
from interlingua.types.factories import assistant, system, tool_result, user
from interlingua.types.messages import Message
from interlingua.types.options import RequestOptions
from interlingua.types.tools import ToolDefinition
from tests.oracle import anthropic_sdk, openai_sdk
from tests.support import driving
from tests.support.cassettes import RecordedExchange, load_exchanges
from tests.tools.record.scenarios import READ_FILE

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
PDF = "JVBERi0xLjQKJSVFT0YK"

CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}

CALL = ToolUseBlock(id="tu_01KAKDPZ000000000000000001", name="read_file", input={"path": "a.png"})


@attrs.frozen(kw_only=True)
class Asked:
    """What one cassette's request says, in canonical words."""

    history: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...] = ()
    options: dict[str, Any] = attrs.field(factory=dict)


def _inputs() -> Asked:
    document = DocumentBlock(
        source=MediaSource(kind="base64", data=PDF), media_type="application/pdf", title="empty.pdf"
    )
    linked = ImageBlock(source=MediaSource(kind="url", data="https://example.com/cat.png"), media_type="image/png")
    question = TextBlock(text="Which city? Answer in the form asked for.")
    return Asked(history=(user([question, document, linked]),), options={"response_schema": CITY})


def _image_in_a_result() -> Asked:
    shown = [
        TextBlock(text="It shows:"),
        ImageBlock(source=MediaSource(kind="base64", data=PIXEL), media_type="image/png"),
    ]
    history = (user("Look at a.png, then at b.png."), assistant([CALL]), tool_result(CALL, shown))
    return Asked(history=history, tools=(READ_FILE,), options={"tool_choice": "required"})


LATER = Asked(history=(user("Hello."), assistant("Hi."), user("Where are you?"), system("Answer in French.")))
# with tools, gpt-5.5 does not reason in Chat
FORCED = Asked(
    history=(user("Read b.txt."),), tools=(READ_FILE,), options={"tool_choice": "required", "effort": "none"}
)

CASES = {
    "anthropic/inputs": ("messages", _inputs()),
    "anthropic/system_in_list": ("messages", LATER),
    "anthropic/forced_tool": ("messages", _image_in_a_result()),
    "openai/responses_inputs": ("responses", _inputs()),
    "openai/responses_system_in_list": ("responses", LATER),
    "openai/responses_forced_tool": ("responses", _image_in_a_result()),
    "openai/chat_inputs": ("chat", _inputs()),
    "openai/chat_system_in_list": ("chat", LATER),
    "openai/chat_forced_tool": ("chat", FORCED),
}


def _exchange(name: str) -> RecordedExchange:
    (found,) = load_exchanges(f"{name}.yaml")
    return found


@pytest.mark.parametrize("name", CASES)
def test_we_ask_in_this_form(name: str) -> None:
    (api, asked), expected = CASES[name], _exchange(name).request
    limit = {"max_tokens": expected["max_tokens"]} if "max_tokens" in expected else {}
    options = RequestOptions(model=expected["model"], api=api, **limit, **asked.options)
    request = build_request(driving.provider(name.partition("/")[0]), asked.history, asked.tools, options)

    assert json.loads(request.body) == expected
    assert not request.losses


@pytest.mark.parametrize("name", CASES)
def test_the_sdk_reads_the_same_answer(name: str) -> None:
    key, api = name.partition("/")[0], CASES[name][0]
    body = _exchange(name).body
    message = driving.whole(driving.provider(key), body, driving.context(key, api, "m"))
    calls: list[Any]
    expected: Any
    if api == "messages":
        expected = anthropic_sdk.reading(anthropic_sdk.whole(body))
        calls = [(call.name, dict(call.input)) for call in message.tool_calls]
    else:
        chat = api == "chat"
        expected = (
            openai_sdk.read_chat(openai_sdk.whole_chat(body))
            if chat
            else openai_sdk.read_response(openai_sdk.whole_response(body))
        )
        calls = [(call.name, call.raw_input) for call in message.tool_calls]

    assert message.text == expected.text
    assert calls == list(expected.calls)
    assert message.metadata.stop_reason is expected.stop
    assert message.metadata.usage is not None
    assert (message.metadata.usage.input_tokens, message.metadata.usage.output_tokens) == expected.usage[:2]
