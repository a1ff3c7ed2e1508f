"""Cassettes of calls that the caller answers, and of generated pictures: whole and streamed, as the SDK reads them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai.types.responses import Response, ResponseInputItemParam
from pydantic import TypeAdapter

import interlingua as il
from interlingua.testing import MemoryReply, MemoryTransport
from interlingua.types import ImageBlock, Message, StopReason, tool_results, user
from interlingua_cli.cassettes import RecordedExchange, read_cassette
from tests.support import tree

FOLDER = tree.ROOT / "cassettes" / "openai"
CALLS = ("apply_patch_call", "shell_call", "computer_call")


def _exchange(name: str) -> RecordedExchange:
    (exchange,) = read_cassette(FOLDER / f"{name}.yaml")
    return exchange


def _output(name: str) -> list[dict[str, Any]]:
    """Return the items of the whole answer, after the SDK has read them."""
    body = json.loads(_exchange(name).body)
    assert [item.type for item in Response.model_validate(body).output] == [item["type"] for item in body["output"]]
    return list(body["output"])


def _read(name: str) -> tuple[Message, il.Client]:
    exchange = _exchange(name)
    transport = MemoryTransport(lambda _: MemoryReply(exchange.body, headers=dict(exchange.headers)))
    client = il.Client("openai:gpt-5.5", api_key="k", transport=transport)
    if not exchange.streamed:
        return client.send("Do it."), client
    with client.stream("Do it.") as events:
        return events.message, client


@pytest.mark.parametrize("form", ["", "_streamed"])
def test_the_calls_of_the_caller(form: str) -> None:
    output = _output("responses_client_calls")
    answer, client = _read(f"responses_client_calls{form}")

    assert answer.stop_reason is StopReason.TOOL_USE
    assert [call.name for call in answer.tool_calls] == ["apply_patch", "shell", "computer"]
    picture = ImageBlock(source=il.types.MediaSource(kind="base64", data="aGk="), media_type="image/png")
    results = tool_results(zip(answer.tool_calls, ("Created.", "one", picture), strict=True))
    sent = json.loads(client.build_request([user("Do it."), answer, *results]).body)["input"]
    assert [item for item in sent if item["type"] in CALLS] == output
    assert [item["type"] for item in sent[4:]] == [f"{kind}_output" for kind in CALLS]
    TypeAdapter(list[ResponseInputItemParam]).validate_python(sent[1:])


@pytest.mark.parametrize("form", ["", "_streamed"])
def test_a_generated_picture(form: str) -> None:
    (item,) = _output("responses_image_out")
    answer, client = _read(f"responses_image_out{form}")

    (picture,) = [block for block in answer.content if isinstance(block, ImageBlock)]
    assert (picture.source.data, picture.media_type) == (item["result"], "image/png")
    sent = json.loads(client.build_request([user("Do it."), answer, user("Again.")]).body)["input"]
    (back,) = [one for one in sent if one["type"] == "image_generation_call"]
    assert (back["id"], back["result"]) == (item["id"], item["result"])


def test_a_generated_picture_is_described_elsewhere() -> None:
    answer, _ = _read("responses_image_out")
    exchange = read_cassette(FOLDER.parent / "anthropic" / "image.yaml")[0]
    asked: list[Any] = []

    def reply(request: Any) -> MemoryReply:
        asked.append(json.loads(request.body))
        return MemoryReply(exchange.body, headers=dict(exchange.headers))

    with il.Client("anthropic:claude-haiku-4-5", api_key="k", transport=MemoryTransport(reply)) as client:
        told = client.send([user("Draw."), answer, user("What is in it?")])

    (item,) = _output("responses_image_out")
    assert json.dumps(asked).count(item["result"]) == 1
    assert told.text
