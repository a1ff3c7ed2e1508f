"""A picture that one service generated is described by another: both from cassettes, whole and streamed."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import urlsplit

import pytest

import interlingua as il
from interlingua.errors import BadRequestError
from interlingua.testing import MemoryReply, MemoryTransport
from interlingua.transport import HttpRequest
from interlingua.types import ImageBlock, user
from interlingua_cli.cassettes import RecordedExchange, read_cassette
from tests.support import tree
from tests.tools.local_server import files
from tests.tools.local_server.server import LocalServer

ABSENT = files.missing()
DRAWN = {  # cassette -> model and API
    "google/image_out": ("google:gemini-2.5-flash-image", "generate"),
    "google/interactions_image_out": ("google:gemini-3-pro-image-preview", "interactions"),
    "google/interactions_image_out_streamed": ("google:gemini-3-pro-image-preview", "interactions"),
    "openrouter/image_out": ("openrouter:google/gemini-2.5-flash-image", "chat"),
}
DESCRIBED = {  # cassette -> model and API
    "anthropic/image": ("anthropic:claude-haiku-4-5", "messages"),
    "openai/responses_image": ("openai:gpt-5.5", "responses"),
    "openai/chat_image": ("openai:gpt-4.1", "chat"),
    "google/image": ("google:gemini-2.5-flash", "generate"),
    "mistral/image_and_document": ("mistral:mistral-large-latest", "chat"),
}


def _exchange(name: str) -> RecordedExchange:
    return read_cassette(tree.ROOT / "cassettes" / f"{name}.yaml")[0]


class Player:
    """Answers the first request from one cassette and the second from another, and keeps the requests."""

    def __init__(self, *names: str) -> None:
        self._left = [_exchange(name) for name in names]
        self.asked: list[HttpRequest] = []

    def __call__(self, request: HttpRequest) -> MemoryReply:
        exchange = self._left.pop(0)
        assert urlsplit(request.url).hostname == urlsplit(exchange.uri).hostname
        self.asked.append(request)
        return MemoryReply(exchange.body, headers=dict(exchange.headers))


def _ask(client: il.Client, model: str, api: str, messages: Any, exchange: RecordedExchange) -> il.Message:
    if not exchange.streamed:
        return client.send(messages, model=model, api=api)
    with client.stream(messages, model=model, api=api) as events:
        return events.message


def _strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [text for item in value for text in _strings(item)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize("described", list(DESCRIBED))
@pytest.mark.parametrize("drawn", list(DRAWN))
def test_a_generated_picture_is_described_elsewhere(drawn: str, described: str) -> None:
    player = Player(drawn, described)
    keys = {model.partition(":")[0]: {"api_key": "k"} for model, _ in (DRAWN[drawn], DESCRIBED[described])}
    question = user("Draw a red square.")
    with il.Client(settings=keys, transport=MemoryTransport(player), retry=0) as client:
        answer = _ask(client, *DRAWN[drawn], [question], _exchange(drawn))
        pictures = [block for block in answer.content if isinstance(block, ImageBlock)]
        told = _ask(client, *DESCRIBED[described], [question, answer, user("What is in it?")], _exchange(described))

    assert pictures
    assert all(picture.source.kind == "base64" for picture in pictures)
    sent = _strings(json.loads(player.asked[1].body))
    for picture in pictures:
        assert base64.b64decode(picture.source.data, validate=True)
        assert sum(text.endswith(picture.source.data) for text in sent) == 1, "the picture is sent once, unchanged"
    assert told.text
    assert not [row for row in told.metadata.losses if row.severity == "content"]


@pytest.mark.skipif(ABSENT is not None, reason=ABSENT or "")
@pytest.mark.parametrize("drawn", list(DRAWN))
def test_a_real_server_without_vision_refuses_the_picture_in_its_own_words(drawn: str) -> None:
    question = user("Draw a red square.")
    drawing = {DRAWN[drawn][0].partition(":")[0]: {"api_key": "k"}}
    with il.Client(settings=drawing, transport=MemoryTransport(Player(drawn)), retry=0) as client:
        answer = _ask(client, *DRAWN[drawn], [question], _exchange(drawn))
    with LocalServer() as server:
        local: dict[str, Any] = {"llamacpp": {"base_url": f"{server.url}/v1"}}
        with il.Client(settings=local, retry=0) as client:
            with pytest.raises(BadRequestError, match="image input is not supported"):
                client.send([question, answer, user("What is in it?")], model="llamacpp:any", max_tokens=8)
            told = client.send([question, user("And in words?")], model="llamacpp:any", max_tokens=8)

    assert told.text
