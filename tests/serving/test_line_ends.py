"""Streams hold no character at which some clients end a line: `str.splitlines` knows more of them than CR and LF."""

from __future__ import annotations

import pytest

from interlingua._response.decode import StreamDecoder
from interlingua._response.framing import framer
from interlingua.errors import ServerError
from interlingua.plugins import RequestContext
from interlingua.types import (
    ErrorEvent,
    Message,
    MessageMetadata,
    Origin,
    Role,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
)
from interlingua_serving import answer_events, find_serving_plugin
from tests.serving.answers import context
from tests.serving.compare import REGISTRY

ENDS = "a\u2028b\u2029c\u0085d"
FOREIGN = Origin("acme", "turns", "anvil")
APIS = pytest.mark.parametrize(
    ("key", "api", "framing"),
    [
        ("anthropic", "messages", "sse"), ("openai", "chat", "sse"), ("openai", "responses", "sse"),
        ("google", "generate", "sse"), ("ollama", "chat-native", "ndjson"),
    ],
)  # fmt: skip


def _answer(text: str) -> Message:
    content = (
        ThinkingBlock(text=f"thinks {text}"),
        TextBlock(text=f"says {text}"),
        ToolUseBlock(id="tu_01KAKDPZ000000000000000001", name="look", input={text: text}),
    )
    metadata = MessageMetadata(
        provider=FOREIGN.provider, api=FOREIGN.api, model="acme:anvil", stop_reason=StopReason.TOOL_USE
    )
    return Message(role=Role.ASSISTANT, content=content, metadata=metadata)


def _body(key: str, api: str, events: tuple[object, ...]) -> bytes:
    writer = find_serving_plugin(REGISTRY, key).stream_to_wire(context(key, api, FOREIGN, model=f"m {ENDS}"))
    return b"".join([writer.feed([event]) for event in events]) + writer.end()  # type: ignore[list-item]


def _read(key: str, api: str, framing: str, body: bytes) -> Message:
    decoder = StreamDecoder(REGISTRY.provider(key), framer(framing), RequestContext(origin=Origin(key, api, "m")))
    decoder.feed(body)
    decoder.end()
    return decoder.message()


def _said(message: Message) -> tuple[str, str, list[object]]:
    thoughts = "".join(block.text for block in message.thinking_blocks)
    return message.text, thoughts, [call.input for call in message.tool_calls]


@APIS
def test_streams_have_the_line_ends_of_their_framing_alone(key: str, api: str, framing: str) -> None:
    message = _answer(ENDS)
    body = _body(key, api, answer_events(message))

    text = body.decode()
    assert text.splitlines() == text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    assert _said(_read(key, api, framing, body)) == _said(message)


@APIS
def test_so_have_errors_in_a_stream(key: str, api: str, framing: str) -> None:
    text = _body(key, api, (ErrorEvent(error=ServerError(f"broken {ENDS}")),)).decode()

    assert text.splitlines() == text.replace("\r\n", "\n").removesuffix("\n").split("\n")


@APIS
def test_half_a_surrogate_pair_is_written_as_what_json_can_hold(key: str, api: str, framing: str) -> None:
    body = _body(key, api, answer_events(_answer("x\ud800y")))

    assert _said(_read(key, api, framing, body)) == _said(_answer("x\ufffdy"))
