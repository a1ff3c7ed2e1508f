"""Pictures that the service makes: read whole and streamed, sent back, sent to other services."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest

from interlingua._response.decode import StreamDecoder
from interlingua._response.framing import framer
from interlingua.errors import StreamInterruptedError
from interlingua.plugins import Registry, build_request
from interlingua.types import BlockStart, ImageBlock, Message, OpaqueBlock, RequestOptions, StopReason, user
from interlingua_serving import find_serving_plugin
from tests.plugins.openai.wire import (
    PROVIDER,
    body_of,
    context,
    decoder,
    events_of,
    reasoning,
    request,
    response,
    said,
    sse,
    streamed,
    whole,
)
from tests.serving import answers as serving
from tests.serving.lint_others import lint_responses_stream

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg=="
MADE = {
    "id": "ig_1", "type": "image_generation_call", "status": "completed", "background": "opaque",
    "output_format": "webp", "quality": "low", "result": "UklGRhoAAABXRUJQ", "revised_prompt": "a cat",
}  # fmt: skip
FAILED = {"id": "ig_1", "type": "image_generation_call", "status": "failed", "result": None}
BEGUN = {"id": "ig_1", "type": "image_generation_call", "status": "in_progress"}
PARTIAL = {
    "type": "response.image_generation_call.partial_image", "output_index": 0, "item_id": "ig_1",
    "partial_image_index": 0, "partial_image_b64": "UklGRgAA", "output_format": "webp",
}  # fmt: skip

streams = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


def _read(*items: dict[str, Any], stream: bool) -> Message:
    return streamed(events_of(response(*items))) if stream else whole(response(*items))


def _with_partial(item: dict[str, Any]) -> list[dict[str, Any]]:
    events = events_of(response(item, said("Here.")))
    added = next(at for at, event in enumerate(events) if event["type"] == "response.output_item.added")
    events[added] = events[added] | {"item": BEGUN}
    return [*events[: added + 1], PARTIAL, PARTIAL | {"partial_image_b64": "UklGRgAB"}, *events[added + 1 :]]


@streams
def test_a_picture_is_an_image_and_goes_back_unchanged(stream: bool) -> None:
    answer = _read(reasoning(), MADE, said("Here."), stream=stream)

    picture = answer.content[1]
    assert isinstance(picture, ImageBlock)
    assert (picture.source.data, picture.media_type) == (MADE["result"], "image/webp")
    assert answer.metadata.stop_reason is StopReason.END_TURN
    sent = body_of([user("draw"), answer, user("bluer")])["input"]
    assert json.dumps(sent[2]) == json.dumps(MADE)


def test_the_first_bytes_tell_the_format() -> None:
    types = [
        whole(response({**BEGUN, "status": "completed", "result": data})).content[0].media_type  # type: ignore[union-attr]
        for data in (PIXEL, "/9j/4AAQ", "UklGRhoA", "R0lGODlh")
    ]
    assert types == ["image/png", "image/jpeg", "image/webp", "image/gif"]


@streams
def test_a_picture_that_failed_is_kept_as_it_came(stream: bool) -> None:
    answer = _read(FAILED, said("Sorry."), stream=stream)

    assert isinstance(answer.content[0], OpaqueBlock)
    assert body_of([user("draw"), answer, user("again")])["input"][1] == FAILED


def test_partial_pictures_are_shown_and_replaced() -> None:
    fed = StreamDecoder(PROVIDER, framer("sse"), context())
    events = [*fed.feed(sse(_with_partial(MADE))), *fed.end()]

    shown = [event.block.source.data for event in events if isinstance(event, BlockStart)]  # type: ignore[union-attr]
    assert shown == ["UklGRgAA", "UklGRgAB"]
    assert fed.message() == whole(response(MADE, said("Here.")))


def test_a_partial_picture_survives_a_cut_and_a_failure() -> None:
    cut = decoder(sse(_with_partial(MADE)[:4]))
    with pytest.raises(StreamInterruptedError) as caught:
        cut.message()
    assert caught.value.partial is not None
    failed = streamed(_with_partial(FAILED))
    for message in (caught.value.partial, failed):
        (picture,) = [block for block in message.content if isinstance(block, ImageBlock)]
        assert picture.source.data == "UklGRgAB"


def test_another_model_of_the_service_sees_the_picture() -> None:
    answer = whole(response(reasoning(), MADE, said("Here.")))
    made = request([user("draw"), answer, user("what is it?")], model="gpt-4.1")

    shown = json.loads(made.body)["input"][1]
    assert (shown["role"], shown["content"][1]["image_url"]) == ("user", f"data:image/webp;base64,{MADE['result']}")
    assert ("messages[1].content[1]", "rewritten") in [(loss.path, loss.verdict) for loss in made.losses]


@pytest.mark.parametrize(("key", "model"), [
    ("anthropic", "claude-opus-4-8"), ("google", "gemini-3-pro-preview"), ("openai:chat", "gpt-5.5"),
    ("bedrock", "anthropic.claude-opus-4-8"), ("mistral", "mistral-large-latest"),
])  # fmt: skip
def test_other_services_see_the_picture(key: str, model: str) -> None:
    answer = whole(response(MADE, said("Here.")))
    name, _, api = key.partition(":")
    options = RequestOptions(model=model, api=api or None)
    made = build_request(Registry().provider(name), [user("draw"), answer, user("what is it?")], (), options)

    assert MADE["result"] in made.body.decode()
    assert [(loss.path, loss.verdict, loss.severity) for loss in made.losses] == [
        ("messages[1].content[0]", "rewritten", "form")
    ]
    turns = json.loads(made.body).get("messages") or json.loads(made.body)["contents"]
    told = next(at for at, turn in enumerate(turns) if MADE["result"] in json.dumps(turn))
    assert (turns[told]["role"], turns[told - 1]["role"]) == ("user", "model" if name == "google" else "assistant")


def _served(message: Message, events: list[Any] | None = None) -> list[dict[str, Any]]:
    """Return the items that a caller of this service's own API gets: of a stream if there are its events."""
    asked = serving.context("openai", "responses", message.metadata.origin)
    plugin = find_serving_plugin(Registry(), "openai")
    if events is None:
        found: list[dict[str, Any]] = json.loads(plugin.to_wire_response(message, asked).body)["output"]
        return found
    writer = plugin.stream_to_wire(asked)
    out = (writer.feed(events) + writer.end()).decode()
    assert lint_responses_stream(out.encode(), usage=True) == []
    lines = [json.loads(line[6:]) for line in out.split("\n") if line.startswith("data: {")]
    return [line["item"] for line in lines if line["type"] == "response.output_item.done"]


def test_its_own_callers_get_each_picture_as_it_came() -> None:
    again = MADE | {"id": "ig_2", "result": PIXEL, "output_format": "png"}
    items = [reasoning(), MADE, again, said("Here.")]
    read = StreamDecoder(PROVIDER, framer("sse"), context())
    events = [*read.feed(sse(events_of(response(*items)))), *read.end()]

    written = _served(read.message(), events)
    assert [item["type"] for item in written] == [item["type"] for item in items]
    assert written[1:3] == _served(whole(response(*items)))[1:3] == [MADE, again]


def test_its_own_callers_get_pictures_of_an_edited_answer() -> None:
    answer = whole(response(MADE, said("Here.")))
    edited = attrs.evolve(answer, content=(*answer.content, *answer.content[:1]))

    assert [item.get("result") for item in _served(edited)] == [MADE["result"], None, MADE["result"]]
