"""A stream that we write, cut into pieces of many sizes: each API's official SDK reads the same of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs
import pytest

from interlingua.types import (
    Message,
    MessageMetadata,
    Origin,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
    Usage,
)
from interlingua_serving import answer_events, find_serving_plugin
from tests.oracle import anthropic_sdk, google_sdk, openai_sdk
from tests.serving.answers import context
from tests.serving.compare import REGISTRY
from tests.support.counts import FULL

ORIGIN = Origin("elsewhere", "chat", "m-1")
SAID = "Grüße 🐧, \n\ndata: [DONE]\r\n"  # letters of two and four bytes; what separates events, inside text
ANSWER = Message(
    role="assistant",
    content=[
        ThinkingBlock(text="Hm 🤔", signature="c2ln"),
        TextBlock(text=SAID),
        ToolUseBlock(id="c1", name="f", input={"a": "ä"}),
        ToolUseBlock(id="c2", name="g", input={}),
    ],
    metadata=MessageMetadata(stop_reason=StopReason.TOOL_USE, usage=Usage(input_tokens=9, output_tokens=4)),
)


def _pieces(body: bytes, size: int) -> Iterator[bytes]:
    return (body[at : at + size] for at in range(0, len(body), size))


def _final_response(body: Any) -> dict[str, Any]:
    """Return what `responses.stream` returns to an application at the end."""
    with (
        openai_sdk.client(body, headers={"content-type": "text/event-stream"}) as sdk,
        sdk.responses.stream(**openai_sdk.RESPONSES) as stream,
    ):
        found: dict[str, Any] = stream.get_final_response().to_dict(mode="json", warnings=False)
    return found


@attrs.frozen
class Reader:
    """An SDK and whose API it reads."""

    key: str
    api: str
    read: Callable[[bytes, int], dict[str, Any]]
    text: Callable[[dict[str, Any]], str]


def _generated(answer: dict[str, Any]) -> str:
    parts = answer["candidates"][0]["content"]["parts"]
    return "".join(part.get("text", "") for part in parts if not part.get("thought"))


READERS = (
    Reader(
        "anthropic", "messages", lambda body, size: anthropic_sdk.streamed(_pieces(body, size)),  # type: ignore[arg-type]
        lambda message: "".join(block["text"] for block in message["content"] if block["type"] == "text"),
    ),
    Reader(
        "openai", "chat", lambda body, size: openai_sdk.streamed_chat(_pieces(body, size)),  # type: ignore[arg-type]
        lambda completion: completion["choices"][0]["message"]["content"],
    ),
    Reader(
        "openai", "responses", lambda body, size: _final_response(_pieces(body, size)),
        lambda made: next(item for item in made["output"] if item["type"] == "message")["content"][0]["text"],
    ),
    Reader("google", "generate", google_sdk.streamed_generate, _generated),
    Reader("ollama", "chat-native", google_sdk.streamed_ollama, lambda answer: answer["message"]["content"]),
)  # fmt: skip


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.api)
def test_pieces_of_any_size_are_read_the_same(reader: Reader) -> None:
    writer = find_serving_plugin(REGISTRY, reader.key).stream_to_wire(context(reader.key, reader.api, ORIGIN))
    body = writer.feed(answer_events(ANSWER)) + writer.end()
    whole = reader.read(body, len(body))
    assert reader.text(whole) == SAID

    for size in range(1, len(body), 4 if FULL else 61):
        assert reader.read(body, size) == whole, size
